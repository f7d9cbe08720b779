"""Conformance, section 1: higher-order operators and generators; names begin with the case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fabric import SelectorType, ShapeError, Tile, TileType
from fabric.extend import ADDRESS_DTYPE
from operators import (
    Accum,
    Add,
    CacheReadAddresses,
    CacheWriteAddress,
    Div,
    Exp,
    ExpertAddresses,
    FilterLastTile,
    FlatMap,
    Function,
    Map,
    Matmul,
    MatmulSum,
    Metadata,
    Mul,
    RetileCol,
    RetileRow,
    RowAppend,
    RowSum,
    Selectors,
    SignalAllRead,
    SiLU,
    SplitCols,
    SplitRows,
)
from tests.operators.driving import FLOAT, ragged, selector, tile
from tests.operators.writing import Input, run

INTEGER = TileType(1, 1, ADDRESS_DTYPE)
FLOAT32 = np.dtype(np.float32)


def _tile(data: Any, valid_rows: int | None = None) -> Tile:
    array = np.array(data, FLOAT32)
    rows, cols = array.shape
    return Tile(rows, cols, FLOAT32, array, valid_rows=valid_rows)


def _show(value: Tile) -> str:
    """Return the rows of a tile, and its valid rows where they are not all."""
    assert value.data is not None
    rows = "/".join(",".join(f"{number:g}" for number in row) for row in value.data)
    return rows if value.valid_rows == value.rows else f"{rows}:{value.valid_rows}"


def _stream(text: str, shape: Sequence[int], tiles: dict[str, Tile]) -> Input:
    first = next(iter(tiles.values()))
    return text, shape, TileType(first.rows, first.cols, FLOAT32), tiles.__getitem__


def _apply(function: Function, *tiles: Any) -> Any:
    result = function.apply(*tiles)
    assert isinstance(result, Tile)
    return result.data


def test_m1_map_repeats_a_single_number() -> None:
    """M1: nine pairs of a 2x2 and a 1x1 tile; i * i everywhere, in order."""
    numbers = " ".join(map(str, range(9)))
    large = {str(i): _tile([[i, i], [i, i]]) for i in range(9)}
    small = {str(i): _tile([[i]]) for i in range(9)}
    _, (found,) = run(
        Map(Mul()), _stream(numbers, (9,), large), _stream(numbers, (9,), small), show=_show
    )
    assert " ".join(f"{i * i},{i * i}/{i * i},{i * i}" for i in range(9)) == found


def test_m2_stops_that_differ_are_an_error() -> None:
    """M2: the message names both elements, their places, the cycle and both producers."""
    inputs: list[Input] = [
        ("0 1|S1 2 3|S2", (1, 2, 2), FLOAT, _numbered),
        ("0 1|S1 2|S1 3|S2", (1, 2, 2), FLOAT, _numbered),
    ]
    report, _ = run(Map(Add()), *inputs)
    assert report.error is not None
    assert report.error["message"] == (
        "add_1: Tile(1x1 float32) at [0, 1, 0] of emit_1 closes 0 dimensions and "
        "Tile(1x1 float32) at [0, 1, 0] of emit_2 closes 1 dimension: "
        "expected equal structures, at cycle 3, element 3"
    )


def test_m2_an_input_that_ends_first_is_an_error() -> None:
    """M2: the end is named with the place where an element was expected."""
    inputs: list[Input] = [("0 1 2", (3,), FLOAT, _numbered), ("0 1", (3,), FLOAT, _numbered)]
    report, _ = run(Map(Add()), *inputs)
    assert report.error is not None
    assert report.error["message"] == (
        "add_1: Tile(1x1 float32) at [2] of emit_1 closes 0 dimensions and the end of emit_2 at "
        "[2]: expected equal structures, at cycle 3, element 2"
    )


def _numbered(word: str) -> Tile:
    return tile(int(word))


def test_m3_row_sum() -> None:
    """M3: a 3x4 tile of i + j: rows 6, 10 and 14, all valid, in 2 cycles at 6 FLOPs a cycle."""
    tiles = {"t": _tile([[i + j for j in range(4)] for i in range(3)])}
    report, (found,) = run(Map(RowSum(), flops_per_cycle=6), _stream("t", (1,), tiles), show=_show)
    assert found == "6/10/14"
    assert [unit.busy_cycles for unit in report.units if unit.name == "row_sum_1"] == [2]


def test_m4_row_append() -> None:
    """M4: row 3 of a 6x4 tile with 3 valid rows is overwritten; a seventh row has no room."""
    zeros = np.zeros((6, 4))
    row = _tile([[1, 2, 3, 4]])
    result = RowAppend().apply(_tile(zeros, valid_rows=3), row)
    assert result.valid_rows == 4
    assert result.data is not None
    assert result.data.tolist() == [[0] * 4] * 3 + [[1, 2, 3, 4]] + [[0] * 4] * 2
    with pytest.raises(ValueError, match=r"RowAppend of 1x. behind row 6 of a tile of 6x"):
        RowAppend().apply(_tile(zeros), row)


@pytest.mark.parametrize("shape", [(3, 4), (3, 1), (1, 4), (1, 1)])
def test_m5_elementwise_functions(shape: tuple[int, int]) -> None:
    """M5: rows and columns of 1 are repeated, against numpy in float64."""
    random = np.random.default_rng(0)
    a, b = random.uniform(1, 2, (3, 4)), random.uniform(1, 2, shape)
    for function, expected in ((Add(), a + b), (Mul(), a * b), (Div(), a / b)):
        found = _apply(function, _tile(a), _tile(b))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(_apply(SiLU(), _tile(a)), a / (1 + np.exp(-a)), rtol=1e-6)
    np.testing.assert_allclose(_apply(Exp(), _tile(a)), np.exp(a), rtol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
def test_m6_matmul(transposed: bool) -> None:
    """M6: A @ B, or A @ B.T; the inner dimensions agree."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(3, 5)), random.normal(size=(5, 4))
    stored = b.T.copy() if transposed else b
    found = _apply(Matmul(transposed), _tile(a), _tile(stored))
    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match="expected equal inner dimensions"):
        Matmul(transposed).infer(
            TileType(3, 6, FLOAT32), TileType(stored.shape[0], stored.shape[1], FLOAT32)
        )


def test_a1_retile_columns() -> None:
    """A1: three rows of three 2x2 tiles, side by side."""
    tiles = {str(i): _tile([[i, i], [i, i]]) for i in range(9)}
    source = _stream("0 1 2|S1 3 4 5|S1 6 7 8|S2", (1, 3, 3), tiles)
    _, (found,) = run(Accum(RetileCol()), source, show=_show)
    assert found == "0,0,1,1,2,2/0,0,1,1,2,2 3,3,4,4,5,5/3,3,4,4,5,5 6,6,7,7,8,8/6,6,7,7,8,8|S1"


def test_a2_retile_rows() -> None:
    """A2: three rows of three 1x4 tiles, below each other."""
    tiles = {str(i): _tile([[i] * 4]) for i in range(9)}
    source = _stream("0 1 2|S1 3 4 5|S1 6 7 8|S2", (1, 3, 3), tiles)
    _, (found,) = run(Accum(RetileRow()), source, show=_show)
    rows = [",".join([str(i)] * 4) for i in range(9)]
    assert found == " ".join("/".join(rows[i : i + 3]) for i in (0, 3, 6)) + "|S1"


def test_a3_stops_of_an_accumulator() -> None:
    """A3: below the rank it goes on, at the rank a plain value, above it the rest; it restarts."""
    source: Input = ("1 2|S1 3|S1 4|S2 5|S3", (1, 2, 2, 2), FLOAT, _numbered)
    _, (found,) = run(Accum(MatmulSum(), 2), source, source, show=_show)
    assert found == "30 25|S1"


def test_a4_padding_is_not_valid_after_retiling() -> None:
    """A4: valid, valid, padding: three rows, two of them valid."""
    tiles = {"v": _tile([[1]]), "p": _tile([[0]], valid_rows=0)}
    _, (found,) = run(Accum(RetileRow()), _stream("v v p|S1", (1, 3), tiles), show=_show)
    assert found == "1/1/0:2"


def test_a5_accumulated_matmul() -> None:
    """A5: the sum of A_k @ B_k; with rows decided by data the first product starts it."""
    random = np.random.default_rng(0)
    a, b = random.integers(0, 9, (2, 3, 2)), random.integers(0, 9, (2, 2, 4))
    lefts = {str(k): _tile(a[k]) for k in range(2)}
    rights = {str(k): _tile(b[k]) for k in range(2)}
    for rows in (3, ragged(0)):
        value = TileType(rows, 2, FLOAT32)
        left: Input = ("0 1|S1", (1, 2), value, lefts.__getitem__)
        _, (found,) = run(Accum(MatmulSum()), left, _stream("0 1|S1", (1, 2), rights), show=_show)
        assert found == _show(_tile(a[0] @ b[0] + a[1] @ b[1]))


def _three(rows: int, cols: int, valid: tuple[int, ...]) -> Input:
    tiles = {
        str(i): _tile(np.arange(rows * cols).reshape(rows, cols) + 100 * i, valid[i])
        for i in range(3)
    }
    return _stream("0 1 2|S1", (1, 3), tiles)


def test_f1_split_into_rows() -> None:
    """F1: three 3x4 tiles give nine 1x4, S1 on the very last only."""
    _, (found,) = run(FlatMap(SplitRows()), _three(3, 4, (3, 3, 3)), show=_show)
    rows = [f"{i},{i + 1},{i + 2},{i + 3}" for b in (0, 100, 200) for i in (b, b + 4, b + 8)]
    assert " ".join(rows) + "|S1" == found


def test_f2_split_into_columns() -> None:
    """F2: three 4x3 tiles give nine columns, each handed on as a row."""
    _, (found,) = run(FlatMap(SplitCols()), _three(4, 3, (4, 4, 4)), show=_show)
    rows = [f"{i},{i + 3},{i + 6},{i + 9}" for b in (0, 100, 200) for i in (b, b + 1, b + 2)]
    assert " ".join(rows) + "|S1" == found


def test_f3_split_into_valid_rows() -> None:
    """F3: the last tile has one valid row: seven rows, S1 on the seventh."""
    _, (found,) = run(FlatMap(SplitRows(valid_only=True)), _three(3, 4, (3, 3, 1)), show=_show)
    assert [7, "200,201,202,203|S1"] == [len(found.split()), found.split()[-1]]


def test_f4_a_tile_without_valid_rows_gives_none() -> None:
    """F4: the original emits all rows of it (a bug); here there is none, and the group closes."""
    _, (found,) = run(FlatMap(SplitRows(valid_only=True)), _three(3, 4, (1, 0, 0)), show=_show)
    assert found == "0,1,2,3 -0|S1"


def _integer(word: str) -> Tile:
    return Tile(1, 1, ADDRESS_DTYPE, np.array([[int(word)]], ADDRESS_DTYPE))


def _one_hot(word: str) -> Any:
    return selector(8)({int(word)})


def test_g1_expert_addresses() -> None:
    """G1: three tiles an expert, for experts 2, 1, 3 and 7."""
    source: Input = ("2 1 3 7", (4,), SelectorType(8, hits=1), _one_hot)
    _, (found,) = run(ExpertAddresses(3), source, show=_show)
    assert found == "6|S1 7|S1 8|S2 3|S1 4|S1 5|S2 9|S1 10|S1 11|S2 21|S1 22|S1 23|S2"


def test_g2_cache_read_addresses() -> None:
    """G2: 16 tiles a request; requests 0, 3 and 11 with 2, 4 and 3 tiles."""
    requests: Input = ("0 3 11", (3,), INTEGER, _integer)
    lengths: Input = ("2 4 3", (3,), INTEGER, _integer)
    _, (found,) = run(CacheReadAddresses(16), requests, lengths, show=_show)
    assert found == "0 1|S1 48 49 50 51|S1 176 177 178|S1"


def test_g3_filter_last_tile() -> None:
    """G3: stream 1 for all tiles but the last, which is for stream 0."""
    source: Input = ("2 4 3", (3,), INTEGER, _integer)
    _, (found,) = run(FilterLastTile(), source, show=lambda value: str(value.hits[0]))
    assert found == "1 0|S1 1 1 1 0|S1 1 1 0|S1"


def test_g4_metadata() -> None:
    """G4: one 1x1 tile an entry, S1 on the last."""
    _, (found,) = run(Metadata(np.array([5, 0, 7])), show=_show)
    assert found == "5 0 7|S1"


def test_g5_selectors() -> None:
    """G5: [2, 2] selectors of two hits each."""
    choice = np.array([[[0, 2], [1, 0]], [[2, 1], [0, 1]]])
    _, (found,) = run(Selectors(choice, 3), show=lambda value: "".join(map(str, value.hits)))
    assert found == "02 01|S1 12 01|S2"


def test_g6_cache_write_address() -> None:
    """G6: the last tile of a request; the original is one tile beyond (idx * offset + n)."""
    result = CacheWriteAddress(16).apply(_integer("3"), _integer("4"))
    assert result.data is not None
    assert result.data.tolist() == [[51]]


def test_g7_signal_all_read() -> None:
    """G7: one 1 for every request."""
    source = _stream("0 1|S1 0 1|S2", (1, 2, 2), {"0": _tile([[1, 2]]), "1": _tile([[3, 4]])})
    _, (found,) = run(Accum(SignalAllRead()), source, show=_show)
    assert found == "1 1|S1"
