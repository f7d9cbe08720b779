from __future__ import annotations

import time
from typing import Any, Final

import pytest

from fabric import Hardware, Report, simulate
from fabric.extend import BankedDescription
from fabric.graph.loading.program_file import load_program
from tests.benchmarks.pipelines import on_simpy
from tests.benchmarks.processes import QWEN, ROOT

pytestmark = pytest.mark.benchmark

ROUNDS: Final = 4
ELEMENTS: Final = 50_000


def _seconds(parameters: list[str]) -> tuple[float, Report]:
    hardware = Hardware(hbm=BankedDescription())
    program = load_program(ROOT / "programs/moe.py", parameters, hardware).program
    start = time.process_time()
    report = simulate(program)
    return time.process_time() - start, report


def test_request_on_banks_takes_a_fifteenth_of_an_element_of_simpy(benchmark: Any) -> None:
    # Nine million requests of the HBM are compared with elements that pass a store of SimPy.
    parameters = list(QWEN) if benchmark.enabled else ["model=tiny"]
    rounds, elements = (ROUNDS, ELEMENTS) if benchmark.enabled else (1, 100)
    _seconds(["model=tiny"])
    ours, theirs = zip(
        *((_seconds(parameters), on_simpy(2, 16, elements)) for _ in range(rounds)), strict=True
    )

    requests = ours[0][1].hbm_bytes_moved // 64
    request = min(seconds for seconds, _ in ours) / requests
    ratio = min(theirs) / elements / request
    benchmark.extra_info["times_simpy"] = ratio
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\nbanked memory, {requests:,} requests: {ratio:.1f} requests for an element of SimPy")
    if benchmark.enabled:
        assert ratio >= 15
