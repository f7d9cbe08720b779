"""What functions compute with: at the ends of 64 bits, at those of element types, and beyond."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fabric import dtype_named
from operators.functions.arithmetic import (
    divided,
    is_whole,
    largest,
    narrow,
    plus,
    roomy,
    times,
    total,
    wide,
    wide_type,
)

MOST = 2**63 - 1
LEAST = -(2**63)


def _of(*numbers: Any, dtype: Any = np.int64) -> Any:
    return np.array([numbers], dtype)


@pytest.mark.parametrize(
    ("name", "wider"),
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float8_e4m3", "float32"),
        ("float8_e5m2", "float32"),
        ("mxfp8_e4m3", "float32"),
        ("float32", "float32"),
        ("int4", "int64"),
        ("int8", "int64"),
        ("uint32", "int64"),
        ("int64", "int64"),
        ("uint64", "uint64"),
        ("bool", "int64"),
    ],
)
def test_wide_types(name: str, wider: str) -> None:
    """Small floating-point numbers take 32 bits, whole ones 64, where these are enough."""
    assert np.dtype(wider) == wide_type(dtype_named(name))


def test_wide() -> None:
    """The numbers are the same ones; those beyond 64 signed bits are Python's."""
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        found = wide(_of(-1.5, 0.25, 2, dtype=dtype))
        assert (np.dtype(np.float32), [[-1.5, 0.25, 2]]) == (found.dtype, found.tolist())
    for dtype in (np.float32, np.float64):
        data = _of(1.5, dtype=dtype)
        assert wide(data) is data
    for dtype in (np.int8, np.int64, np.uint64, np.bool_):
        assert (np.dtype(np.int64), [[1, 0]]) == (
            wide(_of(1, 0, dtype=dtype)).dtype, wide(_of(1, 0, dtype=dtype)).tolist()
        )  # fmt: skip
    assert np.int64 == wide(_of(MOST, dtype=np.uint64)).dtype
    beyond = wide(_of(MOST + 1, 3, dtype=np.uint64))
    assert (np.dtype(object), [[MOST + 1, 3]]) == (beyond.dtype, beyond.tolist())
    assert np.int64 == wide(np.zeros((0, 3), np.uint64)).dtype


def test_largest_and_room() -> None:
    """Magnitudes; room is made from 2 ** 63 on, and only where all are whole."""
    assert [5, 7, 2**63, MOST, 0, 0] == [
        largest(each)
        for each in (
            _of(-5, 3), _of(-2, 7), _of(LEAST, 3), _of(MOST), _of(1e9, dtype=np.float32),
            np.zeros((0, 2), np.int64),
        )
    ]  # fmt: skip
    whole, real = _of(1), _of(1.0, dtype=np.float32)
    assert [True, False, True] == [
        is_whole(each) for each in (whole, real, wide(_of(2**63, dtype=np.uint64)))
    ]
    assert (whole, whole) == roomy(MOST, whole, whole)
    assert [object, object] == [each.dtype for each in roomy(MOST + 1, whole, whole)]
    kept = roomy(MOST + 1, whole, real)
    assert kept[0] is whole
    assert kept[1] is real


def test_sums_and_products() -> None:
    """Exact on either side of 2 ** 63."""
    for left, right in ((MOST, 0), (MOST, 1), (LEAST, -1), (MOST, MOST), (3, -5)):
        assert [[left + right]] == plus(_of(left), _of(right)).tolist()
        assert [[left * right]] == times(_of(left), _of(right)).tolist()
    for left, right in ((2**31, 2**32), (2**31, 2**32 - 1), (-(2**31), 2**32), (-(2**32), 2**32)):
        assert [[left * right]] == times(_of(left), _of(right)).tolist()
    half, four = _of(0.5, dtype=np.float32), _of(-4.0, dtype=np.float32)
    assert ([[-3.5]], [[-2.0]]) == (plus(half, four).tolist(), times(half, four).tolist())
    rows = np.array([[MOST, 1, 5], [LEAST, -1, -1], [1, 2, 3]])
    assert [[MOST + 6], [LEAST - 2], [6]] == total(rows).tolist()
    assert [[6.5]] == total(_of(1.5, 2, 3, dtype=np.float32)).tolist()
    assert np.int64 == total(_of(1, 2)).dtype


def test_quotients() -> None:
    """Whole where they are, else fractions; of 0 by 0 none."""
    assert [[2, -3, 0]] == divided(_of(6, -9, 0), _of(3)).tolist()
    assert [[-LEAST]] == divided(_of(LEAST), _of(-1)).tolist()
    found = divided(_of(7, 6, -1, 1, 0), np.array([[2, 3, 0, 0, 0]]))
    assert [Fraction(7, 2), 2, -math.inf, math.inf] == found[0, :4].tolist()
    assert math.isnan(found[0, 4])
    column = divided(np.array([[1], [3]]), _of(2, 4))
    assert [[Fraction(1, 2), Fraction(1, 4)], [Fraction(3, 2), Fraction(3, 4)]] == column.tolist()
    assert [[0.75]] == divided(_of(1.5, dtype=np.float32), _of(2, dtype=np.float32)).tolist()
    assert [[0.75]] == divided(_of(3), _of(4.0, dtype=np.float32)).tolist()
    with np.errstate(divide="ignore"):
        assert [[math.inf]] == divided(_of(3.0, dtype=np.float32), _of(0)).tolist()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("int4", -8, 7),
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("bool", 0, 1),
        ("int64", LEAST, MOST),
        ("uint64", 0, 2**64 - 1),
    ],
)
def test_ends_of_types(name: str, low: int, high: int) -> None:
    """The last number on either side is held, and the next one refused, whatever has it."""
    dtype = dtype_named(name)
    for number in (low, high):
        for kind in (object, np.int64) if LEAST <= number <= MOST else (object,):
            assert [[number]] == narrow(_of(number, dtype=kind), dtype).tolist()
    for number in (low - 1, high + 1):
        for kind in (object, np.int64) if LEAST <= number <= MOST else (object,):
            with pytest.raises(ValueError, match="as") as caught:
                narrow(_of(low, number, dtype=kind), dtype, "It")
            assert str(caught.value) == (
                f"It gives {number} at [0, 1]: expected a whole number from {low} to {high}, as "
                f"{name} holds them"
            )


def test_what_is_refused_is_told() -> None:
    """Fractions and no numbers; what a number is made of, four of each operand."""
    int8 = dtype_named("int8")
    for number, told in ((Fraction(1, 2), "1/2"), (math.inf, "inf"), (math.nan, "nan")):
        with pytest.raises(ValueError, match=f"^a function gives {told} at "):
            narrow(np.array([[number]], object), int8)
    numbers = _of(1, 0.5, dtype=np.float32)
    with pytest.raises(ValueError, match=r"^It gives 0\.5 from \[1, 2, 3, 4\] and 7 at \[0, 1\]: "):
        narrow(numbers, int8, "It", lambda _, col: (np.arange(1, 5), np.array(6 + col)))
    with pytest.raises(ValueError, match=r" from \[1, 2, 3, 4, \.\.\.\] at \[0, 0\]: "):
        narrow(_of(300), int8, "It", lambda *_: (np.arange(1, 6),))


def test_rounded_results() -> None:
    """To the nearest, ties to even; what has the type already is handed back."""
    data = _of(1.5, dtype=np.float32)
    assert narrow(data, np.dtype(np.float32)) is data
    half = narrow(_of(1 + 2**-11, 1 + 3 * 2**-11, dtype=np.float32), np.dtype(np.float16))
    assert (np.dtype(np.float16), [[1, 1 + 2**-9]]) == (half.dtype, half.tolist())
    assert [[3, -4]] == narrow(_of(3.0, -4.0, dtype=np.float32), dtype_named("int8")).tolist()
