from __future__ import annotations

from pathlib import Path

import pytest

from fabric import Hardware, Trace, simulate
from fabric.extend import OnChipDescription
from tests.fabric.test_pages import buffers_on
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record

_STEPS = ("s0",), ("r0", "c4", "s0"), ("r0", "c10", "s0"), ("r0",)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(chain(*_STEPS, elements=50), tmp_path_factory.mktemp("slow"))[1]


def test_gain_of_half_the_work_is_that_of_a_run(slow: Trace) -> None:
    gains = slow.stalls().gains
    assert gains is not None
    (family,) = (each for each in gains if each.kind == "family")
    half = chain(("s0",), ("r0", "c2", "s0"), ("r0", "c5", "s0"), ("r0",), elements=50)
    none = chain(("s0",), ("r0", "s0"), ("r0", "s0"), ("r0",), elements=50)

    assert "unit_1..2 took half as long" == family.change
    assert simulate(half).cycles == family.changed_cycles
    assert simulate(none).cycles == family.cycles


def test_gain_of_the_memory_comes_first(tmp_path: Path) -> None:
    trace = record(program("moe static"), tmp_path)[1]
    stalls = trace.stalls()
    kinds = [gain.kind for gain in stalls.gains or ()]

    assert "memory" == kinds[0]
    assert {"memory", "family", "depth"} >= {*kinds}
    (memory,) = (gain for gain in stalls.gains or () if gain.kind == "memory")
    assert "the HBM answered at once" == memory.change
    assert memory.changed_cycles == memory.cycles < trace.cycles


def test_gain_of_capacity_is_a_run_without_limit(tmp_path: Path) -> None:
    few = Hardware(on_chip=OnChipDescription(capacity_bytes=8))
    report, trace = record(buffers_on(few, 6, 2), tmp_path)
    room = simulate(buffers_on(Hardware(), 6, 2)).cycles
    (gain,) = (each for each in trace.stalls().gains or () if each.kind == "memory")

    assert "on-chip capacity were unlimited" == gain.change
    assert room == gain.cycles == gain.changed_cycles
    assert report.cycles is not None
    assert gain.cycles < (gain.half_cycles or 0) < report.cycles


def test_stages_sum_to_the_bytes_of_the_report(tmp_path: Path) -> None:
    wired = program("moe static")
    report, trace = record(wired, tmp_path)
    stages = trace.stalls().folded.stages

    assert len(report.units) == sum(stage.units for stage in stages)
    assert report.hbm_bytes_moved == sum(stage.off_chip_bytes for stage in stages)
    assert report.on_chip_requirement_bytes == sum(stage.on_chip_bytes or 0 for stage in stages)
