"""Compares expressions of sizes with sympy and plain arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from fabric.graph.values.dims import product, symbol
from fabric.graph.values.expression import at_least_one, ceil_div, total

D, E = symbol("D"), symbol("E")

_leaves = st.one_of(st.sampled_from([D, E]), st.integers(-3, 12))
_trees = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner),
        st.tuples(st.just("ceil"), inner, st.integers(1, 6)),
        st.tuples(st.just("flag"), inner),
        st.tuples(st.just("/"), inner, st.sampled_from([2, 3, D + 1, E + 2])),
    ),
    max_leaves=8,
)


def _built(tree: Any, at: dict[Any, Any] | None = None) -> Any:
    if not isinstance(tree, tuple):
        return tree if at is None else at.get(tree, tree)
    kind, *parts = tree
    left, *others = [_built(part, at) for part in parts]
    if kind == "ceil":
        return ceil_div(left, others[0]) if at is None else math.ceil(Fraction(left) / others[0])
    if kind == "flag":
        return at_least_one(left) if at is None else int(left > 0)
    (right,) = others
    if kind == "/":
        if at is not None and not isinstance(right, int):
            right = right.with_sizes(at)
        return left / right if at is None and not isinstance(left, int) else Fraction(left) / right
    return {"+": left + right, "-": left - right, "*": left * right}[kind]


@given(_trees, st.integers(0, 30), st.integers(0, 30))
def test_expression_has_the_value_of_plain_arithmetic(tree: Any, d: int, e: int) -> None:
    at = {D: d, E: e}
    found = _built(tree)
    if hasattr(found, "with_sizes"):
        found = found.with_sizes(at)

    assert _built(tree, at) == found


@given(_trees, st.integers(0, 30))
def test_sizes_may_be_given_one_after_the_other(tree: Any, d: int) -> None:
    found = _built(tree)
    if hasattr(found, "with_sizes"):
        both = found.with_sizes({D: d, E: 7})
        one = found.with_sizes({D: d})
        assert both == (one.with_sizes({E: 7}) if hasattr(one, "with_sizes") else one)


@given(_trees, st.integers(1, 30), st.integers(1, 30))
def test_text_reads_as_the_expression_of_sympy(tree: Any, d: int, e: int) -> None:
    named: dict[str, Any] = {"ceil": sympy.ceiling, "min": lambda _, size: sympy.sign(size)}
    named |= {str(each): sympy.sympify(each) for each in (D, E)}
    expression, at = _built(tree), {named["D"]: d, named["E"]: e}

    assert sympy.sympify(str(expression), named).subs(at) == sympy.sympify(expression).subs(at)


@given(st.lists(_trees, max_size=4))
def test_sums_and_products_are_equal_in_every_order(trees: list[Any]) -> None:
    parts = [_built(tree) for tree in trees]
    for combined in (total, product):
        here, there = combined(parts), combined(parts[::-1])
        assert here == there
        assert hash(here) == hash(there)


def test_every_finite_number_is_an_operand() -> None:
    assert 4 * D == np.int64(4) * D == D * np.int64(4)
    assert D / 2 == 0.5 * D
    assert 0 == D - D == D + -D
    assert 1 == D / D
    assert {D: 1} == {symbol("D"): 1}
    no_sizes: list[Any] = ["1", math.inf, math.nan]
    for each in no_sizes:
        with pytest.raises(TypeError, match="unsupported operand"):
            D + each
    with pytest.raises(ZeroDivisionError):
        D / 0
