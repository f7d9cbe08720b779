"""The fixed memory: each burst by its formula, whoever else asks, whatever runs the program."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.extend import FixedDescription
from fabric.graph.hardware.address_space import Burst
from fabric.graph.loading.program_file import load_program
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import Place
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.fixed_latency import FixedMemory
from operators import Consumer, LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.compiled.both import both
from tests.programs.loading import PROGRAMS
from tests.symbolic.bounded import compared, cycles
from tests.telling import told_under_every_schedule

BURSTS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.integers(1, 700)), max_size=4)
"""Cycles between the last answer and the submission, rows, bytes of each."""


@given(
    hbm=st.builds(
        FixedDescription,
        request_bytes=st.sampled_from([1, 3, 32, 64]),
        latency_cycles=st.integers(0, 20),
        bytes_per_cycle=st.integers(1, 100),
    ),
    script=st.lists(BURSTS, min_size=1, max_size=6),
    steps=st.lists(st.integers(1, 60), min_size=1),
)
def test_formula(
    hbm: FixedDescription, script: list[list[tuple[int, int, int]]], steps: list[int]
) -> None:
    """Units are answered in order of ports, each after the cycles of its own burst."""
    units: list[Unit] = [
        MemoryUnit(f"client{number}", number, Place("program.py", 1), bytes_per_cycle=64)
        for number in range(len(script))
    ]
    readers, writers = units[::2], units[1::2]
    memory = FixedMemory(hbm, readers, writers)
    todo = [list(bursts) for bursts in script]
    expected: dict[Unit, int] = {}
    moved = 0

    def submit(unit: Unit) -> None:
        nonlocal moved
        if not todo[unit.index]:
            return
        gap, rows, row_bytes = todo[unit.index].pop(0)
        unit.now += gap
        requests = rows * -(-row_bytes // hbm.request_bytes)
        moved += requests * hbm.request_bytes
        expected[unit] = unit.now + hbm.latency_cycles
        expected[unit] += -(-requests * hbm.request_bytes // hbm.bytes_per_cycle)
        memory.submit(unit, Burst(0, rows, row_bytes, row_bytes, write=unit in writers))
        assert memory.served(unit) == requests

    for unit in reversed(units):
        submit(unit)
    horizon, turns = 0, itertools.cycle(steps)
    while memory.pending:
        horizon += next(turns)
        ports = [*readers, *writers]
        complete = [unit for unit in ports if expected.get(unit, horizon + 1) <= horizon]
        before = {unit: unit.now for unit in units}
        assert complete == memory.advance(horizon)
        assert [expected.get(unit) for unit in complete] == [unit.now for unit in complete]
        assert all(before[unit] == unit.now for unit in units if unit not in complete)
        for unit in complete:
            del expected[unit]
            submit(unit)
    assert ([[] for _ in script], {}, moved) == (todo, expected, memory.bytes_moved)


def _copies(count: int, hbm: FixedDescription) -> Program:
    with hardware_scope(Hardware(hbm=hbm)), Program("copies") as program:
        for number in range(count):
            LinearOffChipStore(f"y{number}")(LinearOffChipLoad(Tensor((4, 64)), (1, 64))())
    return program


@pytest.mark.parametrize("count", [1, 3])
def test_program(count: int) -> None:
    """Tile n of 4 is sent at (n + 1) L, seen a cycle later, and stored L after that or the last.

    What the ports could move at most is of all clients: their share is true, and none is above 1.
    """
    report = simulate(_copies(count, FixedDescription(latency_cycles=40)), mode="timing")

    cycles = 5 * (40 + 2) + 1
    assert cycles == report.cycles
    assert 2 * count * 4 * 128 == report.hbm_bytes_moved == report.off_chip_traffic_bytes
    assert 4 * 128 / (cycles * 64) == report.off_chip_bandwidth_utilization


def test_bounds() -> None:
    """Lower bounds know it: a copy takes no more than they say."""
    known, report = compared(_copies(2, FixedDescription(latency_cycles=7, bytes_per_cycle=3)))

    assert {"memory": 5 * (7 + 43) + 1} == cycles(known)
    assert known.at_least["cycles"] == report.cycles


def test_too_long() -> None:
    """A tile beyond the last cycle of any clock is refused, with its size."""
    with hardware_scope(Hardware(hbm=FixedDescription(bytes_per_cycle=1))), Program("p") as built:
        Consumer()(LinearOffChipLoad(Tensor((2**30, 2**30)), (2**30, 2**30))())
    report = simulate(built, mode="timing")

    assert report.error is not None
    assert report.error["message"].endswith(
        "a tile of 1,073,741,824 rows of 2,147,483,648 bytes takes 2,305,843,009,213,694,052 "
        "cycles: expected a clock that stays below 2**60, at cycle 0, element 0"
    )


@pytest.mark.parametrize(("now", "row_bytes"), [(0, 2**60 - 8), (5, 2**60 - 13)])
def test_longest(now: int, row_bytes: int) -> None:
    """The last cycle of any clock is one that a burst can be complete in, after a latency of 7."""
    unit = MemoryUnit("client", 0, Place("program.py", 1), bytes_per_cycle=64)
    unit.now = now
    hbm = FixedDescription(request_bytes=1, latency_cycles=7, bytes_per_cycle=1)
    memory = FixedMemory(hbm, [], [unit])
    burst = Burst(0, 1, row_bytes, row_bytes, write=True)
    with pytest.raises(Refusal, match=r"takes 1,152,921,504,606,846,9[67][0-9] cycles: expected"):
        memory.submit(unit, burst._replace(row_bytes=row_bytes + 1))
    assert (memory.pending, memory.bytes_moved) == (False, 0)
    memory.submit(unit, burst)
    assert memory.advance(2**60 - 2) == []
    assert memory.advance(2**60 - 1) == [unit]
    assert unit.now == 2**60 - 1


@pytest.mark.parametrize("name", ["moe", "simplified_moe", "ragged_attention", "swiglu"])
def test_engines(name: str, tmp_path: Path) -> None:
    """Reports are the same under both engines and under every order of tasks."""
    given = ["model=tiny", "batch=3"] if name == "moe" else []
    hardware = Hardware(hbm=FixedDescription(latency_cycles=29, bytes_per_cycle=48))

    def build() -> Program:
        return load_program(PROGRAMS / f"{name}.py", given, hardware).program

    expected = told_under_every_schedule(build, tmp_path, mode="timing", engine="tasks")
    compiled = both(build, tmp_path)
    assert compiled.compiled > 0
    assert expected["json"] == compiled.said["json"]


def test_peak() -> None:
    """Each client has all of its bytes in a cycle, whoever else asks."""
    hbm = FixedDescription(bytes_per_cycle=7)
    assert [7, 7, 21] == [hbm.peak_bytes_per_cycle, *map(hbm.peak_for, (1, 3))]
