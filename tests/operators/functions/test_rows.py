"""Functions of rows and sums: values, valid rows, cycles and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fabric import ShapeError, Tile, TileType
from fabric.extend import number_in
from operators import (
    INTEGER,
    CacheWriteAddress,
    Exp,
    RowAppend,
    RowMaximum,
    RowSum,
    SetOffset,
    SignalAllRead,
    Sum,
)
from operators.tiles.integers import integer

FLOAT = np.dtype(np.float32)


def tile(data: Any, **valid: Any) -> Tile:
    """Return a tile of ``data``."""
    array = np.array(data, np.float32)
    rows, cols = array.shape
    return Tile(rows, cols, FLOAT, array, **valid)


def values(of: Tile) -> Any:
    """Return the numbers of a tile as lists."""
    assert of.data is not None
    return of.data.tolist()


class TestRowWise:
    def test_sums(self) -> None:
        """Conformance M3: entry i + j gives 6, 10, 14; all rows stay valid; 12 operations."""
        x = tile([[i + j for j in range(4)] for i in range(3)])
        result = RowSum().apply(x)

        assert [[6], [10], [14]] == values(result)
        assert (3, 1, 3) == (result.rows, result.cols, result.valid_rows)
        assert RowSum().flops(x) == 12

    def test_columns_that_are_not_valid(self) -> None:
        """They are in no sum and are never the largest."""
        x = tile([[1, 5, 99], [-2, -7, 99]], valid_cols=2)

        assert [[6], [-9]] == values(RowSum().apply(x))
        assert [[5], [-2]] == values(RowMaximum().apply(x))

    def test_exponentials_of_columns_that_are_not_valid(self) -> None:
        """They are 0, so that a sum over whole rows is that of the valid ones."""
        result = Exp().apply(tile([[0, 1, 9], [0, -1, 9]], valid_cols=2))

        assert result.data is not None
        np.testing.assert_allclose(
            result.data, [[1, math.e, 0], [1, 1 / math.e, 0]], rtol=1e-6, atol=0
        )

    def test_without_data(self) -> None:
        """Timing mode knows the shape."""
        result = RowSum().apply(Tile(3, 4, FLOAT))
        assert (3, 1, None) == (result.rows, result.cols, result.data)


class TestRowAppend:
    def test_behind_the_valid_rows(self) -> None:
        """Conformance M4: row 3 of 6 is overwritten, 4 are valid; the old tile stays as it was."""
        before = tile(np.zeros((6, 4)), valid_rows=3)
        after = RowAppend().apply(before, tile([[1, 2, 3, 4]]))

        assert after.valid_rows == 4
        assert [[0] * 4] * 3 + [[1, 2, 3, 4]] + [[0] * 4] * 2 == values(after)
        assert [[0] * 4] * 6 == values(before)

    def test_no_room(self) -> None:
        """The message says how many rows there are."""
        with pytest.raises(ValueError, match=r"^RowAppend of 1x. behind row 2 of a tile of 2x"):
            RowAppend().apply(tile([[1], [2]]), tile([[3]]))

    def test_other_columns(self) -> None:
        """Rows have the tile's columns."""
        with pytest.raises(ShapeError) as caught:
            RowAppend().infer(TileType(6, 4, FLOAT), TileType(1, 3, FLOAT))
        assert caught.value.message == (
            "RowAppend appends 1x3 float32 to 6x4 float32: "
            "expected equal columns and one element type"
        )


class TestSetOffset:
    def test_valid_rows(self) -> None:
        """The integer says how many rows are valid."""
        result = SetOffset().apply(tile([[1], [2], [3]]), integer(1))
        assert (1, [[1], [2], [3]]) == (result.valid_rows, values(result))

    def test_too_many(self) -> None:
        """There are no more than the tile has."""
        with pytest.raises(ValueError, match=r"^SetOffset of 3 on a tile of 2x\d+: expected"):
            SetOffset().apply(tile([[1], [2]]), integer(3))

    def test_no_integer(self) -> None:
        """The second operand is an integer."""
        with pytest.raises(ShapeError) as caught:
            SetOffset().infer(TileType(2, 1, FLOAT), TileType(1, 1, FLOAT))
        assert caught.value.message == (
            "SetOffset is given 2x1 float32 and 1x1 float32: expected a 1x1 tile of an integer"
        )


class TestCacheWriteAddress:
    def test_last_tile(self) -> None:
        """Conformance G6, its last tile: request 3 of 16 tiles' room has 2: tile 49."""
        assert number_in(CacheWriteAddress(16).apply(integer(3), integer(2))) == 49

    def test_nothing_to_write_to(self) -> None:
        """A request without tiles has no last one."""
        with pytest.raises(ValueError, match=r"^request 3 has no tiles: expected at least 1"):
            CacheWriteAddress(16).apply(integer(3), integer(0))


@pytest.mark.parametrize("function", [RowAppend(), SetOffset(), CacheWriteAddress(4)])
def test_bookkeeping_takes_one_cycle_and_no_arithmetic(function: Any) -> None:
    """Whatever the size."""
    assert (1, 0) == (function.fixed_cycles, function.flops())


class TestSums:
    def test_sum(self) -> None:
        """Element by element, one operation each; fresh for every group."""
        kind, state = TileType(1, 2, FLOAT), Sum().start(TileType(1, 2, FLOAT), True)
        for row in ([1, 2], [3, 4], [5, 6]):
            state = Sum().update(state, tile([row]))

        assert [[9, 12]] == values(Sum().finish(state, kind, True))
        assert [[0, 0]] == values(Sum().finish(Sum().start(kind, True), kind, True))
        assert Sum().flops(tile([[1, 2]])) == 2

    def test_signal(self) -> None:
        """Conformance G7: the number 1 for a group, one cycle a tile."""
        signal = SignalAllRead()
        state = signal.update(signal.start(INTEGER, False), tile([[1]]))

        assert number_in(signal.finish(state, INTEGER, False)) == 1
        assert signal.fixed_cycles == 1
