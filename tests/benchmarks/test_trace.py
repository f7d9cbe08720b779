from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import Program, simulate
from fabric.analysis.trace.selection import TraceOptions
from tests.benchmarks.processes import QWEN, best_of
from tests.fabric.scripted import Charge, Relay, Ticks

pytestmark = pytest.mark.benchmark

_TURNS: Final = 7


def _pipeline(folder: Path, traced: bool) -> float:
    start = time.process_time()
    with Program("pipeline", channel_depth=16) as program:
        stream = Ticks(60_000)()
        for _ in range(14):
            stream = Relay()(stream)
        Charge()(stream)
    simulate(program, log_dir=folder, trace=TraceOptions() if traced else None)
    return time.process_time() - start


def test_traced_pipeline_takes_less_than_two_and_a_half_times(
    benchmark: Any, tmp_path: Path
) -> None:
    if benchmark.disabled:
        benchmark(_pipeline, tmp_path, True)
        return
    _pipeline(tmp_path, False)
    turns = [(_pipeline(tmp_path, False), _pipeline(tmp_path, True)) for _ in range(_TURNS)]
    plain, traced = map(min, zip(*turns, strict=True))
    benchmark.extra_info["ratio"] = traced / plain
    benchmark.pedantic(_pipeline, (tmp_path, True), rounds=1)

    assert traced < 2.5 * plain


def test_traced_layer_takes_less_than_30_percent_longer(benchmark: Any, tmp_path: Path) -> None:
    given = QWEN if benchmark.enabled else ("model=tiny", "batch=8")
    parameters = [each for parameter in given for each in ("-p", parameter)]
    run = ("-m", "fabric", "run", "programs/moe.py", "--log-dir", str(tmp_path), *parameters)
    turns = 1 if benchmark.disabled else _TURNS
    plain, traced = best_of(turns, run, (*run, "--trace", "events"))
    benchmark.extra_info["ratio"] = traced / plain
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\n{plain:.2f} s, with a trace {traced:.2f} s: {traced / plain:.3f}")

    assert benchmark.disabled or traced < 1.3 * plain
