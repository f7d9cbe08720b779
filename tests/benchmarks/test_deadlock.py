from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabric import Program, simulate
from fabric.analysis.deadlock.remedy import find_remedy
from fabric.graph.loading.program_file import load_on
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import elaborate

pytestmark = pytest.mark.benchmark


def _seconds(do: Callable[[], object]) -> float:
    start = time.process_time()
    do()
    return time.process_time() - start


def _stuck() -> Program:
    file = Path(__file__).parents[2] / "programs" / "moe.py"
    return load_on(None, str(file), ["batch=1024"], {}).program


def test_remedy_takes_less_than_ten_runs(benchmark: Any) -> None:
    if benchmark.disabled:
        benchmark(lambda: None)
        return
    program = _stuck()
    with only_young_garbage():
        found = benchmark.pedantic(find_remedy, (elaborate(program), {}, {}, frozenset()), rounds=1)
    depths = {depth.option: depth.after for depth in found.depths}
    run = min(_seconds(lambda: simulate(program, depths=depths)) for _ in range(2))
    benchmark.extra_info["runs"] = benchmark.stats.stats.min / run
    print(f"\n{benchmark.stats.stats.min:.1f} s, a run {run:.1f} s")

    assert "gave up" not in found.why_not
    assert benchmark.stats.stats.min < 10 * run
