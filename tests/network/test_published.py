from __future__ import annotations

import pytest

from tests.network import curves, published
from tests.profiles import of_profile

QUICK = {("4x4", "uniform", 16), ("4x4", "neighbor", 16), ("8x8", "transpose", 16)}

CURVES = [
    curve
    for curve in curves.read_curves(curves.DATA)
    if (curve.mesh, curve.traffic, curve.flits) in QUICK or of_profile(quick=False, deep=True)
]


@pytest.mark.deep
def test_predictions_of_chip_traces_are_within_15_percent() -> None:
    found = published.figures(published.read_traces(published.DATA))
    assert found["span_mean"] <= 0.05
    assert found["span_worst"] <= 0.15
    assert found["tail_median"] <= 0.15
    assert found["memory_span_mean"] <= 0.05


@pytest.mark.deep
@pytest.mark.parametrize("curve", CURVES, ids=lambda each: f"{each.mesh} {each.traffic}")
def test_latencies_follow_the_simulators_curves(curve: curves.Curve) -> None:
    found = curves.worst(list(curves.errors(curve)))
    assert found["latency_below_half"] <= 0.1
    assert found["latency_to_three_quarters"] <= 0.2


@pytest.mark.deep
def test_saturation_is_where_the_simulator_has_it() -> None:
    for curve in curves.read_curves(curves.DATA):
        assert curves.outside(curve) <= 0.1
