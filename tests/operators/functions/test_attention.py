"""Functions of attention: values, valid rows and columns, operations and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fabric import Selector, ShapeError, Tile, TileType
from fabric.graph.values.dims import symbol
from operators import INTEGER, AttentionScores, MaskScores, OneHot, PadRows, Quotient, integer

FLOAT, HALF = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)


def tile(data: Any, dtype: np.dtype = FLOAT, **valid: Any) -> Tile:
    """Return a tile of ``data``."""
    array = np.array(data).astype(dtype)
    rows, cols = array.shape
    return Tile(rows, cols, dtype, array, **valid)


def values(of: Tile) -> Any:
    """Return the numbers of a tile as lists."""
    assert of.data is not None
    return of.data.tolist()


class TestScores:
    def test_are_not_rounded(self) -> None:
        """256 + 1 is no bfloat16, and is a score all the same."""
        scores = AttentionScores(0.5).apply(tile([[256, 1]], HALF), tile([[1, 1], [0, 2]], HALF))

        assert [[128.5, 1.0]] == values(scores)
        assert scores.dtype == FLOAT

    def test_valid_columns(self) -> None:
        """They are the valid rows of the keys."""
        scores = AttentionScores(1.0).apply(tile([[1], [2]]), tile([[3], [0]], valid_rows=1))

        assert (2, 2, 2, 1) == (scores.rows, scores.cols, scores.valid_rows, scores.valid_cols)

    def test_operations(self) -> None:
        """Two for each product and sum, one for the scale."""
        assert 4 * 8 * (2 * 16 + 1) == AttentionScores(1.0).flops(
            TileType(4, 16, FLOAT), TileType(8, 16, FLOAT)
        )

    def test_columns_differ(self) -> None:
        """Queries and keys of another width are refused."""
        with pytest.raises(
            ShapeError,
            match=r"^AttentionScores is given queries 4x16 float32 and keys 8x2 float32: "
            r"expected as many columns$",
        ):
            AttentionScores(1.0).infer(TileType(4, 16, FLOAT), TileType(8, 2, FLOAT))


class TestMasks:
    def test_booleans_and_biases(self) -> None:
        """Two rows of mask stand for the heads that share keys, one below the other."""
        scores = tile([[1, 2], [3, 4], [5, 6], [7, 8]], valid_cols=1)
        hidden = -np.inf

        masked = MaskScores().apply(scores, tile([[1, 0], [1, 1]], np.dtype(bool)))
        biased = MaskScores().apply(scores, tile([[0.5, hidden]], HALF))

        assert [[1, hidden], [3, 4], [5, hidden], [7, 8]] == values(masked)
        assert [[1.5, hidden], [3.5, hidden], [5.5, hidden], [7.5, hidden]] == values(biased)
        assert 1 == masked.valid_cols == biased.valid_cols

    def test_rows_that_do_not_divide(self) -> None:
        """A mask of three rows is none for four."""
        with pytest.raises(
            ShapeError,
            match=r"^MaskScores is given 4x2 float32 and the mask 3x2 float32: "
            r"expected as many columns, and rows that divide those of the scores$",
        ):
            MaskScores().infer(TileType(4, 2, FLOAT), TileType(3, 2, FLOAT))


class TestQuotient:
    def test_is_rounded_once(self) -> None:
        """771 / 3 is 257, for which bfloat16 has 256."""
        result = Quotient("bfloat16").apply(tile([[771, 3]]), tile([[3]]))

        assert [[256.0, 1.0]] == values(result)
        assert result.dtype == HALF

    def test_one_weight_for_each_row(self) -> None:
        """Two weights for one row are refused."""
        with pytest.raises(
            ShapeError,
            match=r"^Quotient is given 1x2 float32 and 1x2 float32: "
            r"expected one weight for each row$",
        ):
            Quotient("float32").infer(TileType(1, 2, FLOAT), TileType(1, 2, FLOAT))

    def test_operations_of_rows_that_data_decide(self) -> None:
        """They are as many as numbers are divided, whatever the rows of the weights are called."""
        sums, weights = symbol("sums"), symbol("weights")
        flops = Quotient("float32").flops(TileType(sums, 5, FLOAT), TileType(weights, 1, FLOAT))
        assert flops == 5 * sums


class TestBookkeeping:
    def test_padded_rows(self) -> None:
        """They are zeros, and not valid."""
        result = PadRows(3).apply(tile([[1, 2]]))

        assert [[1, 2], [0, 0], [0, 0]] == values(result)
        assert (3, 1, 2) == (result.rows, result.valid_rows, result.valid_cols)

    def test_more_rows_than_there_is_room(self) -> None:
        """Nothing is cut off."""
        message = r"^PadRows\(3\) is given 4x2 float32: expected no more rows$"

        with pytest.raises(ShapeError, match=message):
            PadRows(3).infer(TileType(4, 2, FLOAT))

    def test_selectors(self) -> None:
        """An integer names a stream, which there has to be."""
        assert Selector((1,), 3) == OneHot(3).apply(integer(1))
        assert 3 == OneHot(3).infer(INTEGER).width
        with pytest.raises(ValueError, match=r"^OneHot is given 3: expected 0 to 2$"):
            OneHot(3).apply(integer(3))
        with pytest.raises(
            ShapeError, match=r"^OneHot is given 4x2 float32: expected a 1x1 tile of an integer$"
        ):
            OneHot(3).infer(TileType(4, 2, FLOAT))
