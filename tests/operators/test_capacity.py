"""On-chip capacity: who waits for room, for how long, and what can never have any."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import coroutine
from typing import Any
from unittest import mock

import numpy as np
import pytest

from fabric import (
    Hardware,
    Program,
    Report,
    Selector,
    SelectorType,
    Stream,
    StreamType,
    hardware_scope,
    simulate,
)
from fabric.extend import Element
from fabric.graph.hardware.description import OnChipDescription, Pages
from fabric.messages.telling.errors import CapacityError
from fabric.messages.telling.place import Place
from fabric.timing.engine import on_chip
from fabric.timing.engine.on_chip import AmountOverTime, OnChipMemory
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.machine import assembly
from operators import (
    Accum,
    Bufferize,
    Expand,
    Flatten,
    LinearOffChipLoad,
    MatmulSum,
    Partition,
    Promote,
    Reassemble,
    Repeat,
    RetileRow,
    Streamify,
    Sum,
)
from tests import definitions
from tests.operators.driving import (
    FLOAT,
    Choices,
    Collect,
    Emit,
    decode,
    draw,
    encode,
    number_in,
    tile,
)
from tests.operators.test_schedules import counted
from tests.schedules import SCHEDULES, schedule

TILE_BYTES = 4


@contextmanager
def memory_made() -> Iterator[list[OnChipMemory]]:
    """Collect the on-chip memories of the machines built inside."""
    made: list[OnChipMemory] = []

    def make(*arguments: Any) -> OnChipMemory:
        made.append(OnChipMemory(*arguments))
        return made[-1]

    with mock.patch.object(assembly, "OnChipMemory", make):
        yield made


def limited(tiles: int | None) -> Hardware:
    """Return a fabric with room for so many tiles of 4 bytes."""
    capacity = None if tiles is None else tiles * TILE_BYTES
    return Hardware(on_chip=OnChipDescription(capacity_bytes=capacity))


def _source(tensor: Any, dims: int, *shape: int, gaps: Sequence[int] = (0,)) -> Stream:
    made = definitions.map_values(tile, dims, tensor)
    return Emit(StreamType(shape, FLOAT), encode(made, dims), gaps)()


def _run(
    wire: Callable[[], Sequence[Stream]], tiles: int | None
) -> tuple[Report, list[Any], OnChipMemory]:
    """Run what ``wire`` wires on a fabric with room for ``tiles`` tiles of 4 bytes."""
    ends: list[tuple[list[Element], int]] = []
    with hardware_scope(limited(tiles)), Program("limited", channel_depth=1000) as program:
        for stream in wire():
            seen: list[Element] = []
            Collect(seen, (0,))(stream)
            ends.append((seen, len(stream.shape)))
    with memory_made() as memories:
        # A remedy is tried with runs of their own, whose elements would be collected, too.
        report = simulate(program, mode="functional", on_deadlock="describe")
    found = [
        definitions.map_values(number_in, dims, decode(elements, dims)) for elements, dims in ends
    ]
    return report, found, memories[0]


def _waited(report: Report) -> dict[str, int]:
    return {unit.name: unit.capacity_cycles for unit in report.units if unit.capacity_cycles}


def test_a_buffer_waits_until_the_one_before_it_has_been_read() -> None:
    """Room for one buffer of 3: the second is filled when the first is released, cycle for cycle.

    The tiles are visible at 1 and stored at 1, 2 and 3. The buffer is visible at 4, its tiles leave
    at 4, 5 and 6, and it is released at 7: the 4 cycles from 3 to 7 are waited.
    """

    def wire() -> list[Stream]:
        return [Streamify()(Bufferize()(_source([[1, 2, 3], [4, 5, 6]], 2, 2, 3)))]

    report, found, memory = _run(wire, 3)
    assert ("completed", [[[1, 2, 3], [4, 5, 6]]]) == (report.status, found)
    assert {"bufferize_1": 4} == _waited(report)
    assert (3 * TILE_BYTES, 0) == (memory.peak_bytes, memory.held_bytes)


def test_with_room_for_both_nobody_waits() -> None:
    """Room for 6 tiles holds both buffers at once."""

    def wire() -> list[Stream]:
        return [Streamify()(Bufferize()(_source([[1, 2, 3], [4, 5, 6]], 2, 2, 3)))]

    unlimited, found, free = _run(wire, None)
    limited, _, _ = _run(wire, 6)
    assert [[[1, 2, 3], [4, 5, 6]]] == found
    assert ({}, unlimited.cycles) == (_waited(limited), limited.cycles)
    assert 6 * TILE_BYTES >= free.peak_bytes > 3 * TILE_BYTES


def test_a_buffer_with_two_readers_is_held_until_the_later_is_done() -> None:
    """One reader repeats the buffer five times: the next one waits for that reader."""

    def wire(count: int) -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4]], 2, 2, 2))
        return [Streamify((1,))(buffers), Streamify((count,))(buffers)]

    even, _, _ = _run(lambda: wire(1), 2)
    late, found, memory = _run(lambda: wire(5), 2)
    assert [[[[1, 2]], [[3, 4]]], [[[1, 2]] * 5, [[3, 4]] * 5]] == found
    assert 8 == _waited(late)["bufferize_1"] - _waited(even)["bufferize_1"]
    assert (2 * TILE_BYTES, 0) == (memory.peak_bytes, memory.held_bytes)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_repeated_buffer_is_held_until_it_was_read_as_often(count: int) -> None:
    """Every copy of the reference is a reader; the last gives the room back."""

    def wire(count: int) -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        return [Streamify()(Repeat(count)(buffers))]

    once, _, _ = _run(lambda: wire(1), 2)
    report, found, memory = _run(lambda: wire(count), 2)
    assert [[[each] * count for each in ([1, 2], [3, 4], [5, 6])]] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)
    # Two buffers wait for the one before: two cycles for each time it is read again.
    assert 2 * 2 * (count - 1) == _waited(report)["bufferize_1"] - _waited(once)["bufferize_1"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_expanded_buffer_is_held_until_it_was_read_as_often(count: int) -> None:
    """Each element of the reference is a reader; an empty group has none, and the room is free."""

    def wire(count: int) -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        guide = _source([[0] * count] * 3, 2, 3, count)
        return [Streamify()(Expand()(Promote(0)(buffers), guide))]

    once, _, _ = _run(lambda: wire(1), 2)
    report, found, memory = _run(lambda: wire(count), 2)
    assert [[[each] * count for each in ([1, 2], [3, 4], [5, 6])]] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)
    # Two buffers wait for the one before: two cycles for each time it is read again.
    more = _waited(report)["bufferize_1"] - _waited(once)["bufferize_1"]
    assert more == 2 * 2 * (count - 1) if count else more < 0


@pytest.mark.parametrize("hits", [(), (0,), (0, 1), (0, 1, 2)])
def test_a_routed_buffer_is_held_by_all_it_is_routed_to(hits: tuple[int, ...]) -> None:
    """Buffers that go to none, one or several consumers are given back when the last is done."""

    def wire() -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        chosen = Selector(hits, 3)
        selectors = Emit(StreamType((3,), SelectorType(3)), [(chosen, 0)] * 3)()
        return [Streamify()(each) for each in Partition(3)(buffers, selectors)]

    report, found, memory = _run(wire, 2)
    assert [[[1, 2], [3, 4], [5, 6]] if each in hits else [] for each in range(3)] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)


def test_buffers_that_are_left_over_are_given_back() -> None:
    """One selector asks for one of three buffers: the other two are dropped, and all is free."""

    def wire() -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        selectors = Emit(StreamType((1,), SelectorType(1)), [(Selector((0,), 1), 0)])()
        return [Streamify()(Reassemble()([buffers], selectors))]

    report, found, memory = _run(wire, 4)
    assert ("completed", [[[[1, 2]]]], 0) == (report.status, found, memory.held_bytes)


def test_buffers_that_are_only_a_reference_are_given_back() -> None:
    """A load and an Expand look at the structure of a stream of buffers, and drop them."""

    def wire() -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        loaded = LinearOffChipLoad(np.zeros((1, 1)), (1, 1))(buffers)
        return [Flatten(0, 2)(loaded), Expand(1)(_source([7], 1, 1), buffers)]

    report, found, memory = _run(wire, 7)
    assert ("completed", [[0, 0, 0], [7, 7, 7]], 0) == (report.status, found, memory.held_bytes)


def test_accumulators_take_room_while_they_are_filled() -> None:
    """Two accumulators and two buffers of a tile take turns in room for two tiles."""

    def wire() -> list[Stream]:
        source = _source([[1, 2], [3, 4]], 2, 2, 2, gaps=(3,))
        return [Accum(Sum())(source), Accum(MatmulSum())(source, source)]

    report, found, memory = _run(wire, 2)
    assert ("completed", [[3, 7], [5, 25]]) == (report.status, found)
    assert (2 * TILE_BYTES, 0) == (memory.peak_bytes, memory.held_bytes)


def test_a_dynamic_accumulator_grows() -> None:
    """Retiling rows takes room for one tile more with every tile: three in room for two fail."""

    def wire() -> list[Stream]:
        return [Accum(Sum())(Accum(RetileRow())(_source([[[1, 2, 3]]], 3, 1, 1, 3)))]

    report, _, _ = _run(wire, 2)
    assert report.error is not None
    assert report.error["message"] == (
        "retile_row_1: an accumulator takes 12 bytes: expected at most the on-chip capacity of 8 "
        "bytes, of which 0 are free"
    )


def test_what_can_never_fit_is_refused() -> None:
    """A buffer of three tiles in room for two: the error names it, its bytes and what is free."""

    def wire() -> list[Stream]:
        return [Streamify()(Bufferize()(_source([[1, 2, 3]], 2, 1, 3)))]

    report, _, _ = _run(wire, 2)
    assert report.error is not None
    assert report.status == "error"
    assert report.error["message"] == (
        "bufferize_1: a buffer takes 12 bytes: expected at most the on-chip capacity of 8 bytes, "
        "of which 0 are free"
    )
    assert report.error["file"] == __file__


def test_a_tile_that_can_never_fit_is_refused() -> None:
    """A load allocates its tile before it reads."""

    def wire() -> list[Stream]:
        return [LinearOffChipLoad(np.zeros((2, 4)), (2, 4))()]

    report, _, _ = _run(wire, 2)
    assert report.error is not None
    assert report.error["message"] == (
        "linear_off_chip_load_1: a tile takes 16 bytes: expected at most the on-chip capacity of "
        "8 bytes, of which 8 are free"
    )


def test_room_that_is_never_given_back_is_a_deadlock() -> None:
    """The only reader waits for a reference that needs the room itself."""

    def wire() -> list[Stream]:
        buffers = Bufferize()(_source([[1, 2]], 2, 1, 2))
        reference = Bufferize()(Streamify()(Bufferize()(_source([[3, 4]], 2, 1, 2, gaps=(9,)))))
        return [Streamify()(buffers, reference)]

    report, _, _ = _run(wire, 3)
    assert report.status == "deadlock"
    assert report.deadlock is not None
    assert "FAB-D006" == report.deadlock["code"]


def crowd(seed: int) -> tuple[Callable[[], Sequence[Stream]], int]:
    """Draw buffers, loads and accumulators that share one memory; return the room they need."""
    choices = Choices(random.Random(seed).randbytes(400))
    drawn = [draw(choices, 2, tile, fixed=[None]) for _ in range(3)]
    longest = sum(max((len(group) for group in each.tensor), default=0) for each in drawn)
    gaps = [choices.pick(((0,), (1,), (0, 4))) for _ in drawn]
    repeats = [1 + choices.below(3) for _ in drawn]

    def wire() -> list[Stream]:
        ends: list[Stream] = []
        for each, gap, count in zip(drawn, gaps, repeats, strict=True):
            source = Emit(StreamType(each.shape, FLOAT), encode(each.tensor, 2), gap)()
            buffers = Bufferize()(source)
            ends += [Streamify((count,))(buffers), Accum(Sum(), 2)(Streamify((2,))(buffers))]
            ends.append(Flatten(0, 2)(LinearOffChipLoad(np.ones((1, 2)), (1, 1))(source)))
        return ends

    return wire, longest + 3 + 3


@pytest.mark.parametrize("seed", range(12))
def test_waiting_for_room_changes_no_result_and_no_schedule_changes_it(seed: int) -> None:
    """Under every schedule the same waits, within the capacity, and all is given back."""
    wire, room = crowd(seed)
    free, expected, _ = _run(wire, None)
    reports = []
    for name in SCHEDULES:
        with schedule(name):
            report, found, memory = _run(wire, room)
        assert expected == found
        assert memory.peak_bytes <= room * TILE_BYTES
        assert memory.held_bytes == 0
        reports.append(counted(report))
    assert [reports[0]] * len(SCHEDULES) == reports
    assert reports[0]["elements"] == free.elements


@pytest.mark.parametrize("seed", range(20))
def test_most_at_once(seed: int) -> None:
    """The most in any cycle is known however often changes before the clock are added up.

    Within a cycle, what is given back is so before more is taken.
    """
    source = random.Random(seed)
    now, changes = 0, list[tuple[int, int]]()
    with mock.patch.object(on_chip, "_FOLD", 5):
        amount = AmountOverTime(lambda: now)
        for _ in range(60):
            now += source.choice([0, 0, 1, 4])
            some = [(now + source.randrange(9), source.randint(-9, 12)) for _ in range(3)]
            changes += some
            if source.random() < 0.5:
                amount.extend(some)
            else:
                for cycle, change in some:
                    amount.record(cycle, change)
    assert amount.level == sum(change for _, change in changes)
    assert amount.peak == max(0, *np.cumsum([change for _, change in sorted(changes)]))
    assert (amount.peak, amount.level) == (amount.peak, sum(change for _, change in changes))


class _Clock:
    """Is in the cycle that was asked for last; who parks is never woken."""

    def __init__(self) -> None:
        self.now = 0
        self.stopping = False

    async def reach(self, _: Unit, cycle: int, **_operation: object) -> None:
        self.now = max(self.now, cycle)

    @coroutine
    def park(self, *_: object) -> Iterator[None]:
        yield

    def wake(self, _: Unit) -> None:
        pass


def _units(*clocks: int) -> list[Unit]:
    place = Place("program.py", 7)
    units = [MemoryUnit(f"u{each}", each, place, bytes_per_cycle=1) for each in range(len(clocks))]
    for unit, now in zip(units, clocks, strict=True):
        unit.now = now
    return list[Unit](units)


def _given(asked: Coroutine[Any, Any, bool]) -> bool | None:
    """Return whether there is room; None where who asked waits for it."""
    try:
        asked.send(None)
    except StopIteration as given:
        found: bool = given.value
        return found
    return None


def test_pages_by_hand() -> None:
    """Two units of five pages of 8 bytes and two in the 20 bytes of a third: twelve, four taken.

    Of eight that are held four are given back in the cycle in which too much is asked for, three
    of them a cycle later.
    """
    clock: Any = _Clock()
    memory = OnChipMemory(100, clock)
    memory.pages = Pages(8, 40)
    first, second, third, late = units = _units(1, 2, 3, 9)
    for unit, size_bytes in zip(units[:3], (30, 17, 8), strict=True):
        assert _given(memory.allocate(unit, size_bytes, "a buffer"))
    assert (memory.peak_bytes, memory.peak_pages, memory.peak_empty_bytes) == (55, 8, 2 + 7)
    assert memory.enough_bytes == 40 + 3 * 8
    memory.release(first, 30, 9)
    memory.release(second, 17, 10)
    with pytest.raises(CapacityError) as refused:
        _given(memory.allocate(late, 90, "a buffer", held_bytes=7))
    assert refused.value.message == (
        "u3: a buffer takes 13 pages of 8 bytes: expected at most the on-chip capacity of 12 pages "
        "in 100 bytes, of which 8 are free"
    )
    assert (refused.value.file, refused.value.line) == ("program.py", 7)
    assert [memory.held_by[unit] for unit in units] == [0, 0, 8, 0]
    # A page is full of three bytes more than five; the next one is another page.
    assert _given(memory.allocate(third, 3, "a buffer", held_bytes=5))
    assert (memory.held_by[third], memory.held_bytes) == (8, 11)
    assert (memory.room_bytes(3, 5), memory.room_bytes(4, 5)) == (0, 8)
    assert _given(memory.allocate(late, 8 * 8, "a buffer"))
    assert (late.now, late.capacity_cycles) == (9, 0)
    assert _given(memory.allocate(late, 3 * 8, "a buffer"))
    assert (late.now, late.capacity_cycles) == (10, 1)


def test_spilling_by_hand() -> None:
    """What may be spilled has no room before who waits, and none of what others are to have."""
    clock: Any = _Clock()
    memory = OnChipMemory(20, clock)
    memory.spill_address, memory.reserved_bytes = 64, 5
    before, waits, behind = _units(0, 7, 7)
    assert _given(memory.allocate(before, 10, "a buffer", spills=True))
    memory.release(before, 10, 7)
    before.now = 6
    assert _given(memory.allocate(before, 8, "a buffer", spills=True)) is False
    before.now = 7
    assert _given(memory.allocate(before, 8, "a buffer", spills=True))
    assert _given(memory.allocate(waits, 13, "a buffer")) is None
    assert memory.requests == [(waits, 13)]
    # Of one cycle the lower unit is before who waits, and the higher one behind.
    assert _given(memory.allocate(behind, 1, "a buffer", spills=True)) is False
    assert _given(memory.allocate(before, 7, "a buffer", spills=True))
    assert _given(memory.allocate(before, 1, "a buffer", spills=True)) is False
    assert _given(memory.allocate(behind, 0, "a buffer", spills=True))
    assert [memory.held_by[unit] for unit in (before, waits, behind)] == [15, 0, 0]
