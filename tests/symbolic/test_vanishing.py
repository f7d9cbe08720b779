"""Products with ``min(1, D)`` are simplified."""

from __future__ import annotations

from fabric.graph.values.dims import at_least_one, ceil_div, product, symbol


def test_flag_beside_its_size_vanishes() -> None:
    d, e = symbol("D"), symbol("E")

    assert d == product((at_least_one(d), d))
    assert product((d, e)) == product((at_least_one(d), d, e))
    assert ceil_div(d, 4) == product((at_least_one(d), ceil_div(d, 4)))
    assert e != product((at_least_one(d), e))
    assert "E*min(1, D)" == str(product((at_least_one(d), e)))
