"""Codes of values, tables that grow, automata that are found out, and who shares them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

from fabric import Program, Selector, Stream, Tile, simulate
from fabric.extend import Empty, Value
from fabric.graph.values.fit import freeze
from fabric.timing.compiled import automaton as automaton_of
from fabric.timing.compiled import codes as codes_module
from fabric.timing.compiled import columns as c
from fabric.timing.compiled.automaton import Automaton, Rows, Tables
from fabric.timing.compiled.codes import Codes, LookedError, OpaqueTile, UncodedError
from fabric.timing.compiled.kernel_stages import look_up
from operators import (
    Accum,
    Consumer,
    Exp,
    Flatten,
    LinearOffChipLoad,
    Map,
    Metadata,
    RandomOffChipLoad,
    Repeat,
    Reshape,
    RetileRow,
    ScaledAdd,
    SiLU,
    Tensor,
    Zip,
)
from tests.compiled.both import described

INT8 = np.dtype(np.int8)
FLOAT = np.dtype(np.float32)


def of_one(number: int, dtype: Any = np.int64, **placed: Any) -> Tile:
    """Return a tile with a number."""
    return Tile(1, 1, np.dtype(dtype), np.array([[number]], dtype), **placed)


VALUES: list[Value] = [
    True,
    False,
    Empty(0),
    Empty(3),
    Selector((), 2),
    Selector((0,), 2),
    Selector((0,), 3),
    Tile(1, 1, FLOAT),
    Tile(1, 1, FLOAT, in_memory=True),
    Tile(2, 1, FLOAT),
    Tile(2, 1, FLOAT, valid_rows=1),
    Tile(1, 2, FLOAT, valid_cols=0),
    Tile(1, 1, np.dtype(ml_dtypes.float8_e4m3fn)),
    Tile(1, 1, np.dtype(ml_dtypes.float8_e5m2)),
    Tile(1, 2, INT8, np.array([[1, 2]], np.int8)),
    Tile(1, 2, INT8, np.array([[2, 1]], np.int8)),
    *(of_one(number) for number in (0, 1, 2**31 - 1, 2**31, -1, 2**62)),
    of_one(1, np.int8),
    of_one(1, in_memory=True),
    (True, of_one(1)),
    (True, of_one(2)),
    (True, (of_one(2), Selector((1,), 2))),
]


class TestCodes:
    def test_values(self) -> None:
        """Each value with each level is an integer of its own, and comes back as it was."""
        codes = Codes()
        elements = [(value, level) for value in VALUES for level in (0, 1, 127)]
        found = [codes.code(element) for element in elements]

        assert len(set(found)) == len(elements)
        assert all(0 <= code < 1 << 62 for code in found)
        back = [codes.element(code) for code in found]
        assert described(elements) == described(back)

    def test_sent(self) -> None:
        """What a user has sent has the code it had before."""
        codes = Codes()
        for number in (0, 1, 7):
            before, after = of_one(number), of_one(number)
            freeze(after, sent=True)
            assert codes.code((before, 0)) == codes.code((after, 0))

    def test_alike(self) -> None:
        """Values that are made anew have the codes of the others."""
        codes = Codes()
        found = []
        for _ in range(2):
            made: list[Value] = [of_one(5), (False, Tile(1, 1, FLOAT)), Selector((1,), 2)]
            found.append([codes.code((value, 2)) for value in made])
        assert found[0] == found[1]

    def test_bare(self) -> None:
        """A bare stop is marked, and the loop knows its dimension, of many kinds, too."""
        codes = Codes()
        for dimension in range(100):
            code = codes.code((Empty(dimension), dimension + 1))
            assert code & c.BARE
            assert codes.empties[code >> c.KIND_SHIFT] == dimension
        assert not codes.code((True, 5)) & c.BARE

    def test_bounded(self) -> None:
        """Of a stream of values that are all new few are kept, and no code changes."""
        codes = Codes()
        with mock.patch.object(codes_module, "_MOST_KEPT", 10):
            first = [codes.code((Selector((number,), 99), 0)) for number in range(50)]
            again = [codes.code((Selector((number,), 99), 0)) for number in range(50)]
            numbers = [codes.element(codes.code((of_one(number), 0))) for number in range(50)]
        assert first == again
        assert described(numbers) == described([(of_one(number), 0) for number in range(50)])
        assert max(len(codes._coded), len(codes._made)) <= 10

    @pytest.mark.parametrize("element", [(True, 128), (True, -1), (5, 0), (object(), 0)])
    def test_uncoded(self, element: Any) -> None:
        """What has no code is refused."""
        with pytest.raises(UncodedError):
            Codes().code(element)

    def test_own_tile(self) -> None:
        """A user's own kind of tile may say more than a tile does."""

        class Labelled(Tile):
            __slots__ = ("label",)

        with pytest.raises(UncodedError):
            Codes().code((Labelled(1, 1, FLOAT), 0))

    def test_opaque(self) -> None:
        """A number that is passed on cannot be looked at; other values can."""
        codes = Codes()
        code = codes.code((of_one(7), 1))
        element = codes.opaque(code & ~c.NUMBER_MASK, 3)
        assert element is not None
        tile = element[0]
        assert isinstance(tile, OpaqueTile)
        with pytest.raises(LookedError):
            tile.data  # noqa: B018 - it raises
        assert codes.same_kind(tile, 1) | (code & c.NUMBER_MASK) == code
        moved = tile.placed(in_memory=True)
        assert isinstance(moved, OpaqueTile)
        expected = codes.code((of_one(7, in_memory=True), 0))
        assert codes.same_kind(moved, 0) | (code & c.NUMBER_MASK) == expected
        plain = codes.opaque(codes.code((Tile(1, 1, FLOAT), 0)), 3)
        assert plain is not None
        assert not isinstance(plain[0], OpaqueTile)


class TestTables:
    def test_rows(self) -> None:
        """Rows are where they were when the array has grown."""
        rows = Rows(2, room=4)
        starts = [rows.extend([[at, 10 * at]] * at) for at in range(20)]
        for at, start in enumerate(starts):
            assert [[at, 10 * at]] * at == rows.array[start : start + at].tolist()
        assert sum(range(20)) == rows.count

    @pytest.mark.parametrize("room", [1 << 14, 64])
    def test_known(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """What follows is found again by the loop, of many; what is not known is not found."""
        monkeypatch.setattr(automaton_of, "_KNOWN", room)
        tables = Tables()
        states = [tables.state(c.PEEK, port, carries=False) for port in range(7)]
        pairs = [*itertools.product(states, [-1, *(code * 12_345_678_901 for code in range(300))])]
        for number, (state, code) in enumerate(pairs):
            tables.transition(state, code, [[c.CHARGE, 0, 0, -1, number, -1]], state)
        flat = tables.states.array.reshape(-1), tables.known.reshape(-1)
        with np.errstate(over="ignore"):
            for _ in range(2):
                found = [look_up(state, code, *flat) for state, code in pairs]
                assert [*range(len(pairs))] == found
            assert look_up(states[0], 5, *flat) == -1


@contextmanager
def automata() -> Iterator[list[Automaton]]:
    """Yield the automata that are made."""
    made: list[Automaton] = []
    begun = Automaton.__init__

    def keep(automaton: Automaton, *arguments: Any) -> None:
        begun(automaton, *arguments)
        made.append(automaton)

    with mock.patch.object(Automaton, "__init__", keep):
        yield made


def states(automaton: Automaton) -> int:
    """Return how many an automaton has."""
    return len(automaton._numbers)


def _tiles(count: int, cols: int = 4) -> Stream:
    """Return a stream of rows of numbers."""
    return Flatten(0, 2)(LinearOffChipLoad(Tensor((count, cols)), (1, cols))())


def _each(*operators: Any, of: int = 1) -> Callable[[], None]:
    """Return what wires each of the operators on rows, and who reads all that they send."""

    def wire() -> None:
        rows = _tiles(3)
        for operator in operators:
            Consumer()(operator(*[rows] * of))

    return wire


def _loads(*tensors: Tensor) -> Callable[[], None]:
    def wire() -> None:
        places = Metadata(np.array([1, 0]))()
        for tensor in tensors:
            Consumer()(RandomOffChipLoad(tensor, (1, 1))(places))

    return wire


def _of(numbers: Any, dtype: str) -> Tensor:
    return Tensor((2, 1), np.array(numbers, np.int32).reshape(2, 1), dtype=dtype)


def _readers(*cols: int) -> Callable[[], None]:
    def wire() -> None:
        for number, each in enumerate(cols):
            Consumer()(_tiles(2 + number, each))

    return wire


def _padded() -> None:
    rows = _tiles(4)
    for reads_flags in (True, False, False):
        chunks, flags = Reshape(2)(rows)
        Consumer()(chunks)
        if reads_flags:
            Consumer()(flags)


ALIKE: list[tuple[str, int, Callable[[], object]]] = [
    ("Map", 1, _each(Map(SiLU()), Map(SiLU(), name="other"))),
    ("Map", 2, _each(*(Map(SiLU(), flops_per_cycle=rate) for rate in (1, 2, 1)))),
    ("Map", 2, _each(Map(SiLU()), Map(Exp()), Map(SiLU()))),
    ("Map", 3, _each(*(Map(ScaledAdd(by)) for by in (2.0, 3.0, 2.0, 1.0)), of=2)),
    ("Map", 2, _each(Map(SiLU()), Map(SiLU(), to_memory=True))),
    ("Repeat", 2, _each(Repeat(2), Repeat(3), Repeat(2))),
    ("Zip", 1, _each(Zip(), Zip(name="other"), of=3)),
    ("Consumer", 1, _readers(4, 4, 4)),
    ("Consumer", 2, _readers(4, 5, 4)),
    # Of tensors without integers only the shape and the type matter.
    ("RandomOffChipLoad", 1, _loads(_of([1, 2], "float32"), _of([3, 4], "float32"))),
    ("RandomOffChipLoad", 2, _loads(_of([1, 2], "float32"), _of([1, 2], "float16"))),
    ("RandomOffChipLoad", 2, _loads(_of([1, 2], "int32"), _of([3, 4], "int32"))),
    ("RandomOffChipLoad", 2, _loads(Tensor((2, 1)), Tensor((3, 1)), Tensor((2, 1)))),
    ("Reshape", 2, _padded),
]
"""Operators, and in how many ways they behave."""


class TestAutomata:
    def test_states(self) -> None:
        """A state for each thing that is waited for and what is kept; no more with more data."""
        found = []
        for groups in (3, 6):
            with automata() as made:
                with Program("automata", mode="timing") as program:
                    rows = Repeat(4)(Metadata(np.arange(groups) % 2)())
                    Consumer()(Accum(RetileRow())(rows))
                assert simulate(program).status == "completed"
            found.append(sorted(map(states, made)))
        assert found[0] == found[1]
        # Consumer and Repeat: one place to wait in, and the end. Accum: 0 to 3 rows, 2 numbers.
        assert [2, 2] == found[0][:2]

    def test_replayed(self) -> None:
        """What follows another branch is found by going the way to it again."""
        replayed = []
        native = Automaton._replayed

        def note(automaton: Automaton, state: int) -> Any:
            replayed.append(state)
            return native(automaton, state)

        with mock.patch.object(Automaton, "_replayed", note):
            with Program("branches", mode="timing") as program:
                one = Metadata(np.array([1, 1, 1, 1]))()
                two = Metadata(np.array([1, 2, 3, 1]))()
                Consumer()(Zip()(one, two))
            report = simulate(program)
        assert report.status == "completed"
        assert replayed

    def test_shared(self) -> None:
        """Operators that are alike share an automaton; those of other numbers do not."""
        with automata() as made:
            with Program("alike", mode="timing") as program:
                numbers = Metadata(np.arange(4).reshape(2, 2))()
                for _ in range(3):
                    Consumer()(Repeat(2)(numbers))
                Consumer()(Repeat(3)(numbers))
                Consumer()(Repeat(2)(Flatten(0, 1)(numbers)))
            simulate(program)
        kinds = [type(each._operator).__name__ for each in made]
        # Streams of 3, 4 and 2 dimensions; two counts for one of them.
        assert {"Repeat": 3, "Flatten": 1, "Broadcast": 1} == {
            name: kinds.count(name) for name in ("Repeat", "Flatten", "Broadcast")
        }

    @pytest.mark.parametrize(("kind", "count", "wire"), ALIKE)
    def test_told_apart(self, kind: str, count: int, wire: Callable[[], object]) -> None:
        """By what they do, how fast, on which values, and who reads; not by names or sizes."""
        with automata() as made:
            with Program("apart", mode="timing") as program:
                wire()
            assert simulate(program).status == "completed"
        assert count == [type(each._operator).__name__ for each in made].count(kind)
