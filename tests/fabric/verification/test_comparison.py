"""Comparison of single numbers with numpy as the reference: rounding and special values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fabric.runs.verify
from fabric import dtype_named
from fabric.runs.verification import Mismatch, OutputVerification
from tests.fabric.verification.storing import Array, judged, storing

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
NUMBERS = st.floats(-1e100, 1e100) | st.sampled_from([0.0, 1.0, math.inf, -math.inf, math.nan])
TOLERANCES = st.sampled_from([0.0, 1e-9, 1e-3, 0.5, 2.0])


def compared(found: Any, wanted: Any, **tolerance: Any) -> OutputVerification:
    expecting = storing()
    expecting.expect(y=lambda: wanted, **tolerance)
    (output,) = judged(expecting, {"y": found}).outputs
    return output


def finfo(dtype: np.dtype[Any]) -> Any:
    return vars(ml_dtypes)["finfo"](dtype)


def agrees_with_numpy(
    found: Array, wanted: Array, rtol: float, atol: float, equal_nan: bool
) -> bool:
    try:
        np.testing.assert_allclose(found, wanted, rtol, atol, equal_nan)
    except AssertionError:
        return False
    return True


@given(st.data(), TOLERANCES, TOLERANCES, st.booleans())
def test_verdict_is_that_of_numpy(
    data: st.DataObject, rtol: float, atol: float, equal_nan: bool
) -> None:
    shape = data.draw(SHAPES)
    wanted = data.draw(hnp.arrays(np.float64, shape, elements=NUMBERS))
    others = data.draw(hnp.arrays(np.float64, shape, elements=NUMBERS))
    factors = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(1 - 1e-3, 1 + 1e-3)))
    chosen = data.draw(hnp.arrays(np.bool_, shape))
    with np.errstate(invalid="ignore"):
        found = np.where(chosen, wanted * factors, np.where(factors == 1, wanted, others))
    output = compared(found, wanted, rtol=rtol, atol=atol, equal_nan=equal_nan)
    assert agrees_with_numpy(found, wanted, rtol, atol, equal_nan) is output.agrees
    apart = int(np.count_nonzero(~np.isclose(found, wanted, rtol, atol, equal_nan)))
    assert (found.size, apart) == (output.elements, output.mismatched)


@pytest.mark.parametrize("name", FLOATS)
@given(st.data())
def test_number_that_is_rounded_once_agrees(name: str, data: st.DataObject) -> None:
    dtype = dtype_named(name)
    info = finfo(dtype)
    largest, least = float(info.max), float(info.smallest_subnormal)
    numbers = st.floats(-largest, largest) | st.floats(-4 * least, 4 * least) | st.floats(-2, 2)
    wanted = data.draw(hnp.arrays(np.float64, SHAPES, elements=numbers))
    assert compared(wanted.astype(dtype), wanted).agrees


@pytest.mark.parametrize("name", ["int8", "int32", "uint64", "bool"])
def test_integers_and_booleans_are_exact(name: str) -> None:
    found = np.array([0, 1, 1]).astype(dtype_named(name))
    assert compared(found, [0, 1, 1]).agrees
    assert not compared(found, [0, 1, 1.001]).agrees
    assert compared(found, [0, 1, 1.001], rtol=0.01).agrees
    assert not compared(found, [0, 0, 1]).agrees
    assert compared(found, [0, 0, 1], atol=1).agrees


LARGE = [2**63 - 1, 2**63 - 2, -(2**63), 2**53, 2**53 + 1, 0, -1]


@pytest.mark.parametrize("left", LARGE)
@pytest.mark.parametrize("right", [*LARGE, 2**64 - 1, 2**63, float(2**53), float(2**63), 0.5])
def test_large_integers_are_not_rounded(left: int, right: float) -> None:
    output = compared(np.array([left]), np.array([right]))
    assert output.agrees is (left == right)
    if left != right:
        exact = float(abs(Fraction(left) - Fraction(right)))
        assert ((Mismatch((0,), left, right),), exact) == (output.places, output.absolute_error)
        assert output.places[0].sentence().startswith(f"[0] is {left}: expected ")


def test_output_of_another_shape_is_all_wrong() -> None:
    output = compared(np.zeros((2, 3)), np.zeros((1, 3)))
    assert (6, 6, False) == (output.elements, output.mismatched, output.agrees)
    assert output.lines() == ("output 'y' has shape [2, 3]: expected [1, 3]",)
    assert not compared(np.zeros((0, 3)), np.zeros((0, 4))).agrees
    assert not compared(np.zeros((2, 2)), np.float64(0)).agrees


@pytest.mark.parametrize("elements", [1, 7, 64])
def test_comparison_in_blocks_is_equal(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    wanted = random.standard_normal((9, 11))
    found = wanted.astype(np.float32)
    found[random.random(found.shape) < 0.2] += 1
    wanted[3, 3], wanted[8, 2], found[5, 5] = 0, math.nan, math.inf
    whole = compared(found, wanted)
    monkeypatch.setattr(fabric.runs.verify, "_BLOCK", elements)

    assert 5 == len(whole.places) < whole.mismatched
    assert whole == compared(found, wanted)
