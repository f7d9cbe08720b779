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
def test_layer_is_wired_within_a_second(benchmark: Any, tiling: str) -> None:
    program = benchmark.pedantic(wired, ("moe",), {"tiling": tiling}, rounds=5, warmup_rounds=1)

    assert 2444 == len(elaborate(program).nodes)
    if benchmark.enabled:
        assert benchmark.stats.stats.min < 1


@pytest.mark.parametrize("tiling", TILINGS)
def test_metrics_of_a_layer(benchmark: Any, tiling: str) -> None:
    plan = elaborate(wired("moe", tiling=tiling))
    metrics = benchmark.pedantic(metrics_of, (plan, Substitution({})), rounds=5)

    assert 128 == len(free_symbols(metrics.paper.traffic_bytes))
    if benchmark.enabled:
        assert benchmark.stats.stats.min < 2


def test_check_of_a_layer_takes_less_than_ten_seconds(benchmark: Any) -> None:
    def whole() -> int:
        return len(check(wired("moe"), {}, data=False).groups)

    assert 30 == benchmark.pedantic(whole, rounds=1)
    if benchmark.enabled:
        assert benchmark.stats.stats.max < 10
