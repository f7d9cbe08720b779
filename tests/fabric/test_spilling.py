"""Tiles of a buffer without room on chip are written to off-chip memory and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabric import Hardware, Program, StreamType, hardware_scope, load_hardware, simulate
from fabric.extend import OnChipDescription
from fabric.graph.hardware.memory_models import FixedDescription
from operators import Bufferize, LinearOffChipLoad, LinearOffChipStore, Streamify
from tests import definitions
from tests.fabric.trace.recording import record
from tests.operators.driving import FLOAT, Collect, Emit, encode, tile
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

BURST_CYCLES = 8


def buffers(tiles: int, count: int, times: int, room: int) -> Program:
    hardware = Hardware(
        on_chip=OnChipDescription(capacity_bytes=4 * room, page_bytes=4, spill=True),
        hbm=FixedDescription(latency_cycles=BURST_CYCLES - 1, request_bytes=4),
    )
    tensor = definitions.map_values(tile, 2, np.ones((count, tiles)).tolist())
    with hardware_scope(hardware), Program("buffers", channel_depth=1000) as program:
        source = Emit(StreamType((count, tiles), FLOAT), encode(tensor, 2), (0,))()
        Collect([], (0,))(Streamify(repeats=(times,))(Bufferize()(source)))
    return program


def by_definition(tiles: int, count: int, times: int, room: int) -> tuple[int, int, int]:
    cycle, reader, taken, spilled, read_back = 1, 0, 0, 0, 0
    given_back: list[tuple[int, int]] = []
    for _ in range(count):
        kept = 0
        for number in range(1, tiles + 1):
            if taken - sum(size for when, size in given_back if when <= cycle) < room:
                taken, kept = taken + 1, kept + 1
            else:
                cycle += BURST_CYCLES
                spilled += 1
            cycle += number < tiles
        away = tiles - kept
        reader = max(reader, cycle + 1) + times * (tiles + away * BURST_CYCLES)
        read_back += times * away
        given_back.append((reader, kept))
    return reader, spilled, read_back


CASES = [
    (tiles, count, times, room)
    for tiles in (1, 3, 4)
    for count in (1, 2, 5)
    for times in (1, 2)
    for room in (1, 2, 3, 5, 9)
]


@pytest.mark.parametrize(("tiles", "count", "times", "room"), spread(CASES, 6))
@pytest.mark.parametrize("order", [*SCHEDULES][:2])
def test_spilling_equals_its_definition(
    tiles: int, count: int, times: int, room: int, order: str
) -> None:
    cycles, spilled, read_back = by_definition(tiles, count, times, room)
    with schedule(order):
        report = simulate(buffers(tiles, count, times, room))
    assert (report.spilled_bytes, report.fetched_bytes) == (4 * spilled, 4 * read_back)
    assert report.hbm_bytes_moved == 4 * (spilled + read_back)
    waits = {unit.name: unit.hbm_cycles for unit in report.units}
    assert waits["bufferize_1"] == BURST_CYCLES * spilled
    assert waits["streamify_1"] == BURST_CYCLES * read_back
    assert report.cycles == cycles
    assert report.on_chip_wait_cycles == 0


def copies(on_chip: OnChipDescription, reading: Streamify) -> Program:
    numbers = np.arange(128 * 64.0).reshape(128, 64)
    hardware = Hardware(on_chip=on_chip)
    with hardware_scope(hardware), Program("copies", mode="functional") as program:
        for name in "ab":
            tiles = LinearOffChipLoad(numbers, tile=(16, 64))()
            LinearOffChipStore(name)(reading(Bufferize(rank=2)(tiles)))
    return program


@pytest.mark.parametrize(
    "reading", [Streamify(repeats=(2,)), Streamify(shape=(3, 2), strides=(1, 4), offset=1)]
)
def test_values_are_those_without_spilling(reading: Streamify) -> None:
    plain = simulate(copies(OnChipDescription(), reading))
    assert plain.outputs is not None
    for tiles in (2, 5, 12, 17, 18):
        on_chip = OnChipDescription(capacity_bytes=tiles * 2048, page_bytes=512, spill=True)
        report = simulate(copies(on_chip, reading))
        assert (report.status, report.on_chip_peak_bytes or 0) <= ("completed", tiles * 2048)
        # Two buffers of 8 tiles; two tiles of room are left to the loads and stores.
        assert report.spilled_bytes == 2048 * (16 - (tiles - 2))
        assert report.outputs is not None
        for name, values in plain.outputs.items():
            np.testing.assert_array_equal(report.outputs[name], values)


def test_buffer_that_finds_room_is_not_spilled() -> None:
    reading = Streamify()
    runs = [
        simulate(
            copies(OnChipDescription(capacity_bytes=1 << 20, page_bytes=64, spill=spill), reading)
        )
        for spill in (False, True)
    ]
    plain, spilling = runs
    assert (spilling.spilled_bytes, spilling.fetched_bytes) == (0, 0)
    same = replace(spilling, spilled_bytes=None, fetched_bytes=None, hardware=plain.hardware)
    assert same == replace(plain)


def test_spilling_completes_where_waiting_is_stuck(tmp_path: Path) -> None:
    room = OnChipDescription(capacity_bytes=10 * 2048, page_bytes=512)
    assert simulate(copies(room, Streamify()), on_deadlock="describe").status == "deadlock"
    program = copies(replace(room, spill=True), Streamify())
    report, trace = record(program, tmp_path)
    assert report.status == "completed"
    assert replace(report, log_dir=None) == replace(simulate(program), log_dir=None)
    assert trace.cycles == report.cycles


def test_spill_is_a_key_of_hardware_files(tmp_path: Path) -> None:
    file = tmp_path / "h.toml"
    file.write_text("[on_chip]\nspill = true\n")
    assert load_hardware(file).as_dict()["on_chip"]["spill"] is True
    assert "spill" not in Hardware().as_dict()["on_chip"]
