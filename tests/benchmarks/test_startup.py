from __future__ import annotations

from typing import Any, Final

import pytest

from tests.benchmarks.processes import BASE, QWEN, best_of, taken_by

pytestmark = pytest.mark.benchmark

ROUNDS: Final = 5

_RUN: Final = ("-m", "fabric", "run")
_YARDSTICKS: Final = ("-m", "tests.benchmarks.yardsticks")

WIRING_BEFORE: Final = 104.0
"""Dataclasses of eight fields that took as long as wiring one operator, with sizes in sympy."""


def _noted(benchmark: Any, what: str, ratio: float, most: float) -> None:
    benchmark.extra_info[what] = ratio
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\n{what}: {ratio:.2f}, at most {most:.2f}")
    if benchmark.enabled:
        assert ratio <= most


def test_help_takes_less_than_the_imports_of_a_run(benchmark: Any) -> None:
    base, shown = best_of(ROUNDS if benchmark.enabled else 1, BASE, ("-m", "fabric", "--help"))

    _noted(benchmark, "--help, times the imports", shown / base, 0.6)


def test_command_of_a_small_program(benchmark: Any, tmp_path: Any) -> None:
    command = (*_RUN, "programs/simplified_moe.py", "--log-dir", str(tmp_path))
    base, run = best_of(ROUNDS if benchmark.enabled else 1, BASE, command)

    _noted(benchmark, "simplified_moe.py, times the imports", run / base, 2.5)


def test_command_of_a_layer_without_its_run(benchmark: Any, tmp_path: Any) -> None:
    given = [word for parameter in QWEN for word in ("-p", parameter)]
    command = (*_RUN, "programs/moe.py", "--log-dir", str(tmp_path), *given)
    taken_by(*command)
    found = []
    for _ in range(ROUNDS if benchmark.enabled else 1):
        alone = map(float, taken_by(*_YARDSTICKS, "run_alone").printed.split())
        found.append((taken_by(*command).seconds, *best_of(1, BASE), *alone))
    whole, base, by_tasks, compiled, simulated = map(min, zip(*found, strict=True))
    print(
        f"\n{whole:.2f} s; simulate() {simulated:.2f} s; the run alone by tasks {by_tasks:.2f} s, "
        f"compiled {compiled:.2f} s",
        end="",
    )

    around = (whole - simulated) / base
    _noted(benchmark, "moe.py without simulate(), times the imports", around, 3.5)


def test_wiring_of_an_operator_beside_its_dataclasses(benchmark: Any) -> None:
    rounds = ROUNDS if benchmark.enabled else 1
    found = min(float(taken_by(*_YARDSTICKS, "wiring").printed) for _ in range(rounds))

    _noted(benchmark, "wiring, dataclasses an operator", found, WIRING_BEFORE / 3)


def test_line_of_100_000_operators(benchmark: Any) -> None:
    operators = 100_000 if benchmark.enabled else 1_000
    taken = taken_by(*_YARDSTICKS, "line", str(operators))
    ratio, peak_bytes = taken.printed.split()
    peak_megabytes = int(peak_bytes) / 1e6
    benchmark.extra_info["peak_megabytes"] = peak_megabytes
    print(f"\n{operators:,} operators: {peak_megabytes:.0f} MB")

    _noted(benchmark, "a line, times trio's own tasks", float(ratio), 0.2)
    if benchmark.enabled:
        assert peak_megabytes <= 600


def test_published_points_take_at_most_80_seconds(benchmark: Any) -> None:
    only = () if benchmark.enabled else ("--only", "SwiGLU 16x256x256")
    (base,) = best_of(ROUNDS if benchmark.enabled else 1, BASE)
    taken = taken_by("-m", "tests.benchmarks.published", *only)

    _noted(benchmark, "published points, times the imports", taken.seconds / base, 80 / 0.3)
