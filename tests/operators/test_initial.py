"""Initial: values, and loops that begin with them."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric as fab
import operators as op
from fabric.extend import BoolType, Element, ValueType
from tests.operators.driving import Collect, Emit
from tests.profiles import examples

INTEGERS = {
    f"{kind}{bits}": (first * 2 ** (bits - 1), (2 + first) * 2 ** (bits - 1) - 1)
    for bits in (4, 8, 16, 32, 64)
    for kind, first in (("int", -1), ("uint", 0))
}
"""The least and the largest number of each integer type."""


def found(
    initial: op.Initial, shape: tuple[Any, ...], value: ValueType, elements: list[Element]
) -> list[Any]:
    seen: list[Any] = []
    with fab.Program("initial", mode="functional") as program:
        Collect(seen)(initial(Emit(fab.StreamType(shape, value), elements)()))
    report = fab.simulate(program)
    assert ("completed", (), ()) == (
        report.status,
        report.warnings,
        report.comparison.warnings,
    )
    return seen


def test_running_sum_needs_no_selectors() -> None:
    x = np.arange(5 * 8, dtype=np.float32).reshape(5, 8)
    with fab.Program("running-sum", mode="functional") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(x, tile=(1, 8))())
        before = fab.Feedback(rows.type)
        sums = op.Map(op.Add())(rows, before)
        before.connect(op.Initial(0, keep_length=True)(sums))
        op.LinearOffChipStore("y")(op.Promote(0)(sums))
    program.expect(y=lambda: x.cumsum(axis=0))
    report = fab.simulate(program)

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)


@pytest.mark.parametrize(
    ("given", "value", "expected"),
    [
        (True, BoolType(), True),
        (False, BoolType(), False),
        (2, fab.SelectorType(4), fab.Selector((2,), 4)),
        ((3, 1), fab.SelectorType(4, hits=2), fab.Selector((1, 3), 4)),
        (np.array([1]), fab.SelectorType(2, hits=1), fab.Selector((1,), 2)),
        ((), fab.SelectorType(4), fab.Selector((), 4)),
    ],
)
def test_initial_makes_booleans_and_selectors(given: Any, value: ValueType, expected: Any) -> None:
    assert [(expected, 0)] == found(op.Initial(given), (0,), value, [])


@examples(quick=150)
@given(
    dtype=st.sampled_from(
        [np.dtype(vars(ml_dtypes).get(name, name)) for name in ("bool", *INTEGERS)]
    ),
    number=st.one_of(
        st.integers(-20, 300),
        st.integers(-(2**63), 2**64 - 1),
        st.integers(-600, 600).map(lambda halves: halves / 2),
        st.sampled_from([np.inf, -np.inf, np.nan, 1e30]),
    ),
)
def test_integers_are_what_is_given(dtype: Any, number: float) -> None:
    least, most = INTEGERS.get(dtype.name, (0, 1))
    held = math.isfinite(number) and number == int(number) and least <= number <= most
    with fab.Program("whole", mode="functional"):
        emitted = Emit(fab.StreamType((1,), fab.TileType(1, 1, dtype)), [], name="x")()
        if held:
            op.Initial(number)(emitted)
            return
        with pytest.raises(fab.ShapeError, match=f"expected numbers that {dtype.name} can hold"):
            op.Initial(number)(emitted)
