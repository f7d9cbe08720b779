"""On-chip capacity: waits for room, deadlocks, and cycles in which room is freed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fabric as fab
import operators as op
from fabric.extend import Element
from fabric.graph.hardware.description import OnChipDescription
from fabric.timing.engine.on_chip import OnChipMemory
from fabric.timing.machine import assembly
from tests import definitions
from tests.operators import driving
from tests.operators.test_schedules import counted
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

TILE_BYTES = 4


@contextmanager
def memory_made() -> Iterator[list[OnChipMemory]]:
    made: list[OnChipMemory] = []

    def make(*arguments: Any) -> OnChipMemory:
        made.append(OnChipMemory(*arguments))
        return made[-1]

    with mock.patch.object(assembly, "OnChipMemory", make):
        yield made


def limited(tiles: int | None) -> fab.Hardware:
    capacity = None if tiles is None else tiles * TILE_BYTES
    return fab.Hardware(on_chip=OnChipDescription(capacity_bytes=capacity))


def _source(tensor: Any, dims: int, *shape: int, gaps: Sequence[int] = (0,)) -> fab.Stream:
    made = definitions.map_values(driving.tile, dims, tensor)
    return driving.Emit(fab.StreamType(shape, driving.FLOAT), driving.encode(made, dims), gaps)()


def _run(
    wire: Callable[[], Sequence[fab.Stream]], tiles: int | None
) -> tuple[fab.Report, list[Any], OnChipMemory]:
    ends: list[tuple[list[Element], int]] = []
    with fab.hardware_scope(limited(tiles)), fab.Program("limited", channel_depth=1000) as program:
        for stream in wire():
            seen: list[Element] = []
            driving.Collect(seen, (0,))(stream)
            ends.append((seen, len(stream.shape)))
    with memory_made() as memories:
        # The search for a remedy would run the program again and collect its elements, too.
        report = fab.simulate(program, mode="functional", on_deadlock="describe")
    found = [
        definitions.map_values(driving.number_in, dims, driving.decode(elements, dims))
        for elements, dims in ends
    ]
    return report, found, memories[0]


def _waited(report: fab.Report) -> dict[str, int]:
    return {unit.name: unit.capacity_cycles for unit in report.units if unit.capacity_cycles}


def test_a_buffer_waits_until_the_one_before_it_has_been_read() -> None:
    # The tiles are visible at 1 and stored at 1, 2 and 3. The buffer is visible at 4, its tiles
    # leave at 4, 5 and 6, and it is released at 7: the 4 cycles from 3 to 7 are waited.
    def wire() -> list[fab.Stream]:
        return [op.Streamify()(op.Bufferize()(_source([[1, 2, 3], [4, 5, 6]], 2, 2, 3)))]

    report, found, memory = _run(wire, 3)
    assert ("completed", [[[1, 2, 3], [4, 5, 6]]]) == (report.status, found)
    # Two buffers and the tile that comes.
    assert report.on_chip_requirement_bytes == (2 * 3 + 1) * TILE_BYTES
    assert {"bufferize_1": 4} == _waited(report)
    assert (3 * TILE_BYTES, 0) == (memory.peak_bytes, memory.held_bytes)


@pytest.mark.parametrize("count", [1, 300])
def test_a_repeated_buffer_is_held_until_it_was_read_as_often(count: int) -> None:
    def wire(count: int) -> list[fab.Stream]:
        buffers = op.Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        return [op.Streamify()(op.Repeat(count)(buffers))]

    once, _, _ = _run(lambda: wire(1), 2)
    report, found, memory = _run(lambda: wire(count), 2)
    assert [[[each] * count for each in ([1, 2], [3, 4], [5, 6])]] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)
    # Two buffers wait for the buffer before them: two cycles for each further reading.
    assert 2 * 2 * (count - 1) == _waited(report)["bufferize_1"] - _waited(once)["bufferize_1"]


@pytest.mark.parametrize("count", [0, 3])
def test_an_expanded_buffer_is_held_until_it_was_read_as_often(count: int) -> None:
    def wire(count: int) -> list[fab.Stream]:
        buffers = op.Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        guide = _source([[0] * count] * 3, 2, 3, count)
        return [op.Streamify()(op.Expand()(op.Promote(0)(buffers), guide))]

    once, _, _ = _run(lambda: wire(1), 2)
    report, found, memory = _run(lambda: wire(count), 2)
    assert [[[each] * count for each in ([1, 2], [3, 4], [5, 6])]] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)
    # Two buffers wait for the buffer before them: two cycles for each further reading.
    more = _waited(report)["bufferize_1"] - _waited(once)["bufferize_1"]
    assert more == 2 * 2 * (count - 1) if count else more < 0


@pytest.mark.parametrize("hits", [(), (0, 2)])
def test_a_routed_buffer_is_held_by_all_it_is_routed_to(hits: tuple[int, ...]) -> None:
    def wire() -> list[fab.Stream]:
        buffers = op.Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        chosen = fab.Selector(hits, 3)
        selectors = driving.Emit(fab.StreamType((3,), fab.SelectorType(3)), [(chosen, 0)] * 3)()
        return [op.Streamify()(each) for each in op.Partition(3)(buffers, selectors)]

    report, found, memory = _run(wire, 2)
    assert [[[1, 2], [3, 4], [5, 6]] if each in hits else [] for each in range(3)] == found
    assert ("completed", 0) == (report.status, memory.held_bytes)


def test_buffers_that_are_left_over_are_given_back() -> None:
    def wire() -> list[fab.Stream]:
        buffers = op.Bufferize()(_source([[1, 2], [3, 4], [5, 6]], 2, 3, 2))
        selectors = driving.Emit(
            fab.StreamType((1,), fab.SelectorType(1)), [(fab.Selector((0,), 1), 0)]
        )()
        return [op.Streamify()(op.Reassemble()([buffers], selectors))]

    report, found, memory = _run(wire, 4)
    assert ("completed", [[[[1, 2]]]], 0) == (report.status, found, memory.held_bytes)


def test_accumulators_take_room_while_they_are_filled() -> None:
    def wire() -> list[fab.Stream]:
        source = _source([[1, 2], [3, 4]], 2, 2, 2, gaps=(3,))
        return [op.Accum(op.Sum())(source), op.Accum(op.MatmulSum())(source, source)]

    report, found, memory = _run(wire, 2)
    assert ("completed", [[3, 7], [5, 25]]) == (report.status, found)
    assert (2 * TILE_BYTES, 0) == (memory.peak_bytes, memory.held_bytes)


def crowd(seed: int) -> tuple[Callable[[], Sequence[fab.Stream]], int]:
    choices = driving.Choices(random.Random(seed).randbytes(400))
    drawn = [driving.draw(choices, 2, driving.tile, fixed=[None]) for _ in range(3)]
    longest = sum(max((len(group) for group in each.tensor), default=0) for each in drawn)
    gaps = [choices.pick(((0,), (1,), (0, 4))) for _ in drawn]
    repeats = [1 + choices.below(3) for _ in drawn]

    def wire() -> list[fab.Stream]:
        ends: list[fab.Stream] = []
        for each, gap, count in zip(drawn, gaps, repeats, strict=True):
            source = driving.Emit(
                fab.StreamType(each.shape, driving.FLOAT), driving.encode(each.tensor, 2), gap
            )()
            buffers = op.Bufferize()(source)
            ends += [
                op.Streamify((count,))(buffers),
                op.Accum(op.Sum(), 2)(op.Streamify((2,))(buffers)),
            ]
            ends.append(op.Flatten(0, 2)(op.LinearOffChipLoad(np.ones((1, 2)), (1, 1))(source)))
        return ends

    return wire, longest + 3 + 3


@pytest.mark.parametrize("seed", spread(range(8), 3))
def test_waiting_for_room_changes_no_result_and_no_schedule_changes_it(seed: int) -> None:
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
