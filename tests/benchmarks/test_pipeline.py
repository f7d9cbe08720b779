from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median
from typing import Any

import pytest

from tests.benchmarks.pipelines import on_simpy, on_the_fabric, on_trio

pytestmark = pytest.mark.benchmark

ROUNDS = 5
TARGETS = {(16, 16): (75.0, 75.0), (16, 2): (60.0, 60.0)}
"""By operators and depth: the least speed-up over SimPy, and over trio's channels."""


@pytest.mark.parametrize("depth", [2, 16, 1024])
@pytest.mark.parametrize("length", [2, 16, 128])
def test_pipeline_speed_beside_simpy_and_trio(benchmark: Any, length: int, depth: int) -> None:
    count = 320_000 // length if benchmark.enabled else 8
    rounds = ROUNDS if benchmark.enabled else 1
    on_the_fabric(length, depth, min(count, 100))
    ours, simpy, trio = zip(
        *(
            tuple(run(length, depth, count) for run in (on_the_fabric, on_simpy, on_trio))
            for _ in range(rounds)
        ),
        strict=True,
    )
    benchmark.extra_info["elements_per_second"] = round(count * (length - 1) / median(ours))
    ratios = median(simpy) / median(ours), median(trio) / median(ours)
    benchmark.extra_info["times_simpy"], benchmark.extra_info["times_trio"] = ratios
    benchmark.pedantic(on_the_fabric, (length, depth, count), rounds=1)
    print(f"\n{length} operators, depth {depth}: {median(ours):.4f} s", end="")
    print(f", {ratios[0]:.1f} x SimPy, {ratios[1]:.1f} x trio channels")
    if benchmark.enabled and (length, depth) in TARGETS:
        assert ratios >= TARGETS[length, depth]


def _child(length: int, count: int) -> tuple[float, int]:
    code = (
        "from tests.benchmarks.pipelines import run_on_the_fabric as run; "
        "from tests.resident import peak_bytes; "
        f"print(run({length}, 1024, {count}).wall_seconds, peak_bytes())"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    return float(out[0]), int(out[1])


@pytest.mark.parametrize(
    ("small", "large"),
    [((1_000, 100), (10_000, 100)), ((2, 1_000_000), (2, 10_000_000))],
    ids=["10,000 operators", "10 million elements"],
)
def test_time_and_memory_grow_in_proportion_to_size(
    benchmark: Any, small: tuple[int, int], large: tuple[int, int]
) -> None:
    if not benchmark.enabled:
        small, large = (2, 10), (2, 100)
    (quick, little), (slow, much) = _child(*small), _child(*large)
    benchmark.extra_info["seconds"], benchmark.extra_info["peak_bytes"] = slow, much
    benchmark.pedantic(resource.getrusage, (resource.RUSAGE_SELF,), rounds=1)
    print(
        f"\n{large}: {slow:.2f} s, {much / 1e6:.0f} MB; a tenth: {quick:.2f} s, {little / 1e6:.0f}"
    )
    if benchmark.enabled:
        assert slow <= 14 * quick
        assert much <= 12 * little
