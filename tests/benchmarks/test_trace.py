"""What a trace costs: measured against the same run without one, in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import Hardware, Program, simulate
from fabric.loader import load_program
from fabric.trace.options import TraceOptions
from tests.fabric.scripted import Charge, Relay, Ticks

pytestmark = pytest.mark.benchmark

_TURNS: Final = 7
_MOE: Final = str(Path(__file__).parents[2] / "programs" / "moe.py")


def _pipeline() -> Program:
    with Program("pipeline", channel_depth=16) as program:
        stream = Ticks(60_000)()
        for _ in range(14):
            stream = Relay()(stream)
        Charge()(stream)
    return program


def _moe() -> Program:
    return load_program(_MOE, (), Hardware()).program


@pytest.mark.parametrize(
    ("build", "limit"),
    [pytest.param(_pipeline, 2.5, id="pipeline"), pytest.param(_moe, 1.1, id="moe")],
)
def test_events(build: Callable[[], Program], limit: float, benchmark: Any, tmp_path: Path) -> None:
    """Events cost less than 2.5 times the pipeline and a tenth of moe.py, wiring and all."""

    def seconds(trace: TraceOptions | None) -> float:
        start = time.process_time()
        simulate(build(), log_dir=tmp_path, trace=trace)
        return time.process_time() - start

    if benchmark.disabled:
        benchmark(seconds, TraceOptions())
        return
    seconds(None)
    turns = [(seconds(None), seconds(TraceOptions())) for _ in range(_TURNS)]
    plain, traced = map(min, zip(*turns, strict=True))
    benchmark.extra_info["ratio"] = traced / plain
    benchmark.pedantic(seconds, (TraceOptions(),), rounds=1)

    assert traced < limit * plain
