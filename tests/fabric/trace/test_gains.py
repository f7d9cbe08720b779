from __future__ import annotations

from pathlib import Path

import pytest

from fabric import Hardware, Program, Trace, simulate
from fabric.analysis.trace.analysis.what_if import Gain, large_gains
from fabric.extend import FlatDescription, OnChipDescription
from fabric.graph.loading.program_file import load_program
from tests.benchmarks.processes import ROOT
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


def _moe(hbm: FlatDescription, tile_n: int = 8) -> Program:
    parameters = ["model=tiny", "batch=32", f"tile_n={tile_n}"]
    return load_program(ROOT / "programs/moe.py", parameters, Hardware(hbm=hbm)).program


def test_gains_of_another_memory_are_near_those_of_runs(tmp_path: Path) -> None:
    trace = record(_moe(FlatDescription()), tmp_path)[1]
    changes = {
        "the HBM had twice its 1,024 bytes a cycle": FlatDescription(channels=64),
        "the HBM had half the latency": FlatDescription(startup_cycles=7, latency_cycles=1),
        "units had ports of twice their 64 bytes a cycle to the HBM": FlatDescription(
            requests_per_bundle=2
        ),
    }
    found = {gain.change: gain.cycles for gain in trace.stalls().gains or () if gain.kind == "hbm"}

    for change, hbm in changes.items():
        cycles = simulate(_moe(hbm), mode="timing").cycles
        assert cycles is not None
        assert found[change] == pytest.approx(cycles, rel=0.1), change
    assert trace.what_if(hbm_latency=0.5).cycles == found["the HBM had half the latency"]
    assert 0 < (trace.what_if(hbm_bandwidth=2, hbm_latency=0.5).cycles or 0) < min(found.values())


def test_memory_without_time_bounds_the_run(tmp_path: Path) -> None:
    assert record(_moe(FlatDescription(channels=2**20)), tmp_path)[1].stalls().gains is not None
    stalls = record(program("moe static"), tmp_path)[1].stalls()

    (memory,) = (gain for gain in stalls.gains or () if gain.kind == "memory")
    assert "the HBM took no time" == memory.change
    assert memory.cycles == min(gain.cycles for gain in stalls.gains or ())
    assert stalls.verdict.startswith("Bound by the HBM: ")


def test_small_gains_are_one_sentence() -> None:
    gains = [Gain("family", f"unit_{saved}", 0, 1000 - saved, True) for saved in (10, 9, 400)]

    large, sentence = large_gains(gains, 1000)

    assert ["unit_400", "unit_10"] == [gain.name for gain in large]
    change = "unit_9 took half as long"
    assert f"1 more change would save less than 1 % each: at most 0.9 %, if {change}." == sentence


def test_tensors_that_are_read_again_are_counted(tmp_path: Path) -> None:
    report, trace = record(_moe(FlatDescription(), tile_n=1), tmp_path)
    once = simulate(_moe(FlatDescription(), tile_n=32), mode="timing").hbm_bytes_moved or 0
    sentence, moved = trace.stalls().traffic[0], report.hbm_bytes_moved or 0
    share = 100 * moved / (1024 * (report.cycles or 1))

    assert sentence.startswith(f"{moved:,} bytes moved by the HBM, {share:.1f} % of 1,024 bytes")
    assert f" a cycle. {moved - once:,} of them (" in sentence
    assert sentence.endswith(", load_down_0..7 917,504 (8 units).")


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
