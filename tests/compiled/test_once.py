from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

import fabric as fab
import fabric.extend as ext
import operators as op
from fabric.graph.values.dims import symbol
from fabric.timing.compiled import arrays
from fabric.timing.compiled import world as c
from tests.bases import Passing, Sink, Source
from tests.compiled.both import both, described, plain, run
from tests.compiled.test_both_engines import hopped
from tests.compiled.test_boundary import Looking, between
from tests.compiled.turning import Carrying, Turning
from tests.operators.driving import Choices
from tests.operators.random_programs import Random
from tests.profiles import examples, spread
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

COUNT = 12

INTEGER = fab.TileType(1, 1, np.dtype(np.int64))


@dataclass
class Book:
    starts: list[str] = field(default_factory=list)
    seen: dict[str, list[ext.Element]] = field(default_factory=dict)

    def begin(self, name: str) -> list[ext.Element]:
        self.starts.append(name)
        self.seen[name] = []
        return self.seen[name]


@dataclass(frozen=True)
class Makes(Source):
    book: Book
    type: fab.StreamType
    values: tuple[Any, ...]
    cycles: tuple[int, ...] = ()

    @override
    def infer(self, *_: object) -> tuple[fab.StreamType, ...]:
        return (self.type,)

    @override
    async def run(self, ports: ext.Ports) -> None:
        noted = self.book.begin("makes")
        for number, value in enumerate(self.values):
            element = value, int(number == len(self.values) - 1)
            noted.append(element)
            ports.unit.charge(number % 3)
            if number < len(self.cycles):
                await ports.sink.send_at(element, self.cycles[number])
            else:
                await ports.sink.send(element)


@dataclass(frozen=True)
class Passes(Passing):
    book: Book

    @override
    async def run(self, ports: ext.Ports) -> None:
        noted = self.book.begin("passes")
        while (element := await ports.source.receive()) is not None:
            noted.append(element)
            ports.unit.charge(len(noted) % 2)
            await ports.sink.send(element)


@dataclass(frozen=True)
class Collects(Sink):
    book: Book

    @override
    async def run(self, ports: ext.Ports) -> None:
        noted = self.book.begin("collects")
        while (element := await ports.source.receive()) is not None:
            noted.append(element)
            ports.unit.charge(2)


class Own(fab.Tile):
    __slots__ = ("note",)


Wire = Callable[[Book, int], object]


def around(
    book: Book, values: tuple[Any, ...], kind: fab.TileType, inner: Any, *cycles: int
) -> None:
    stream = Makes(book, fab.StreamType((1, len(values)), kind), values, cycles)()
    stream = inner(op.Promote(0)(stream))
    Collects(book)(op.Promote(1)(Passes(book)(op.Flatten(0, 1)(stream))))


def integers(*numbers: int) -> tuple[fab.Tile, ...]:
    return tuple(fab.Tile(1, 1, INTEGER.dtype, np.array([[number]])) for number in numbers)


def at(when: int, special: int, usual: int) -> tuple[fab.Tile, ...]:
    return integers(*(special if number == when else usual for number in range(COUNT)))


def with_own(when: int) -> tuple[fab.Tile, ...]:
    values = list(integers(*range(COUNT)))
    values[when] = Own(1, 1, INTEGER.dtype, np.array([[1]]))
    return tuple(values)


def same(stream: fab.Stream) -> fab.Stream:
    return stream


def _no_code(book: Book, when: int) -> None:
    around(book, with_own(when), INTEGER, same)


def _reads_the_clock(book: Book, when: int) -> None:
    async def does(ports: ext.Ports, _: int, tile: Any) -> None:
        if tile.data.item() == 7:
            ports.unit.charge(ports.unit.now % 5)

    around(book, at(when, 7, 1), INTEGER, Turning(does))


def _calculates_with_a_number(book: Book, _: int) -> None:
    async def does(ports: ext.Ports, _: int, tile: Any) -> None:
        ports.unit.charge((ports.number(tile, 1_000) or 0) % 3)

    around(book, integers(*range(COUNT)), INTEGER, Carrying(does))


def _bad_address(book: Book, when: int) -> None:
    load = op.RandomOffChipLoad(op.Tensor((4, 4)), (2, 2))
    around(book, at(when, 9, 3), INTEGER, load)


def _refuted(book: Book, _: int) -> None:
    kind = fab.StreamType((1, symbol("R", ragged=True)), INTEGER)
    rows = op.Repeat(2)(Makes(book, kind, integers(*range(COUNT)))()).assume(1, COUNT + 1, 2)
    Collects(book)(Passes(book)(op.Repeat(3)(rows)))


def _beyond_64_bits(book: Book, when: int) -> None:
    around(book, integers(*range(COUNT)), INTEGER, same, *[1] * when, 1 << 70)


# Wiring of programs that begin again as tasks, by reason.
WIRES: dict[str, Wire] = {
    wire.__name__.strip("_").replace("_", " "): wire
    for wire in (
        _no_code,
        _reads_the_clock,
        _calculates_with_a_number,
        _bad_address,
        _refuted,
        _beyond_64_bits,
    )
}


OPERATORS = ["collects", "makes", "passes"]


def noted(elements: list[ext.Element]) -> list[object]:
    kinds = [isinstance(value, Own) for value, _ in elements]
    return list(zip(described(elements), kinds, strict=True))


def compare(wire: Wire, when: int, order: str | int, folder: Path) -> bool:
    books: list[Book] = []

    def build() -> fab.Program:
        books.append(Book())
        with fab.Program("once", mode="timing") as wired:
            wire(books[-1], when)
        return wired

    with schedule(order), mock.patch.object(arrays, "_FIRST_LOOK", 128):
        found = both(build, folder)
    tasks, again = books
    assert sorted(tasks.starts) == OPERATORS
    assert sorted(again.starts) == sorted(2 * OPERATORS)
    for name, elements in tasks.seen.items():
        wanted, had = noted(elements), noted(again.seen[name])
        if found.outcome["report"].status == "error":
            # The schedule decides how far an operator ran ahead of the error.
            wanted, had = wanted[: len(had)], had[: len(wanted)]
        assert wanted == had
    return found.gave_up


@pytest.mark.parametrize("order", spread(SCHEDULES, 1))
@pytest.mark.parametrize("name", WIRES)
def test_operators_start_again_if_no_table_holds_them(
    name: str, order: str | int, tmp_path: Path
) -> None:
    when = random.Random(f"{name} {order}").randrange(COUNT)

    assert compare(WIRES[name], when, order, tmp_path)


@pytest.mark.parametrize("kind", [Collects, op.SiLU, type(fab.Hardware().hbm), Looking])
def test_program_with_effects_starts_once(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "effects", True, raising=False)
    book = Book()
    with fab.Program("once", mode="timing") as wired:
        _reads_the_clock(book, 5)
        op.Consumer()(op.Map(op.SiLU())(op.LinearOffChipLoad(op.Tensor((3, 1)), (1, 1))()))
    progress = Looking() if kind is Looking else None

    assert fab.simulate(wired, progress=progress).status == "completed"
    assert sorted(book.starts) == OPERATORS


def test_program_with_a_users_observer_starts_once() -> None:
    book = Book()
    with fab.Program("once", mode="timing") as wired:
        _reads_the_clock(book, 5)

    assert fab.simulate(wired, observers=[ext.Observer()]).status == "completed"
    assert sorted(book.starts) == OPERATORS


@contextmanager
def stopped(after: int, budget: int) -> Iterator[None]:
    native, calls = arrays.Arrays.run, count()

    def run_loop(these: arrays.Arrays, *integers: int) -> tuple[int, int]:
        found = native(these, *integers)
        return found if next(calls) < after else (c.UNFIT, 0)

    with (
        mock.patch.object(arrays.Arrays, "run", run_loop),
        mock.patch("fabric.timing.compiled.region._BUDGET", budget),
    ):
        yield


def check_stopped(build: Callable[[], fab.Program], draw: random.Random, folder: Path) -> bool:
    drawn = hopped(build, draw)
    tasks = run(build, "tasks", folder, **drawn)
    after, budget = draw.randrange(80), draw.choice((1, 3, 7, 30, 200))
    with stopped(after, budget), schedule(draw.choice(SCHEDULES)):
        found = run(build, "compiled", folder, **drawn)
    assert tasks.ran_ahead or tasks.state == found.state
    assert plain(tasks.outcome) == plain(found.outcome)
    return found.gave_up


@examples(quick=5)
@given(seed=st.integers(0, 1 << 32))
def test_networks_that_begin_again_equal_tasks(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_stopped(lambda: between(seed), random.Random(seed), tmp_path_factory.mktemp("between"))


@examples(quick=5)
@given(data=st.binary(min_size=300, max_size=300))
def test_random_programs_that_begin_again_equal_tasks(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen: list[list[Any]] = []

    def build() -> fab.Program:
        made = Random(Choices(data), functional=False)
        seen.extend(end[0] for end in made.ends)
        return made.program

    check_stopped(build, random.Random(data), tmp_path_factory.mktemp("anywhere"))
    # The first of the three programs was only wired for the names of its channels.
    ends = len(seen) // 3
    assert list(map(described, seen[ends : 2 * ends])) == list(map(described, seen[2 * ends :]))


@pytest.mark.parametrize("name", spread(["top2_moe", "ragged_attention"], 1))
@pytest.mark.parametrize("order", spread(SCHEDULES, 1))
def test_shipped_programs_that_begin_again_equal_tasks(
    name: str, order: str | int, tmp_path: Path
) -> None:
    draw = random.Random(f"{name} {order}")

    assert check_stopped(lambda: program(name), draw, tmp_path)


def test_elements_that_arrive_during_other_turns_are_seen(tmp_path: Path) -> None:
    drawn = hopped(lambda: between(0), random.Random(0))
    with mock.patch("fabric.timing.compiled.region._BUDGET", 30), schedule(2):
        found = both(lambda: between(0), tmp_path, **drawn)

    assert found.outcome["report"].status == "completed"


def test_integers_that_change_between_runs_decide_the_next_run() -> None:
    addresses = np.array([[1], [2], [3]])
    with fab.Program("again", mode="timing") as wired:
        loaded = op.LinearOffChipLoad(addresses, (1, 1))()
        op.Consumer()(op.RandomOffChipLoad(op.Tensor((4, 4)), (2, 2))(loaded))
    before = fab.simulate(wired, engine="compiled").status
    addresses[1] = 9

    assert (before, fab.simulate(wired, engine="compiled").status) == ("completed", "error")
