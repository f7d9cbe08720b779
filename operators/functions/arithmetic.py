"""Arithmetic of functions: floating-point numbers in 32 bits or more, whole numbers exactly.

A floating-point result is rounded once, to the element type of its tile. Whole numbers are computed
in int64, or as Python's integers if 64 bits may not be enough, so no result wraps. ``narrow``
refuses a result that a type of integers or booleans does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final, TypeAlias

import ml_dtypes
import numpy as np

from fabric import ValueChangedError
from fabric.extend import (
    TrackedArray,
    block_format,
    converted,
    dtype_name,
    kept_as,
    limits,
    numbers_of,
)

Array: TypeAlias = np.ndarray

Terms: TypeAlias = Callable[[int, int], Iterable[Array]]
"""Returns the operands of the result at a row and a column."""

_WORD: Final = np.dtype(np.int64)
_MOST: Final = int(np.iinfo(_WORD).max)
_NAMED: Final = 4
"""The most numbers of an operand that an error lists."""

_E4M3: Final = np.dtype(ml_dtypes.float8_e4m3fn)

_NUMBERS: Final = {
    np.dtype(each): np.arange(256, dtype=np.uint8).view(each).astype(np.float32)
    for each in (_E4M3, ml_dtypes.float8_e5m2)
}
"""The numbers of each 8-bit type by their bits; a look-up is five times as fast as a cast."""

_IN_32_BITS: Final = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def wide(data: Array) -> Array:
    """Return ``data`` for arithmetic: small floats in 32 bits, whole numbers in int64.

    Whole numbers that int64 does not hold are Python's integers.
    """
    if isinstance(data, TrackedArray):
        return data.become(wide(data.view(Array)))
    dtype = data.dtype
    if dtype in _IN_32_BITS or dtype == np.float32:
        return data.astype(np.float32, copy=False)
    numbers = _NUMBERS.get(dtype)
    if numbers is not None:
        return np.asanyarray(numbers.take(data.view(np.uint8)))
    if block_format(dtype) is not None:
        return numbers_of(data)
    if limits(dtype) is None:
        return data
    beyond = dtype == np.uint64 and int(data.max(initial=0)) > _MOST
    return data.astype(object if beyond else _WORD, copy=False)


def wide_type(dtype: np.dtype) -> np.dtype:
    if dtype in _NUMBERS or dtype in _IN_32_BITS or block_format(dtype) is not None:
        return np.dtype(np.float32)
    ends = limits(dtype)
    return dtype if ends is None or ends[1] > _MOST else _WORD


def is_whole(data: Array) -> bool:
    """Whether ``data``, a result of ``wide``, holds whole numbers."""
    return data.dtype.kind in "iO"


def is_nan(data: Array) -> Array:
    """Return where ``data`` is NaN; whole numbers never are."""
    return np.zeros(data.shape, bool) if is_whole(data) else np.isnan(data)


def largest(data: Array) -> int:
    """Return the largest magnitude of whole numbers; 0 for floating-point numbers."""
    if not is_whole(data):
        return 0
    return max(-int(data.min(initial=0)), int(data.max(initial=0)))


def roomy(bound: int, *arrays: Array) -> tuple[Array, ...]:
    """Return arrays that can hold intermediate results up to ``bound``.

    If all arrays have whole numbers and the bound exceeds 64 bits, they become Python's integers.
    """
    if bound <= _MOST or not all(map(is_whole, arrays)):
        return arrays
    return tuple(array.astype(object) for array in arrays)


def plus(left: Array, right: Array) -> Array:
    if is_whole(left):
        left, right = roomy(largest(left) + largest(right), left, right)
    return np.asanyarray(left + right)


def times(left: Array, right: Array) -> Array:
    if is_whole(left):
        left, right = roomy(largest(left) * largest(right), left, right)
    return np.asanyarray(left * right)


def total(data: Array) -> Array:
    """Return the sum of each row, as a column."""
    if is_whole(data):
        (data,) = roomy(largest(data) * data.shape[1], data)
    return np.asanyarray(data.sum(axis=1, keepdims=True))


def divided(left: Array, right: Array) -> Array:
    """Return ``left / right``; quotients of whole numbers are exact integers or fractions."""
    if not (is_whole(left) and is_whole(right)):
        return np.asanyarray(left / right)
    # The quotient of the least number and -1 is beyond 64 bits.
    left, right = roomy(largest(left), left, right)
    if right.all() and not (left % right).any():
        return np.asarray(left // right)
    shape = np.broadcast_shapes(left.shape, right.shape)
    quotients = np.empty(shape, object)
    pairs = zip(*(np.broadcast_to(each, shape).flat for each in (left, right)), strict=True)
    quotients[...] = np.reshape([_quotient(int(x), int(y)) for x, y in pairs], shape)
    return quotients


def _quotient(left: int, right: int) -> Fraction | float:
    if right:
        return Fraction(left, right)
    return math.copysign(math.inf, left) if left else math.nan


def narrow(data: Array, dtype: np.dtype, by: str = "a function", of: Terms | None = None) -> Array:
    """Return a result rounded to the element type of its tile; an exact run does not round floats.

    Args:
        data: the result.
        dtype: the element type.
        by: the name of the function, for the error.
        of: the operands of each number of the result, for the error.

    Raises:
        ValueError: an integer or boolean type does not hold a number; the message names the number,
            its place and its operands.
    """
    dtype = kept_as(dtype)
    if data.dtype == dtype:
        return data
    if isinstance(data, TrackedArray):
        return data.become(narrow(data.view(Array), dtype, by, of))
    ends = limits(dtype)
    if block_format(dtype) is not None:
        return converted(data, dtype)
    if ends is None:
        # float8_e4m3 has no infinity: larger numbers become 448, as in PyTorch.
        with np.errstate(all="ignore"):
            return (np.clip(data, -448, 448) if dtype == _E4M3 else data).astype(dtype)
    if data.dtype == object:
        whole = [ends[0] <= each <= ends[1] and each % 1 == 0 for each in data.flat]
        held = np.reshape(np.array(whole, bool), data.shape)
    elif data.dtype == _WORD:
        held = (ends[0] <= data) & (data <= ends[1])
    else:
        try:
            return converted(data, dtype)
        except ValueChangedError as error:
            raise _refused(error.number, error.place, dtype, by, of) from error
    if not held.all():
        place = tuple(np.argwhere(~held)[0].tolist())
        raise _refused(data[place], place, dtype, by, of)
    # Not every type of ml_dtypes takes Python's integers.
    return (data if data.dtype == _WORD or ends[1] > _MOST else data.astype(_WORD)).astype(dtype)


def _refused(
    number: object, place: tuple[int, ...], dtype: np.dtype, by: str, of: Terms | None
) -> ValueError:
    ends = limits(dtype)
    assert ends is not None
    made = ""
    if of is not None:
        made = " from " + " and ".join(_listed(np.asarray(each)) for each in of(*place))
    return ValueError(
        f"{by} gives {number}{made} at {list(place)}: expected a whole number from {ends[0]} to "
        f"{ends[1]}, as {dtype_name(dtype)} holds them"
    )


def _listed(numbers: Array) -> str:
    if not numbers.ndim:
        return str(numbers[()])
    more = ", ..." if numbers.size > _NAMED else ""
    return f"[{', '.join(str(each) for each in numbers.reshape(-1)[:_NAMED])}{more}]"
