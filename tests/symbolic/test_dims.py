"""Dimensions as expressions: simplification and equality."""

from __future__ import annotations

import math
from fractions import Fraction

# Any: integers or fractions.
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.symbolic.substitution import Substitution
from fabric.graph.values import dims
from fabric.graph.values.expression import at_least_one, ceil_div

D, E = dims.symbol("D"), dims.symbol("E")
N = dims.symbol("n", ragged=True)


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (ceil_div(D, 16), "ceil(D/16)"),
        (ceil_div(ceil_div(D, 4), 4), "ceil(D/16)"),
        (ceil_div(16 * ceil_div(D, 16), 16), "ceil(D/16)"),
        (ceil_div(16 * D, 16), "D"),
        (ceil_div(D, 1), "D"),
        (ceil_div(D + 33, 16), "ceil((D + 1)/16) + 2"),
        (ceil_div(at_least_one(D), 8), "min(1, D)"),
        (at_least_one(at_least_one(D)), "min(1, D)"),
        (at_least_one(ceil_div(D, 4)), "min(1, D)"),
        (at_least_one(3 * D), "min(1, D)"),
        (dims.product((at_least_one(D), D)), "D"),
        (dims.product((at_least_one(D), ceil_div(D, 16))), "ceil(D/16)"),
        (dims.product((at_least_one(D), at_least_one(D))), "min(1, D)"),
        (dims.product((at_least_one(D), E)), "E*min(1, D)"),
        (dims.product((at_least_one(D + E), D, E)), "D*E"),
        (dims.product((at_least_one(D + E), D + E)), "D + E"),
        (
            dims.product((at_least_one(D + D * E), at_least_one(D + D * N))),
            "min(1, D*E + D)*min(1, D*n~ + D)",
        ),
        (dims.product((D, 0)), "0"),
        (N, "n~"),
    ],
)
def test_expression_is_simplified(dim: dims.Dim, text: str) -> None:
    assert text == dims.dim_text(dim)


def test_long_sum_is_folded() -> None:
    terms = [ceil_div(dims.symbol(f"D_route[{i}]"), 4) for i in range(6)]

    assert "sum(ceil(D_route[0..5]/4))" == dims.short_text(sum(terms))
    assert "ceil(D_route[0]/4) + ceil(D_route[1]/4)" == dims.short_text(sum(terms[:2]))
    assert "sum(E*ceil(D_route[0..5]/4))" == dims.short_text(dims.product((E, sum(terms))))
    assert ["D/E", "-D", "D - E"] == [dims.short_text(dim) for dim in (D / E, -D, D - E)]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (3, 4, False),
        (D, D, True),
        (D, E, None),
        (D, 3, None),
        (D + 1, D, False),
        (0, D + 1, False),
        (D, 2 * D, None),
        (2 * (D + 1), 2 * D + 2, True),
        (ceil_div(D, 4), ceil_div(D, 4), True),
        (ceil_div(D + 16, 16), ceil_div(D, 16) + 1, True),
        (ceil_div(D, 4), D, None),
        (D * E + D + 3, D, False),
        (1, D - 1, None),
        (D + 1, E, None),
        ((D + 1) * (D + 2) * 3, 3 * D * D + 9 * D + 6, True),
        ((D + 1) * E / D, E + E / D, True),
        ((D + 1) ** 2 / E, D * D / E + 2 * D / E + 2 / E, None),
        (ceil_div(D * (E + 1), 4), ceil_div(D * E + D, 4), True),
        (at_least_one(D * (E + 1)), at_least_one(D * E + D), True),
        (at_least_one(D * (E + 1)), at_least_one(D * E + D) + 1, False),
    ],
)
def test_equality_is_decided_both_ways(left: dims.Dim, right: dims.Dim, equal: bool | None) -> None:
    assert (equal, equal) == (dims.same(left, right), dims.same(right, left))


def test_undecided_equality_is_noted() -> None:
    with dims.undecided_in() as pairs:
        dims.same(D, E)
        dims.same(D, D)
        dims.same(D + 1, D)

    assert [(D, E)] == pairs


def evaluated(dim: dims.Dim, d: Any, e: Any = 0) -> Any:
    return Substitution({D: d, E: e}).dim(dim)


@given(d=st.integers(0, 100), e=st.integers(0, 100), k=st.integers(1, 20), m=st.integers(1, 20))
def test_simplifying_keeps_values(d: int, e: int, k: int, m: int) -> None:
    assert -(-d // k) == evaluated(ceil_div(D, k), d)
    assert math.ceil(math.ceil(Fraction(d, k)) / m) == evaluated(ceil_div(ceil_div(D, k), m), d)
    assert -(-(k * d + m * e + 7) // m) == evaluated(ceil_div(k * D + m * E + 7, m), d, e)
    assert min(d, 1) * -(-d // k) * e == evaluated(
        dims.product((at_least_one(D), ceil_div(D, k), E)), d, e
    )
    assert -(-max(d - k + 1, 1 - k) // k) == evaluated(ceil_div(D - k + 1, k), d)


def test_means_are_exact() -> None:
    half = Fraction(33, 2)
    at = Substitution({N: half})

    assert half * 4 == at.dim(4 * N)
    assert 2 == at.dim(ceil_div(N, 16))
    # D / E may be a fraction, so ceil(4 * D/E / 4) is not D / E.
    assert 1 == evaluated(ceil_div(4 * D / E, 4), 1, 3)
    assert 3 == evaluated(ceil_div(8 * D / E + 4, 4), 2, 3)
    assert dims.is_ragged(4 * N + D)
    assert not dims.is_ragged(D)
