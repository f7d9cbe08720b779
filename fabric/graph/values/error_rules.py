"""Running error analysis: the errors of results, computed from the errors of operands.

Errors are treated as independent, so their squares are added.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from fabric.graph.values.block_scaled import block_format, blocks_of, numbers_of
from fabric.graph.values.fit import unit_of

Array: TypeAlias = np.ndarray

REACH: Final = 5.0
"""A number may be off by this many times its error. Errors are standard deviations: one number in
1.7 million is off by more than 5 standard deviations."""

JUMP: Final = 1.45
"""The jump of a step function at a tie is this many times the error of its result."""

_FEW: Final = 1024
"""For fewer numbers, ``hypot`` is faster than five vectorised functions."""

FLOAT: Final = np.dtype(np.float32)

STEPS: Final = {
    np.ceil,
    np.floor,
    np.floor_divide,
    np.fmod,
    np.remainder,
    np.rint,
    np.sign,
    np.trunc,
}
"""Step functions. Their results are exact or off by a jump."""

ROUNDED_ONCE: Final = {np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.square}
"""Functions that return the nearest numbers of the type, as IEEE 754 requires."""

Errors: TypeAlias = "Sequence[Array | None]"


def is_float(dtype: np.dtype) -> bool:
    """Whether numbers of this type are rounded, one by one or in blocks."""
    return bool(unit_of(dtype)) or block_format(dtype) is not None


def is_rounded(own: np.dtype, kind: np.dtype) -> bool:
    """Whether numbers of type ``own`` are rounded to become ``kind``."""
    if kind == own or block_format(own) is not None or not is_float(own):
        return False
    return not 0 < unit_of(kind) <= unit_of(own)


def floats(array: Any) -> Array:
    """Return numbers that numpy computes with: float32 or float64."""
    plain = np.asarray(array)
    if plain.dtype in (FLOAT, np.float64):
        return plain
    if block_format(plain.dtype) is not None:
        return numbers_of(plain)
    return plain.astype(FLOAT if plain.dtype.itemsize < 4 else np.float64)


@cache
def half(dtype: np.dtype) -> tuple[float, float]:
    """Return half the distance of adjacent numbers: relative, and absolute for the smallest.

    Numbers that are not rounded have (0, 0).
    """
    finfo: Any = vars(ml_dtypes)["finfo"]
    unit = unit_of(dtype)
    return unit / 2, float(finfo(dtype).smallest_subnormal) / 2 if unit else 0.0


def half_unit(array: Array, dtype: np.dtype) -> Any:
    """Return the largest errors of rounding to ``dtype``, for numbers that became ``array``."""
    unit, least = half(dtype)
    return unit * np.abs(floats(array)) + least


def lost(numbers: Array, kept: Array) -> Any:
    """Return the errors of rounding ``numbers`` to ``kept``.

    If a type without infinities clamps a number to its largest number, the change is not rounding.
    """
    return np.minimum(np.abs(numbers - floats(kept)), half_unit(kept, kept.dtype))


def ratio(off: Array, numbers: Array, axis: int | None) -> Array:
    """Return the root mean square of the errors, divided by the root mean square of ``numbers``."""
    most = np.max(np.abs(numbers), axis=axis, keepdims=True, initial=0)
    most = np.where(np.isfinite(most) & (most > 0), most, 1)
    errors, shares = (
        np.sum(np.square(np.broadcast_to(values, numbers.shape) / most), axis=axis, keepdims=True)
        for values in (off, numbers)
    )
    ratios: Array = np.where(shares > 0, np.sqrt(errors / np.where(shares > 0, shares, 1)), 0)
    return ratios if axis is not None else ratios.reshape(())


def largest(numbers: Array) -> Any:
    """Return the largest magnitude, or 1, to divide the numbers by before they are squared."""
    most = np.max(np.abs(numbers), initial=0)
    return most if math.isfinite(most) and most > 0 else numbers.dtype.type(1)


def grouped(squares: Array, axis: int, starts: Array) -> Array:
    return squares if len(starts) == squares.shape[axis] else np.add.reduceat(squares, starts, axis)


def zeroed(errors: Array | None) -> Any:
    return 0 if errors is None else errors


def _times(factor: Any, errors: Array | None) -> Array | None:
    return None if errors is None else factor * errors


def joined(one: Array | None, other: Array | None) -> Any:
    """Return the root of the sum of the squares of two independent errors."""
    if one is None or other is None:
        return other if one is None else one
    if one.size < _FEW:
        return np.hypot(one, other)
    squares = one * one + other * other
    return np.minimum(np.maximum(np.sqrt(squares), np.maximum(one, other)), one + other)


def sum_errors(result: Array, sums: Array, errors: Array, independent: Array, count: float) -> Any:
    """Return the errors of sums of ``count`` numbers.

    ``sums`` are sums of magnitudes, ``errors`` sums of errors, and ``independent`` the roots of the
    sums of squared errors.
    """
    unit, least = half(result.dtype)
    # A relative error that all summands share is a relative error of the sum.
    shared = np.abs(floats(result)) * errors / np.where(sums > 0, sums, 1)
    summing = unit * (1 + math.sqrt(count) / 8) * sums + least
    return np.hypot(independent, shared) + summing


def factor_squares(y: Array, size: int, starts: Array) -> tuple[Array, Any]:
    """Return sums of squares over groups of rows, and the number by which rows were divided."""
    if y.flags.c_contiguous and y.shape[-2] % size == 0:
        groups = y.reshape(*y.shape[:-2], -1, size, y.shape[-1])
        held = np.square(y) if size == 1 else np.einsum("...kn,...kn->...n", groups, groups)
        most = held.max(initial=0)
        if math.isfinite(most) and most > np.finfo(y.dtype).tiny / np.finfo(y.dtype).eps:
            return held, y.dtype.type(1)
    right = largest(y)
    return grouped(np.square(y / right), -2, starts), right


def shifted(function: Callable[..., Array], numbers: Sequence[Array], off: Errors) -> Array:
    """Return how far results change if operands change by their errors."""
    unshifted = floats(function(*numbers))
    result: Any = None
    for index, error in enumerate(off):
        if error is None:
            continue
        worst: Any = 0.0
        for shift in (-error, error):
            moved = [*numbers]
            moved[index] = (moved[index] + shift).astype(moved[index].dtype)
            changed = np.abs(floats(function(*moved)) - unshifted)
            worst = np.fmax(worst, np.where(np.isfinite(changed), changed, 0))
        result = joined(result, worst)
    return np.asarray(zeroed(result))


def jumps(function: Callable[..., Array], numbers: Sequence[Array], off: Errors) -> Any:
    """Return the errors of a step function: the jumps within reach of its operands' errors."""
    return shifted(function, numbers, [_times(REACH, error) for error in off]) / JUMP


def in_blocks(dtype: np.dtype) -> Callable[[Array], Array]:
    return lambda numbers: numbers_of(blocks_of(np.nan_to_num(numbers), dtype))


def _added(x: Array, y: Array, ex: Array | None, ey: Array | None) -> Any:  # noqa: ARG001 - as other rules
    return joined(ex, ey)


def _multiplied(x: Array, y: Array, ex: Array | None, ey: Array | None) -> Any:
    return joined(_times(np.abs(y), ex), _times(np.abs(x), ey))


def _quotient(x: Array, y: Array, ex: Array | None, ey: Array | None) -> Any:
    return joined(ex, _times(np.abs(x / y), ey)) / np.abs(y)


RULES: Final[dict[Any, Callable[..., Any]]] = {
    np.add: _added,
    np.subtract: _added,
    np.multiply: _multiplied,
    np.divide: _quotient,
    np.exp: lambda x, ex: np.exp(x) * np.expm1(ex),
}
"""Functions that compute the error of a result from operands and their errors.

Errors of other functions are computed by ``shifted``."""
