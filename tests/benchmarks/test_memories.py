from __future__ import annotations

import time
from typing import Any, Final

import pytest

from fabric import Hardware, Report, simulate
from fabric.extend import BankedDescription
from fabric.graph.loading.program_file import load_program
from tests.benchmarks.processes import QWEN, ROOT

pytestmark = pytest.mark.benchmark

ROUNDS: Final = 6


def _seconds(hardware: Hardware, parameters: list[str]) -> tuple[float, Report]:
    program = load_program(ROOT / "programs/moe.py", parameters, hardware).program
    start = time.process_time()
    report = simulate(program)
    return time.process_time() - start, report


def test_banked_memory_takes_at_most_six_times_the_flat_one(benchmark: Any) -> None:
    # Nine million requests, one by one.
    parameters = list(QWEN) if benchmark.enabled else ["model=tiny"]
    memories = Hardware(), Hardware(hbm=BankedDescription())
    rounds = ROUNDS if benchmark.enabled else 1
    for hardware in memories:
        _seconds(hardware, ["model=tiny"])
    flat, banked = zip(
        *([_seconds(hardware, parameters) for hardware in memories] for _ in range(rounds)),
        strict=True,
    )

    ratio = min(seconds for seconds, _ in banked) / min(seconds for seconds, _ in flat)
    benchmark.extra_info["times_flat"] = ratio
    benchmark.pedantic(lambda: None, rounds=1)
    moved = banked[0][1].hbm_bytes_moved
    print(f"\nbanked memory, {moved // 64:,} requests: {ratio:.1f} times the flat memory's run")
    assert moved == flat[0][1].hbm_bytes_moved
    if benchmark.enabled:
        assert ratio <= 6
