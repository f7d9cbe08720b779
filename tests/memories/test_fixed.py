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
from fabric.messages.place import Place
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.fixed_latency import FixedMemory
from operators import Consumer, LinearOffChipLoad, Tensor
from tests.compiled.both import both
from tests.outcomes import outcome_under_every_schedule
from tests.programs.loading import PROGRAMS

# Cycles from the last answer to the submission, number of rows, bytes of a row.
BURSTS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.integers(1, 700)), max_size=4)


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
def test_bursts_complete_after_the_cycles_of_the_formula(
    hbm: FixedDescription, script: list[list[tuple[int, int, int]]], steps: list[int]
) -> None:
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


def test_tile_beyond_the_last_cycle_is_refused() -> None:
    with hardware_scope(Hardware(hbm=FixedDescription(bytes_per_cycle=1))), Program("p") as built:
        Consumer()(LinearOffChipLoad(Tensor((2**30, 2**30)), (2**30, 2**30))())
    report = simulate(built, mode="timing")

    assert report.error is not None
    assert report.error["message"].endswith(
        "a tile of 1,073,741,824 rows of 2,147,483,648 bytes takes 2,305,843,009,213,694,052 "
        "cycles: expected a clock that stays below 2**60, at cycle 0, element 0"
    )


@pytest.mark.parametrize("name", ["moe", "simplified_moe", "ragged_attention", "swiglu"])
def test_reports_are_equal_in_both_engines_and_all_schedules(name: str, tmp_path: Path) -> None:
    given = ["model=tiny", "batch=3"] if name == "moe" else []
    hardware = Hardware(hbm=FixedDescription(latency_cycles=29, bytes_per_cycle=48))

    def build() -> Program:
        return load_program(PROGRAMS / f"{name}.py", given, hardware).program

    expected = outcome_under_every_schedule(build, tmp_path, mode="timing", engine="tasks")
    compiled = both(build, tmp_path)
    assert compiled.compiled > 0
    assert expected["json"] == compiled.outcome["json"]
