"""Conversions of arrays to another element type: floats may round, integers must stay equal."""

from __future__ import annotations

from functools import lru_cache

# Any: ml_dtypes has no types.
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fabric.graph.values.block_scaled import block_format, blocks_of
from fabric.graph.values.value import dtype_name

_NUMPYS: Final = "biuf"
"""Kinds of numpy's real numbers. The types of ml_dtypes have other kinds."""


@lru_cache
def limits(dtype: np.dtype) -> tuple[int, int] | None:
    """Return the least and the largest number of a type of integers; None for other types.

    The numbers of booleans are 0 and 1.
    """
    if dtype.kind == "b":
        return 0, 1
    try:
        info: Any = vars(ml_dtypes)["iinfo"](dtype)
    except ValueError:
        return None
    return int(info.min), int(info.max)


def holds_integers(dtype: np.dtype) -> bool:
    """Whether a type holds integers only; booleans are not integers."""
    return dtype.kind != "b" and limits(dtype) is not None


class ValueChangedError(ValueError):
    """A value would change by more than rounding; the message has the value and its index.

    Attributes:
        number: the value before the conversion; None if no element is a number.
        place: the index of the number; empty if no element is a number.
    """

    def __init__(self, what: str, number: object = None, place: tuple[int, ...] = ()) -> None:
        super().__init__(what)
        self.number = number
        self.place = place


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a copy of ``array`` as ``dtype``.

    Raises:
        ValueChangedError: a value changes by more than the rounding of a floating-point number.
    """
    if array.dtype == dtype:
        return array.copy()
    if _only_rounds(array, dtype):
        return array.astype(dtype)
    source = _numbers(array, dtype)
    in_blocks = block_format(dtype) is not None
    with np.errstate(all="ignore"):
        result = source if in_blocks else source.astype(dtype)
        changed = ~np.isfinite(source) if in_blocks else _changed(source, result)
    if not changed.any():
        return blocks_of(source, dtype) if in_blocks else result
    place, name = tuple(np.argwhere(changed)[0].tolist()), dtype_name(dtype)
    number, became = source[place], result[place]
    why = f"no block of {name} holds" if in_blocks else f"is {became} as {name}"
    raise ValueChangedError(f"{number} at {list(place)}, which {why}", number, place)


def filled(shape: tuple[int, ...], number: float, dtype: np.dtype) -> np.ndarray:
    """Return an array filled with ``number``, which ``dtype`` can represent."""
    if block_format(dtype) is not None:
        return blocks_of(np.full(shape, number, np.float64), dtype)
    return np.full(shape, number, dtype)


def check_converts(array: np.ndarray, dtype: np.dtype) -> None:
    """Check that ``converted`` would change the values of an array by rounding only.

    Raises:
        ValueChangedError: a value changes.
    """
    if array.dtype != dtype and not _only_rounds(array, dtype):
        converted(array, dtype)


def _only_rounds(array: np.ndarray, dtype: np.dtype) -> bool:
    """Whether the range of an array shows that its values change by rounding only."""
    if _is_small(array.dtype):
        array = array.astype(np.float32)  # exact
    kind = array.dtype.kind
    if block_format(dtype) is not None:
        return False
    if kind not in _NUMPYS or (kind == "f" and limits(dtype) is not None) or dtype.kind == "b":
        return False
    if not array.size:
        return True
    least, most = _range(kind != "f", dtype)
    # A NaN fails both comparisons.
    with np.errstate(invalid="ignore"):
        return bool(least <= array.min().item() and array.max().item() <= most)


def _is_small(dtype: np.dtype) -> bool:
    return dtype.itemsize <= 2 and dtype.type.__module__.startswith("ml_dtypes")


def _range(whole: bool, dtype: np.dtype) -> tuple[float, float]:
    """Return the range in which numbers are only rounded; if ``whole``, they do not change."""
    ends = limits(dtype)
    if ends is not None:
        return ends
    finfo: Any = vars(ml_dtypes)["finfo"]
    info = finfo(dtype)
    most = float(2 ** (int(info.nmant) + 1)) if whole else float(info.max)
    return -most, most


def _numbers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype.kind in _NUMPYS:
        return array
    if _is_small(array.dtype):
        return array.astype(np.float64)
    raise ValueChangedError(
        f"elements of {array.dtype}, which cannot become numbers of {dtype_name(dtype)}"
    )


def _changed(source: np.ndarray, result: np.ndarray) -> NDArray[np.bool_]:
    from_whole, to_whole = source.dtype.kind != "f", limits(result.dtype) is not None
    changed: NDArray[np.bool_]
    if to_whole and result.dtype.kind not in _NUMPYS:
        result = result.astype(np.int64)  # numpy compares only its own types
    if from_whole and to_whole:
        changed = source != result
    elif from_whole:
        changed = _differ(source, result.astype(np.float64))
    elif to_whole:
        changed = _differ(result, source.astype(np.float64))
    else:
        finite = np.isfinite(result)
        changed = ~finite
        if changed.any():
            changed &= np.isfinite(source) | (np.isinf(source) & np.isnan(result))
    return changed


def _differ(whole: np.ndarray, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    if whole.dtype.kind == "b":
        return np.asarray(numbers != whole)
    # Converting back is exact within the range of the type, except for fractions.
    info = np.iinfo(whole.dtype)
    inside = (numbers >= float(info.min)) & (numbers < float(int(info.max) + 1))
    alike: NDArray[np.bool_] = inside & (numbers.astype(whole.dtype) == whole)
    alike &= np.trunc(numbers) == numbers
    return ~alike
