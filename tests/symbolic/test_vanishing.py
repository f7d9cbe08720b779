"""``min(1, D)`` beside other factors: it goes where one of them is 0 with D."""

from __future__ import annotations

from fabric.graph.values.dims import at_least_one, ceil_div, product, symbol


def test_products() -> None:
    """D times whether there is any D is D; E times that is not E."""
    d, e = symbol("D"), symbol("E")

    assert d == product((at_least_one(d), d))
    assert product((d, e)) == product((at_least_one(d), d, e))
    assert ceil_div(d, 4) == product((at_least_one(d), ceil_div(d, 4)))
    assert e != product((at_least_one(d), e))
    assert "E*min(1, D)" == str(product((at_least_one(d), e)))
