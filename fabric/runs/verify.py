"""Compare what a program stored with what it says it should have stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import ml_dtypes
import numpy as np

from fabric.runs.verification import Mismatch, Number, OutputVerification, Verification
from fabric.telling.errors import ProgramError
from fabric.telling.place import Place
from fabric.values.value import dtype_name
from fabric.wiring.expectation import Expectation, Tolerance
from fabric.wiring.program import Program

__all__ = ["default_tolerance", "verify"]

Array = np.ndarray

_ROUNDINGS: Final = ((2**-2, 1.5, 5.0), (2**-4, 2.0, 8.0), (2**-11, 4.0, 24.0), (0.0, 32.0, 256.0))
"""For element types from a unit in the last place of 1 on: rtol and atol in such units, atol of
the typical number. Sums of more than 1,000 products in float32 are within, and the shipped programs
in 16 bits, whose rows differ in scale, by half of it; the few values of an 8-bit type leave room
for three or four roundings, or zeros would pass.
"""

_PLACES: Final = 5
_BLOCK: Final = 1 << 16
"""Elements that are compared at once."""

_EXACT: Final = 2**53
"""Up to here float64 has every integer."""


def verify(program: Program, stored: Mapping[str, Array]) -> Verification | None:
    """Compare the outputs that ``program`` expects; None where it expects nothing.

    The model is that of ``numpy.testing.assert_allclose``.

    Raises:
        ProgramError: an output is expected that no operator stores, or that cannot be compared.
    """
    if not program.expected:
        return None
    return Verification(
        outputs=tuple(
            _compare(program, name, expectation, stored)
            for name, expectation in program.expected.items()
        ),
        unexpected=tuple(name for name in stored if name not in program.expected),
    )


def default_tolerance(dtype: np.dtype, wanted: Array) -> tuple[float, float]:
    """Return rtol and atol for an output of type ``dtype``: 0 and 0 for integers and booleans.

    Args:
        dtype: of what was stored.
        wanted: of any type; its typical number is the median of the magnitudes but 0.
    """
    if not _is_float(dtype):
        return 0.0, 0.0
    finfo = vars(ml_dtypes)["finfo"](dtype)  # it has no annotations
    unit = float(finfo.eps)
    rtol, atol = next((rtol, atol) for least, rtol, atol in _ROUNDINGS if unit >= least)
    wanted = np.asarray(wanted, np.float64)
    magnitudes = np.abs(wanted[np.isfinite(wanted) & (wanted != 0)])
    typical = _median(magnitudes) if magnitudes.size else 0.0
    return rtol * unit, atol * unit * typical + float(finfo.smallest_subnormal)


def _median(numbers: Array) -> float:
    """Return the median of finite numbers; numpy's own imports masked arrays to look for NaN."""
    middle = (numbers.size - 1) // 2, numbers.size // 2
    return float(np.mean(np.partition(numbers, middle)[list(middle)]))


def _compare(
    program: Program, name: str, expectation: Expectation, stored: Mapping[str, Array]
) -> OutputVerification:
    place = expectation.place
    if name not in stored:
        known = ", ".join(sorted(stored)) or "nothing"
        raise ProgramError(
            f"program {program.name!r} expects an output {name!r}, but stores {known}",
            file=place.file,
            line=place.line,
        )
    given = program.ask(f"expect({name}=...)", expectation.compute)
    found = _real(f"output {name!r} is stored as", stored[name], place)
    wanted = _real(f"expect({name}=...) returns", given, place)
    size = max(found.size, wanted.size)
    compared = OutputVerification(
        output=name,
        dtype=dtype_name(found.dtype),
        shape=found.shape,
        wanted_shape=wanted.shape,
        elements=size,
        mismatched=size,
    )
    if found.shape != wanted.shape:
        return compared
    return _counted(compared, found, wanted, expectation.tolerance)


def _counted(
    compared: OutputVerification, found: Array, wanted: Array, given: Tolerance
) -> OutputVerification:
    """Return ``compared`` with the counts, errors and places of two arrays of one shape."""
    rtol, atol = given.rtol, given.atol
    if rtol is None or atol is None:
        with np.errstate(all="ignore"):
            derived = default_tolerance(found.dtype, wanted)
        rtol, atol = derived[0] if rtol is None else rtol, derived[1] if atol is None else atol
    flat_found, flat_wanted = found.reshape(-1), wanted.reshape(-1)
    mismatched, absolute, relative = 0, 0.0, -1.0
    wrong: list[int] = []
    for first in range(0, found.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        # Blocks stay in the cache: the arrays in between would be many times the output.
        error, expected, right = _errors(flat_found[block], flat_wanted[block], given.equal_nan)
        with np.errstate(all="ignore"):
            # An expected infinity has an infinite bound: only itself is within.
            within = np.isfinite(error) & (error <= atol + rtol * np.abs(expected))
            places = np.flatnonzero(~right & ~within)
            comparable = np.isfinite(expected) & (expected != 0)
            relatives = error[comparable] / np.abs(expected[comparable])
        mismatched += len(places)
        wrong += (first + places[: _PLACES - len(wrong)]).tolist()
        absolute = max(absolute, float(error.max()))
        relative = max(relative, float(relatives.max(initial=-1)))
    indices = (np.unravel_index(place, found.shape) for place in wrong)
    return replace(
        compared,
        mismatched=mismatched,
        rtol=rtol,
        atol=atol,
        absolute_error=absolute,
        relative_error=None if relative < 0 else relative,
        places=tuple(
            Mismatch(tuple(map(int, index)), _plain(found[index]), _plain(wanted[index]))
            for index in indices
        ),
    )


def _errors(found: Array, wanted: Array, equal_nan: bool) -> tuple[Array, Array, Array]:
    """Return the errors and what is wanted, in float64, and where both are exactly the same."""
    left, right = _exactly(found, wanted)
    with np.errstate(all="ignore"):
        same: Array = left == right
        if equal_nan:
            same |= (left != left) & (right != right)  # noqa: PLR0124 - NaNs
        error = np.abs(left - right).astype(np.float64)
        error[same] = 0
        error[np.isnan(error)] = np.inf
        return error, right.astype(np.float64), same


def _exactly(found: Array, wanted: Array) -> tuple[Array, Array]:
    """Return both for arithmetic: as float64, or as Python's integers where that would round."""
    if _fits(found) and _fits(wanted):
        return found.astype(np.float64), wanted.astype(np.float64)
    return _as_integers(found), _as_integers(wanted)


def _as_integers(array: Array) -> Array:
    numbers = map(_plain, array)
    whole = [int(each) if float(each).is_integer() else each for each in numbers]
    return np.array(whole, object)


def _fits(array: Array) -> bool:
    if array.dtype.kind not in "iu" or not array.size:
        return True
    return int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT


def _plain(number: np.generic | np.ndarray) -> Number:
    """Return a number of Python's; there is one NaN, so that equal reports are equal."""
    if number.dtype.kind == "b":
        return bool(number)
    if _is_integer(number.dtype):
        return int(number)
    value = float(number)
    return math.nan if math.isnan(value) else value


def _real(what: str, given: object, place: Place) -> Array:
    """Return ``given`` as an array of real numbers."""
    try:
        array = np.asarray(given)
    except ValueError:
        kind = f"a {type(given).__name__} of uneven rows"
    else:
        if _is_float(array.dtype) or _is_integer(array.dtype) or array.dtype.kind == "b":
            return array
        kind = str(array.dtype)
    raise ProgramError(f"{what} {kind}: expected real numbers", file=place.file, line=place.line)


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind != "c" and _describes("finfo", dtype)


def _is_integer(dtype: np.dtype) -> bool:
    return _describes("iinfo", dtype)


def _describes(kind: str, dtype: np.dtype) -> bool:
    """Whether numpy or ml_dtypes knows ``dtype`` as a type of this kind."""
    try:
        vars(ml_dtypes)[kind](dtype)
    except ValueError:
        return False
    return True
