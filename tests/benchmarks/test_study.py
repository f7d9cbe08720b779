from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabric import Study, grid
from fabric.explore.study.driver import conduct
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.explore.study.result import StudyResult
from fabric.explore.study.session import NoStore
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from tests.benchmarks.processes import ROOT
from tests.benchmarks.studying import TimedWorkers

pytestmark = pytest.mark.benchmark


def _qwen() -> Study:
    study = open_study(ROOT / "programs/questions/qwen_design.py", StudyOptions())
    space = grid({"tile_n": (16, 32), "regions": (16, 64), "hardware.hbm.channels": (16, 32)})
    return replace(study, space=space, minimize=())


def _conducted(study: Study, url: str | None) -> tuple[StudyResult, float]:
    workers = TimedWorkers(1, None)
    try:
        # What a worker imports and compiles when it first runs is paid once.
        conduct(replace(study, space=grid({"regions": (32,)})), workers, NoStore(), lambda _: None)
        kept = NoStore() if url is None else Store(study, url)
        kept.known()
        start = time.process_time()
        result = conduct(study, workers, kept, lambda _: None)
        return result, time.process_time() - start
    finally:
        workers.close()


def test_study_overhead_beside_its_runs(benchmark: Any, tmp_path: Path) -> None:
    study = _qwen()
    result, conducting = _conducted(study, file_url(tmp_path / "study.db"))
    benchmark.pedantic(lambda: None, rounds=1)
    sums = {
        name: sum(each.numbers[name] for each in result.outcomes)
        for name in ("simulate", "wiring", "whole")
    }
    runs = sums["simulate"]
    around = conducting + sums["whole"] - runs
    points = len(study.space)
    print(
        f"\n{points} points: simulate {runs / points:.3f} s each; wiring "
        f"{sums['wiring'] / runs:.1%} of that; who conducts {conducting / runs:.1%}; "
        f"all but simulate {around / runs:.1%}"
    )
    if benchmark.enabled:
        assert around - sums["wiring"] < 0.1 * runs


def test_bounds_of_a_study_beside_its_runs(benchmark: Any) -> None:
    study = replace(_qwen(), minimize=("cycles", "on_chip_requirement_bytes"))
    result, _ = _conducted(study, None)
    benchmark.pedantic(lambda: None, rounds=1)
    looks = [each.bounds["look_microseconds"] / 1e6 for each in result.outcomes]
    runs = [each.numbers["simulate"] for each in result.outcomes if each.status == "completed"]
    look, run = sum(looks) / len(looks), sum(runs) / len(runs)
    spared = len(looks) - len(runs)
    print(f"\na look takes {look:.3f} s, a run {run:.3f} s; {spared} of {len(looks)} runs spared")
    if benchmark.enabled:
        assert look < run
