"""Arrays as another element type: rounding is allowed, another value is not.

A floating-point type rounds what it holds. That an integer is not exact in it, that a number
does not fit, or that a fraction is cut off, changes a value: that is refused.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fabric import dtype_name, dtype_named

__all__ = ["ValueChangedError", "check_converts", "converted", "holds_integers"]

_WHOLE: Final = "biu"
"""Kinds of numpy's types that hold whole numbers only."""

_INT4: Final = dtype_named("int4")
"""One of ml_dtypes', of which numpy does not know that its numbers are whole."""


def holds_integers(dtype: np.dtype) -> bool:
    """Whether a type holds integers only."""
    return dtype.kind in "iu" or dtype == _INT4


class ValueChangedError(ValueError):
    """A value changes by more than the rounding of a floating-point number: which, and where."""


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a copy of ``array`` as ``dtype``.

    Raises:
        ValueChangedError: a value changes by more than the rounding of a floating-point number; it
            says which, where and to what.
    """
    if array.dtype == dtype:
        return array.copy()
    if _stays(array, dtype):
        return array.astype(dtype)
    source = _numbers(array, dtype)
    with np.errstate(all="ignore"):
        result = source.astype(dtype)
        changed = _changed(source, result)
    if not changed.any():
        return result
    place = tuple(np.argwhere(changed)[0].tolist())
    raise ValueChangedError(
        f"{source[place]} at {list(place)}, which is {result[place]} as {dtype_name(dtype)}"
    )


def check_converts(array: np.ndarray, dtype: np.dtype) -> None:
    """Refuse what ``converted`` refuses.

    Raises:
        ValueChangedError: a value changes.
    """
    if array.dtype != dtype and not _stays(array, dtype):
        converted(array, dtype)


def _stays(array: np.ndarray, dtype: np.dtype) -> bool:
    """Whether one look at the extremes is enough to know that no value changes."""
    if dtype == _INT4:
        return False
    if _is_small(array.dtype):
        array = array.astype(np.float32)  # exact
    kind = array.dtype.kind
    if kind not in "biuf" or (kind == "f" and dtype.kind in _WHOLE) or dtype.kind == "b":
        return False
    if kind == "b" or not array.size:
        return True
    least, most = _range(kind in _WHOLE, dtype)
    # A NaN is beyond both.
    with np.errstate(invalid="ignore"):
        return bool(least <= array.min().item() and array.max().item() <= most)


def _is_small(dtype: np.dtype) -> bool:
    """Whether it is one of ml_dtypes' real numbers, all of which have at most 16 bits."""
    return dtype.itemsize <= 2 and dtype.type.__module__.startswith("ml_dtypes")


def _range(whole: bool, dtype: np.dtype) -> tuple[float, float]:
    """Return between which numbers nothing changes: all that are ``whole``, or all."""
    if dtype.kind in _WHOLE:
        integers = np.iinfo(dtype)
        return int(integers.min), int(integers.max)
    finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
    info = finfo(dtype)
    most = float(2 ** (int(info.nmant) + 1)) if whole else float(info.max)
    return -most, most


def _numbers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return ``array`` as a type that numpy computes with."""
    if array.dtype.kind in "biuf":
        return array
    if _is_small(array.dtype):
        return array.astype(np.float64)
    raise ValueChangedError(
        f"elements of {array.dtype}, which are no numbers for {dtype_name(dtype)}"
    )


def _changed(source: np.ndarray, result: np.ndarray) -> NDArray[np.bool_]:
    """Return where ``result`` has another value than ``source``."""
    from_whole, to_whole = source.dtype.kind in _WHOLE, result.dtype.kind in _WHOLE
    changed: NDArray[np.bool_]
    if result.dtype == _INT4:
        return np.asarray(source != result.astype(source.dtype))
    if from_whole and to_whole:
        changed = source != result
    elif from_whole:
        changed = _differ(source, result.astype(np.float64))
    elif to_whole:
        changed = _differ(result, source.astype(np.float64))
    else:
        known = np.isfinite(result)
        changed = ~known
        if changed.any():
            changed &= np.isfinite(source) | (np.isinf(source) & np.isnan(result))
    return changed


def _differ(whole: np.ndarray, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where ``numbers`` are not exactly those of ``whole``."""
    if whole.dtype.kind == "b":
        return np.asarray(numbers != whole)
    # Beyond the type's ends the way back says nothing; between them it cuts off fractions only.
    info = np.iinfo(whole.dtype)
    inside = (numbers >= float(info.min)) & (numbers < float(int(info.max) + 1))
    alike: NDArray[np.bool_] = inside & (numbers.astype(whole.dtype) == whole)
    alike &= np.trunc(numbers) == numbers
    return ~alike
