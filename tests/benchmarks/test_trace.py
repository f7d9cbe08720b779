"""What a trace costs: measured against the same run without one, in processor time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from fabric import Program, simulate
from fabric.trace.recording.options import TraceOptions
from tests.fabric.scripted import Charge, Relay, Ticks

pytestmark = pytest.mark.benchmark

_TURNS: Final = 7
_ROOT: Final = Path(__file__).parents[2]

Measure: TypeAlias = Callable[[Path, bool], float]
"""Processor seconds of a run with a log folder, with a trace or without one."""


def _pipeline(folder: Path, traced: bool) -> float:
    """Run 16 operators in a row, from Python."""
    start = time.process_time()
    with Program("pipeline", channel_depth=16) as program:
        stream = Ticks(60_000)()
        for _ in range(14):
            stream = Relay()(stream)
        Charge()(stream)
    simulate(program, log_dir=folder, trace=TraceOptions() if traced else None)
    return time.process_time() - start


def _moe(folder: Path, traced: bool) -> float:
    """Run the command that runs ``moe.py``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "fabric", "run", "programs/moe.py", "--log-dir", str(folder)]
        + ["--trace", "events"] * traced,
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [pytest.param(_pipeline, 2.5, id="pipeline"), pytest.param(_moe, 1.1, id="moe")],
)
def test_events(seconds: Measure, limit: float, benchmark: Any, tmp_path: Path) -> None:
    """Events cost less than 2.5 times the pipeline and a tenth of moe.py."""
    if benchmark.disabled:
        benchmark(seconds, tmp_path, True)
        return
    seconds(tmp_path, False)
    turns = [(seconds(tmp_path, False), seconds(tmp_path, True)) for _ in range(_TURNS)]
    plain, traced = map(min, zip(*turns, strict=True))
    benchmark.extra_info["ratio"] = traced / plain
    benchmark.pedantic(seconds, (tmp_path, True), rounds=1)

    assert traced < limit * plain
