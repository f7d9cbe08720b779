"""Initial: elements in front, stop for stop; loops that begin with them; what is refused."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import (
    Feedback,
    Program,
    Selector,
    SelectorType,
    ShapeError,
    StreamType,
    Tile,
    TileType,
    TupleType,
    simulate,
)
from fabric.extend import BoolType, BufferType, Element, ValueType
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.initial import any_value
from operators import (
    INTEGER,
    Add,
    Flatten,
    Initial,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Promote,
    Reassemble,
    Selectors,
    Tensor,
)
from tests.operators.driving import FLOAT, Collect, Emit, number_in, tile
from tests.operators.writing import read, write
from tests.profiles import examples

TILES = TileType(2, 3, np.dtype(ml_dtypes.bfloat16))
INTEGERS = {
    f"{kind}{bits}": (first * 2 ** (bits - 1), (2 + first) * 2 ** (bits - 1) - 1)
    for bits in (4, 8, 16, 32, 64)
    for kind, first in (("int", -1), ("uint", 0))
}
"""The least and the largest number of each type of integers."""
RAGGED = symbol("n", ragged=True)


def found(
    initial: Initial, shape: tuple[Any, ...], value: ValueType, elements: list[Element]
) -> list[Any]:
    """Return what comes out of ``initial`` behind a stream of ``elements``."""
    seen: list[Any] = []
    with Program("initial", mode="functional") as program:
        Collect(seen)(initial(Emit(StreamType(shape, value), elements)()))
    report = simulate(program)
    assert ("completed", (), ()) == (
        report.status,
        report.warnings,
        report.comparison.warnings,
    )
    return seen


@pytest.mark.parametrize(
    ("shape", "count", "text", "expected"),
    [
        ((3,), 1, "0 1 2", "9 0 1 2"),
        ((3,), 2, "0 1 2", "9 9 0 1 2"),
        ((0,), 2, "", "9 9"),
        ((2, 3), 1, "0 1 2|S1 3 4 5|S1", "9 9 9|S1 0 1 2|S1 3 4 5|S1"),
        ((1, 2, 2), 1, "0 1|S1 2 3|S2", "9 9|S1 9 9|S2 0 1|S1 2 3|S2"),
        ((1, 1), 3, "0|S1", "9|S1 9|S1 9|S1 0|S1"),
    ],
)
def test_stops(shape: tuple[int, ...], count: int, text: str, expected: str) -> None:
    """Whole sub-tensors come first, each closed by the stops that a tensor of their size has."""
    elements = read(text, lambda word: tile(int(word)))
    seen = found(Initial(9, count), shape, FLOAT, elements)

    assert expected == write(seen, lambda value: f"{number_in(value):g}")


@pytest.mark.parametrize(
    ("shape", "count", "text", "expected"),
    [
        ((3,), 1, "0 1 2", "9 0 1"),
        ((3,), 3, "0 1 2", "9 9 9"),
        ((2, 3), 1, "0 1 2|S1 3 4 5|S1", "9 9 9|S1 0 1 2|S1"),
        ((2, 1, 2), 1, "0 1|S2 2 3|S2", "9 9|S2 0 1|S2"),
    ],
)
def test_as_long_as_before(shape: tuple[int, ...], count: int, text: str, expected: str) -> None:
    """As many sub-tensors are dropped at the end as come in front; all of it is read."""
    elements = read(text, lambda word: tile(int(word)))
    seen = found(Initial(9, count, keep_length=True), shape, FLOAT, elements)

    assert expected == write(seen, lambda value: f"{number_in(value):g}")


def test_a_recurrence() -> None:
    """A running sum needs no selectors, and leaves nothing over."""
    x = np.arange(5 * 8, dtype=np.float32).reshape(5, 8)
    with Program("running-sum", mode="functional") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 8))())
        before = Feedback(rows.type)
        sums = Map(Add())(rows, before)
        before.connect(Initial(0, keep_length=True)(sums))
        LinearOffChipStore("y")(Promote(0)(sums))
    program.expect(y=lambda: x.cumsum(axis=0))
    report = simulate(program)

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)


def test_type() -> None:
    """The outermost dimension grows, also where data decide it."""
    with Program("types"):
        streams = [
            Initial(0, 3)(Emit(StreamType(shape, FLOAT), [])())
            for shape in ((4,), (symbol("D"), 2), (2, 5, 7))
        ]

    assert [
        "[7] of 1x1 float32",
        "[D + 3, 2] of 1x1 float32",
        "[5, 5, 7] of 1x1 float32",
    ] == [str(stream.type) for stream in streams]


class TestValues:
    @pytest.mark.parametrize(
        ("given", "value", "expected"),
        [
            (True, BoolType(), True),
            (False, BoolType(), False),
            (2, SelectorType(4), Selector((2,), 4)),
            ((3, 1), SelectorType(4, hits=2), Selector((1, 3), 4)),
            (np.array([1]), SelectorType(2, hits=1), Selector((1,), 2)),
            ((), SelectorType(4), Selector((), 4)),
        ],
    )
    def test_no_tiles(self, given: Any, value: ValueType, expected: Any) -> None:
        """A truth value is itself; indices make a selector."""
        assert [(expected, 0)] == found(Initial(given), (0,), value, [])

    @pytest.mark.parametrize(
        ("given", "value"),
        [(0, TILES), (2.5, TILES), (np.arange(6).reshape(2, 3), TILES), (7, INTEGER)],
    )
    def test_tiles(self, given: Any, value: TileType) -> None:
        """One number for all of a tile, or one for each place."""
        ((made, stop),) = found(Initial(given), (0,), value, [])

        assert isinstance(made, Tile)
        assert (value.rows, value.cols, value.dtype, False, 0) == (
            made.rows,
            made.cols,
            made.dtype,
            made.in_memory,
            stop,
        )
        np.testing.assert_array_equal(
            np.broadcast_to(given, (value.rows, value.cols)), np.asarray(made.data, np.float64)
        )

    def test_tuples(self) -> None:
        """A tuple has a value for each of its items."""
        value = TupleType((FLOAT, SelectorType(3), BoolType()))
        ((made, _),) = found(Initial((4, 2, False)), (0,), value, [])

        assert (4.0, Selector((2,), 3), False) == (number_in(made[0]), *made[1:])

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (BoolType(), True),
            (SelectorType(3), 0),
            (SelectorType(3, hits=2), (0, 1)),
            (TILES, 0),
            (TupleType((FLOAT, BoolType())), (0, True)),
            (BufferType((2,), FLOAT), None),
            (TileType(symbol("D"), 4, FLOAT.dtype), None),
            (TupleType((FLOAT, BufferType((2,), FLOAT))), None),
        ],
    )
    def test_any(self, value: ValueType, expected: Any) -> None:
        """There is some value for every type that can have one, and it is accepted."""
        assert expected == any_value(value)
        if expected is not None:
            assert 1 == len(found(Initial(expected), (0,), value, []))


@pytest.mark.parametrize(
    ("initial", "shape", "value", "message"),
    [
        (
            Initial(0, 0),
            (3,),
            FLOAT,
            "Initial puts 0 sub-tensors in front of x.0 [3] of 1x1 float32: expected at least 1",
        ),
        (
            Initial(0, 4, keep_length=True),
            (3,),
            FLOAT,
            "Initial drops the last 4 of x.0 [3] of 1x1 float32: expected an outermost dimension "
            "that is a number, at least 4",
        ),
        (
            Initial(0, keep_length=True),
            (RAGGED,),
            FLOAT,
            "Initial drops the last 1 of x.0 [n~] of 1x1 float32: expected an outermost dimension "
            "that is a number, at least 1",
        ),
        (
            Initial(0),
            (3, RAGGED),
            FLOAT,
            "Initial puts 0 in front of x.0 [3, n~] of 1x1 float32: expected inner dimensions that "
            "are numbers above 0",
        ),
        (
            Initial(0),
            (3, 0),
            FLOAT,
            "Initial puts 0 in front of x.0 [3, 0] of 1x1 float32: expected inner dimensions that "
            "are numbers above 0",
        ),
        (
            Initial(0),
            (3,),
            BoolType(),
            "Initial puts 0 in front of x.0 [3] of bool: expected True or False",
        ),
        (
            Initial(4),
            (3,),
            SelectorType(4),
            "Initial puts 4 in front of x.0 [3] of selector of 4: expected indices from 0 to 3",
        ),
        (
            Initial("a"),
            (3,),
            SelectorType(4, hits=1),
            "Initial puts 'a' in front of x.0 [3] of selector of 4: expected 1 index from 0 to 3",
        ),
        (
            Initial(np.zeros(3)),
            (3,),
            TILES,
            "Initial puts array([0., 0., 0.]) in front of x.0 [3] of 2x3 bfloat16: expected a "
            "number, or 2x3 of them",
        ),
        (
            Initial("zero"),
            (3,),
            TILES,
            "Initial puts 'zero' in front of x.0 [3] of 2x3 bfloat16: expected a number, or 2x3 of "
            "them",
        ),
        (
            Initial(257),
            (3,),
            TILES,
            "Initial puts 257 in front of x.0 [3] of 2x3 bfloat16: expected numbers that bfloat16 "
            "can hold",
        ),
        (
            Initial(-1),
            (3,),
            INTEGER,
            "Initial puts -1 in front of x.0 [3] of 1x1 uint64: expected numbers that uint64 can "
            "hold",
        ),
        (
            Initial(0),
            (3,),
            TileType(symbol("D"), 4, FLOAT.dtype),
            "Initial puts 0 in front of x.0 [3] of Dx4 float32: expected tiles whose rows and "
            "columns are numbers",
        ),
        (
            Initial(0),
            (3,),
            BufferType((2,), FLOAT),
            "Initial puts 0 in front of x.0 [3] of buffer [2] of 1x1 float32: expected a stream "
            "without buffers, for which nobody has asked room",
        ),
        (
            Initial((0,)),
            (3,),
            TupleType((FLOAT, BoolType())),
            "Initial puts (0,) in front of x.0 [3] of (1x1 float32, bool): expected a tuple of 2",
        ),
    ],
)
def test_refused(initial: Initial, shape: Any, value: ValueType, message: str) -> None:
    """What does not fit is refused at the line that wires it."""
    with Program("refused"), pytest.raises(ShapeError) as caught:
        initial(Emit(StreamType(shape, value), [], name="x")())

    assert (message, __file__) == (caught.value.message, caught.value.file)


@examples(quick=300)
@given(
    dtype=st.sampled_from(
        [np.dtype(vars(ml_dtypes).get(name, name)) for name in ("bool", *INTEGERS)]
    ),
    number=st.one_of(
        st.integers(-20, 300),
        st.integers(-(2**63), 2**64 - 1),
        st.integers(-600, 600).map(lambda halves: halves / 2),
        st.sampled_from([np.inf, -np.inf, np.nan, 1e30]),
    ),
)
def test_integers_are_what_is_given(dtype: Any, number: float) -> None:
    """A whole number that the type has, by Python's integers, or a refusal: nothing is cut off."""
    least, most = INTEGERS.get(dtype.name, (0, 1))
    held = math.isfinite(number) and number == int(number) and least <= number <= most
    with Program("whole", mode="functional"):
        emitted = Emit(StreamType((1,), TileType(1, 1, dtype)), [], name="x")()
        if held:
            Initial(number)(emitted)
            return
        with pytest.raises(ShapeError, match=f"expected numbers that {dtype.name} can hold"):
            Initial(number)(emitted)


def running_sum(numbers: np.ndarray[Any, Any], begin: int, depth: int = 2) -> Program:
    """Add every number to the sum of those before it, which goes round."""
    count = len(numbers)
    with Program("running-sum", mode="functional", channel_depth=depth) as program:
        x = Flatten(0, 2)(
            LinearOffChipLoad(
                Tensor((count, 1), numbers.reshape(count, 1), dtype="float32"), (1, 1)
            )()
        )
        so_far = Feedback(StreamType((count - 1,), x.value))
        y = Map(Add())(x, Initial(begin)(so_far))
        route = Flatten(0, 1)(Selectors(np.zeros((count - 1, 1), int), width=1)())
        so_far.connect(Flatten(0, 1)(Reassemble()([y], route)))
        LinearOffChipStore("y")(Promote(0)(y))  # [N, 1]: every number ends a line
    program.expect(y=lambda: begin + np.cumsum(numbers).reshape(count, 1))
    return program


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("begin", [0, 3])
def test_a_loop_begins_and_ends(begin: int, depth: int) -> None:
    """The sums of a loop are numpy's; the loop ends with the selectors that let it go round."""
    numbers = np.random.default_rng(0).integers(0, 9, size=12).astype(np.float64)
    report = simulate(running_sum(numbers, begin, depth))

    assert ("completed", True) == (report.status, report.verified)


def test_without_data() -> None:
    """In timing mode what may be an address is real, in tuples, too; all else is not."""
    seen: list[Any] = []
    value = TupleType((INTEGER, TILES, TileType(1, 1, np.dtype(np.int32))))
    with Program("timing", mode="timing") as program:
        Collect(seen)(Initial((7, 0, 5), 2)(Emit(StreamType((0,), value), [])()))
    assert simulate(program).status == "completed"
    assert len(seen) == 2
    for (address, tile_, integer), stop in seen:
        assert (number_in(address), address.dtype, stop) == (7, INTEGER.dtype, 0)
        assert tile_.data is integer.data is None
        assert (tile_.rows, tile_.cols, integer.rows) == (2, 3, 1)


def test_timing() -> None:
    """No cycles, a hop, and the slots of its channel: 3 in front of 1 in a channel of 2.

    They leave at 0, 0 and, when the first was taken at 1 and its credit is back, at 2; each takes
    the reader a cycle. The element that was sent at 0 came at 1, and is passed on when the second
    was taken at 2, at 3; it is visible at 4 and taken then.
    """
    seen: list[Any] = []
    with Program("timing") as program:
        Collect(seen)(Initial(True, 3)(Emit(StreamType((1,), BoolType()), [(False, 0)])()))
    report = simulate(program)
    clocks = {unit.name: report.cycles - unit.idle_cycles for unit in report.units}  # type: ignore[operator]

    assert [True, True, True, False] == [value for value, _ in seen]
    assert {"emit_1": 0, "initial_1": 3, "collect_1": 5} == clocks
    assert [0] == [unit.busy_cycles for unit in report.units if unit.name == "initial_1"]
