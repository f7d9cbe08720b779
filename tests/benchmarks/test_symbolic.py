"""How fast the symbolic frontend is: wiring a whole layer, its metrics, and sweeps of sizes."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.analysis.symbolic.check import check
from fabric.analysis.symbolic.metrics import metrics_of
from fabric.analysis.symbolic.substitution import Substitution
from fabric.graph.values.dims import free_symbols
from fabric.graph.wiring.elaborate import elaborate
from tests.symbolic.programs import wired

pytestmark = pytest.mark.benchmark

TILINGS = ["static", "dynamic"]


@pytest.mark.parametrize("tiling", TILINGS)
def test_wire(benchmark: Any, tiling: str) -> None:
    """A Qwen layer, 2,444 operators with symbols in nearly every shape: well under a second."""
    program = benchmark.pedantic(wired, ("moe",), {"tiling": tiling}, rounds=5, warmup_rounds=1)

    assert 2444 == len(elaborate(program).nodes)
    if benchmark.enabled:
        assert benchmark.stats.stats.min < 1


@pytest.mark.parametrize("tiling", TILINGS)
def test_metrics(benchmark: Any, tiling: str) -> None:
    """Its metrics with symbols."""
    plan = elaborate(wired("moe", tiling=tiling))
    metrics = benchmark.pedantic(metrics_of, (plan, Substitution({})), rounds=5)

    assert 128 == len(free_symbols(metrics.paper.traffic_bytes))
    if benchmark.enabled:
        assert benchmark.stats.stats.min < 2


def test_check(benchmark: Any) -> None:
    """All that ``check`` prints of it: under ten seconds, wiring included."""

    def whole() -> int:
        return len(check(wired("moe"), {}, data=False).groups)

    assert 30 == benchmark.pedantic(whole, rounds=1)
    if benchmark.enabled:
        assert benchmark.stats.stats.max < 10
