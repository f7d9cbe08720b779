"""Functions of rows and sums: values, valid rows, cycles and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fabric import ShapeError, Tile, TileType, dtype_named
from fabric.extend import Empty, number_in
from fabric.graph.values.dims import symbol
from operators import (
    INTEGER,
    Add,
    AsType,
    AttentionScores,
    CacheWriteAddress,
    Div,
    Exp,
    LeadingCols,
    MaskScores,
    Matmul,
    MatmulSum,
    Maximum,
    Mul,
    PadRows,
    Quotient,
    RescaledSum,
    RetileCol,
    RetileRow,
    RowAppend,
    RowMaximum,
    RowSum,
    RunningMaximum,
    ScaledAdd,
    SetOffset,
    ShiftedExp,
    SignalAllRead,
    SiLU,
    SplitCols,
    SplitRows,
    SplitTiles,
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


VALID: list[tuple[Any, tuple[tuple[int, ...], ...], tuple[int, ...]]] = [
    (SiLU(), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (Exp(), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (AsType("bfloat16"), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (Add(), ((3, 4, 1, 2), (3, 4, 2, 1)), (3, 4, 2, 2)),
    (Add(), ((1, 4, 1, 3), (3, 4, 2, 1)), (3, 4, 2, 3)),
    (Add(), ((1, 4, 1, 1), (3, 4, 0, 2)), (3, 4, 0, 2)),
    (Add(), ((3, 4, 2, 1), (1, 4, 1, 3)), (3, 4, 2, 3)),
    (Add(), ((3, 4, 0, 3), (1, 4, 1, 2)), (3, 4, 0, 3)),
    (Add(), ((3, 1, 2, 1), (3, 4, 1, 3)), (3, 4, 2, 3)),
    (Add(), ((3, 1, 1, 1), (3, 4, 2, 0)), (3, 4, 2, 0)),
    (Add(), ((3, 4, 1, 2), (3, 1, 2, 1)), (3, 4, 2, 2)),
    (Add(), ((3, 4, 1, 0), (1, 1, 1, 1)), (3, 4, 1, 0)),
    (Matmul(), ((3, 4, 2, 1), (4, 5, 3, 2)), (3, 5, 2, 2)),
    (Matmul(transposed=True), ((3, 4, 2, 1), (5, 4, 3, 2)), (3, 5, 2, 3)),
    (LeadingCols(2), ((3, 4, 1, 3),), (3, 2, 1, 2)),
    (LeadingCols(2), ((3, 4, 1, 1),), (3, 2, 1, 1)),
    (PadRows(5), ((3, 4, 1, 2),), (5, 4, 1, 2)),
    (PadRows(3), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (RowAppend(), ((4, 3, 1, 2), (2, 3, 1, 1)), (4, 3, 3, 2)),
    (RowAppend(), ((4, 3, 2, 3), (2, 3, 2, 1)), (4, 3, 4, 3)),
    (ScaledAdd(), ((3, 4, 1, 2), (3, 4, 2, 3)), (3, 4, 1, 2)),
    (AttentionScores(1.0), ((3, 4, 2, 1), (5, 4, 3, 2)), (3, 5, 2, 3)),
    (MaskScores(), ((4, 5, 2, 3), (2, 5, 1, 1)), (4, 5, 2, 3)),
    (Quotient("float32"), ((3, 4, 1, 2), (3, 1, 2, 1)), (3, 4, 1, 4)),
    (ShiftedExp(), ((3, 4, 1, 2), (3, 1, 2, 1), (3, 1, 2, 1)), (3, 4, 1, 2)),
    (RowSum(), ((3, 4, 1, 2),), (3, 1, 1, 1)),
    (RowMaximum(), ((3, 4, 2, 2),), (3, 1, 2, 1)),
]
"""Functions, rows, columns, valid rows and valid columns of operands, and those of the result."""


@pytest.mark.parametrize(("function", "operands", "result"), VALID)
def test_valid(
    function: Any, operands: tuple[tuple[int, ...], ...], result: tuple[int, ...]
) -> None:
    """How much of a result is valid, with data and without; its size is what was inferred."""
    for data in (False, True):
        tiles = [
            Tile(
                rows,
                cols,
                FLOAT,
                np.ones((rows, cols), np.float32) if data else None,
                valid_rows=valid_rows,
                valid_cols=valid_cols,
            )
            for rows, cols, valid_rows, valid_cols in operands
        ]
        found = function.apply(*tiles)
        inferred = function.infer(*(TileType(rows, cols, FLOAT) for rows, cols, *_ in operands))

        assert result == (found.rows, found.cols, found.valid_rows, found.valid_cols)
        assert inferred == TileType(found.rows, found.cols, found.dtype)
        assert (found.data is not None) is data
        if data:
            assert (found.data.shape, found.data.dtype) == (result[:2], found.dtype)


def test_parts_that_are_valid() -> None:
    """Each part has what is valid of its place, lies where the tile does, and closes its row."""
    numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
    whole = Tile(4, 6, FLOAT, numbers, in_memory=True, valid_rows=3, valid_cols=4)
    parts = SplitTiles(2, 3).apply(whole)
    assert [(2, 3, 0), (2, 1, 1), (1, 3, 0), (1, 1, 1)] == [
        (part.valid_rows, part.valid_cols, stop) for part, stop in parts if isinstance(part, Tile)
    ]
    less = SplitTiles(2, 3).apply(Tile(4, 6, FLOAT, valid_rows=1, valid_cols=2))
    assert [(1, 2), (1, 0), (0, 2), (0, 0)] == [
        (part.valid_rows, part.valid_cols) for part, _ in less if isinstance(part, Tile)
    ]
    assert all(part.in_memory for part, _ in parts if isinstance(part, Tile))
    assert [[0, 1, 2], [6, 7, 8]] == values(parts[0][0])  # type: ignore[arg-type]
    assert [[15, 16, 17], [21, 22, 23]] == values(parts[3][0])  # type: ignore[arg-type]

    for split, flags, valid, first in (
        (SplitRows(), [1, 1, 1, 0], 4, [0, 1, 2, 3, 4, 5]),
        (SplitRows(valid_only=True), [1, 1, 1], 4, [0, 1, 2, 3, 4, 5]),
        (SplitCols(), [1, 1, 1, 1, 0, 0], 3, [0, 6, 12, 18]),
        (SplitCols(valid_only=True), [1, 1, 1, 1], 3, [0, 6, 12, 18]),
    ):
        lines = [part for part, stop in split.apply(whole) if isinstance(part, Tile) and not stop]
        assert flags == [part.valid_rows for part in lines]
        assert {(1, valid, True)} == {
            (each.rows, each.valid_cols, each.in_memory) for each in lines
        }
        assert [first] == values(lines[0])


def test_parts_of_no_columns() -> None:
    """Rows of tiles without columns are empty, each of its own."""
    assert [(Empty(0), 1)] * 2 == SplitTiles(2, 3).apply(Tile(4, 0, FLOAT))
    assert [] == SplitTiles(2, 3).apply(Tile(0, 3, FLOAT))
    for rows, cols in ((3, 3), (4, 4)):
        with pytest.raises(ValueError, match=r" is cut into 2x3: expected a divisor of each$"):
            SplitTiles(2, 3).apply(Tile(rows, cols, FLOAT))


def test_parts_put_together() -> None:
    """Valid rows below each other are added up, and so are valid columns beside each other."""
    one = tile(np.ones((2, 3)), valid_rows=1, valid_cols=2, in_memory=True)
    two = tile(np.zeros((2, 3)), valid_rows=2, valid_cols=3)
    for kind, size, valid in ((RetileRow(), (4, 3), (3, 2)), (RetileCol(), (2, 6), (1, 5))):
        result = kind.infer(2, TileType(2, 3, FLOAT))
        state = kind.update(kind.update(kind.start(result, True), one), two)
        for functional in (True, False):
            found = kind.finish(state, result, functional)
            assert (*size, *valid, True) == (
                found.rows, found.cols, found.valid_rows, found.valid_cols, found.in_memory
            )  # fmt: skip
            assert (found.data is not None) is functional
        for type_, rows, cols in (
            (TileType(4, 3, FLOAT), *((0, 3) if size[0] == 4 else (4, 0))),
            (TileType(symbol("n"), symbol("m"), FLOAT), 0, 0),
        ):
            nothing = kind.finish([], type_, True)
            assert nothing.data is not None
            assert (rows, cols) == (nothing.rows, nothing.cols) == nothing.data.shape
            assert kind.finish([], type_, False).data is None
        assert [24, 24, 0] == [
            kind.growth_bytes(None, one), kind.growth_bytes([one], two), kind.start_bytes(result)
        ]  # fmt: skip


def test_room_of_sums() -> None:
    """The first tile becomes a sum of unknown size: later ones take no more room."""
    x = tile([[1, 2, 3]])
    unknown = TileType(symbol("n"), 3, FLOAT)
    assert [12, 0, 0, 12] == [
        Sum().growth_bytes(None, x),
        Sum().growth_bytes(Sum().update(None, x), x),
        Sum().start_bytes(unknown),
        Sum().start_bytes(TileType(1, 3, FLOAT)),
    ]
    assert [] == values(Sum().finish(None, unknown, True))
    assert Sum().finish(None, unknown, False).data is None
    product = MatmulSum(transposed=True)
    a, b = tile(np.ones((3, 2))), tile(np.ones((5, 2)))
    assert [4 * 3 * 5, 0] == [
        product.growth_bytes(None, a, b), product.growth_bytes(product.update(None, a, b), a, b)
    ]  # fmt: skip


def test_signals_are_of_one_value() -> None:
    """Of none or of two there is no signal; nothing is computed."""
    with pytest.raises(ShapeError, match=r"^what is given nothing: expected 1 value$"):
        SignalAllRead().check("what", ())
    assert 0 == SignalAllRead().flops(INTEGER) == SignalAllRead().operand_bytes(INTEGER)


COST: list[tuple[Any, tuple[tuple[int, int], ...], int, int | None]] = [
    (Add(), ((3, 4), (1, 4)), 12, None),
    (Div(), ((1, 4), (3, 1)), 12, None),
    (Maximum(), ((3, 1), (3, 4)), 12, None),
    (Mul(), ((3, 4), (3, 4)), 12, None),
    (Exp(), ((3, 4),), 4 * 12, None),
    (SiLU(), ((3, 4),), 8 * 12, None),
    (AsType("bfloat16"), ((3, 4),), 12, None),
    (AsType("mxfp8_e4m3"), ((3, 32),), 2 * 96, None),
    (RowSum(), ((3, 4),), 12, None),
    (RowMaximum(), ((3, 4),), 12, None),
    (Matmul(), ((3, 4), (4, 5)), 2 * 3 * 4 * 5, None),
    (Matmul(transposed=True), ((3, 4), (5, 4)), 2 * 3 * 4 * 5, None),
    (MatmulSum(), ((3, 4), (4, 5)), 2 * 3 * 4 * 5, None),
    (AttentionScores(0.5), ((3, 4), (5, 4)), 2 * 3 * 4 * 5 + 3 * 5, None),
    (MaskScores(), ((3, 4), (1, 4)), 12, None),
    (Quotient("float16"), ((3, 4), (3, 1)), 12, None),
    (ShiftedExp(), ((3, 4), (3, 1), (3, 1)), 5 * 12, None),
    (RunningMaximum(), ((3, 4),), 3 * (4 + 6), None),
    (RescaledSum(), ((3, 4), (4, 5), (3, 1), (3, 1)), 3 * (2 * 4 * 5 + 4 + 5 + 1), None),
    (ScaledAdd(), ((3, 4), (1, 4)), 12, None),
    (ScaledAdd(alpha=2.0), ((3, 4), (1, 4)), 2 * 12, None),
    (ScaledAdd(beta=0.0), ((3, 4), (3, 1)), 2 * 12, None),
    (ScaledAdd(0.5, -1.0), ((3, 4), (3, 4)), 3 * 12, None),
    (LeadingCols(2), ((3, 4),), 0, None),
    (PadRows(7), ((3, 4),), 0, 1),
    (SignalAllRead(), ((3, 4),), 0, 1),
    (Sum(), ((3, 4),), 12, None),
    (RetileRow(), ((3, 4),), 0, 0),
    (RetileCol(), ((3, 4),), 0, 0),
]
"""Functions, rows and columns of operands, operations, cycles where they are fixed."""

HOLDING = {"Matmul", "MatmulSum", "AttentionScores"}
"""Those that hold their second operand, and 16 numbers for each column of the first."""


@pytest.mark.parametrize(("function", "operands", "flops", "cycles"), COST)
def test_what_functions_state(
    function: Any,
    operands: tuple[tuple[int, int], ...],
    flops: int,
    cycles: int | None,
) -> None:
    """Operations, cycles and what they hold on chip, and how many operands they take."""
    types = tuple(TileType(*each, FLOAT) for each in operands)
    name = type(function).__name__
    held = 16 * types[0].cols + types[-1].size_bytes if name in HOLDING else 0
    assert (flops, cycles, held) == (
        function.flops(*types),
        function.fixed_cycles,
        function.operand_bytes(*types),
    )
    assert len(types) == function.operands
    assert types == function.check("it", types)
    more = f"{len(types)} tiles" if len(types) > 1 else "1 tile"
    if name == "SignalAllRead":
        more = "1 value"
    with pytest.raises(ShapeError) as caught:
        function.check("it", (*types, types[0]))
    found = ", ".join(map(str, (*types, types[0])))
    assert caught.value.message == f"it is given {found}: expected {more}"


def _takes(function: Any, *types: TileType) -> bool:
    try:
        function.check("it", types)
    except ShapeError:
        return False
    return True


def test_what_functions_take() -> None:
    """Which refuse integers, take several element types, or share scales; what is elementwise."""
    functions = {type(each[0]).__name__: each[:2] for each in COST}
    found: dict[str, set[str]] = {}
    for name, (function, operands) in functions.items():
        sizes = [(rows, 32) for rows, _ in operands]
        floats, whole, halves, scaled = (
            [TileType(*size, dtype_named(each)) for size in sizes]
            for each in ("float32", "int8", "float16", "mxfp8_e4m3")
        )
        for kind, types in (
            ("whole", whole),
            ("mixed", [*floats[:-1], halves[-1]] if len(sizes) > 1 else []),
            ("scaled", scaled),
        ):
            if types and _takes(function, *types):
                found.setdefault(kind, set()).add(name)
        if getattr(function, "elementwise", False):
            found.setdefault("elementwise", set()).add(name)
    assert set(functions) - found["whole"] == {
        "AsType", "Exp", "MaskScores", "RescaledSum", "RunningMaximum", "ScaledAdd", "ShiftedExp",
        "SiLU",
    }  # fmt: skip
    assert found["mixed"] == {"MaskScores", "ScaledAdd"}
    assert found["scaled"] == {"AsType", "Matmul", "SignalAllRead"}
    assert found["elementwise"] == {"Add", "AsType", "Div", "Exp", "Maximum", "Mul", "SiLU"}
