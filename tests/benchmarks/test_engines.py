from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from fabric import Report, simulate
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program

pytestmark = pytest.mark.benchmark

PROGRAM: Final = Path(__file__).parents[2] / "programs" / "attention.py"

ROUNDS: Final = 5


def _seconds(requests: int, engine: Literal["compiled", "tasks"]) -> tuple[float, Report]:
    parameters = [f"requests={requests}", "strategy=dynamic"]
    program = load_program(str(PROGRAM), parameters, Hardware()).program
    start = time.process_time()
    report = simulate(program, engine=engine)
    return time.process_time() - start, report


def test_compiled_attention_takes_a_third_of_the_time_of_tasks(benchmark: Any) -> None:
    requests = 64 if benchmark.enabled else 4
    rounds = ROUNDS if benchmark.enabled else 1
    _seconds(requests, "compiled")
    tasks, compiled = zip(
        *((_seconds(requests, "tasks"), _seconds(requests, "compiled")) for _ in range(rounds)),
        strict=True,
    )

    ratio = min(seconds for seconds, _ in tasks) / min(seconds for seconds, _ in compiled)
    benchmark.extra_info["times_tasks"] = ratio
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\nattention, {requests} requests: {ratio:.2f} times as fast as by tasks")
    assert tasks[0][1].cycles == compiled[0][1].cycles
    if benchmark.enabled:
        assert ratio >= 3
