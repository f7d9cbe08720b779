"""What a program expects of a stored output: who computes it, and how close is close enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import NamedTuple

from fabric.telling.errors import ProgramError
from fabric.telling.place import Place

__all__ = ["Expectation", "Tolerance", "expectations"]


class Tolerance(NamedTuple):
    """How close is close enough: ``|found - wanted| <= atol + rtol * |wanted|``.

    Attributes:
        rtol, atol: derived from the element type of what is stored where None.
        equal_nan: a NaN is right where one is expected.
    """

    rtol: float | None
    atol: float | None
    equal_nan: bool


class Expectation(NamedTuple):
    """An output as it should be.

    Attributes:
        compute: returns the array.
        tolerance: of its elements.
        place: where the program says so.
    """

    compute: Callable[[], object]
    tolerance: Tolerance
    place: Place


def expectations(
    outputs: Mapping[str, object], rtol: object, atol: object, equal_nan: object, place: Place
) -> dict[str, Expectation]:
    """Return what ``expect`` was told at ``place``, by the name of the output.

    Raises:
        ProgramError: no output, something that cannot be called, or what is no tolerance.
    """
    if equal_nan not in (True, False):
        raise _refused(f"equal_nan is {_kind(equal_nan)}: expected True or False", place)
    tolerance = Tolerance(_bound("rtol", rtol, place), _bound("atol", atol, place), bool(equal_nan))
    if not outputs:
        raise _refused("no output is named: expected one, such as y=lambda: x @ w", place)
    found = {}
    for name, compute in outputs.items():
        if not callable(compute):
            raise _refused(
                f"{name} is {_kind(compute)}: expected a function that returns the array, such as "
                f"{name}=lambda: array",
                place,
            )
        found[name] = Expectation(compute, tolerance, place)
    return found


def _bound(name: str, given: object, place: Place) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, Real):
        called = f"; an output cannot be called {name}" if callable(given) else ""
        raise _refused(f"{name} is {_kind(given)}: expected a number from 0 on{called}", place)
    value = float(given)
    if not (math.isfinite(value) and value >= 0):
        raise _refused(f"{name} is {value:g}: expected a number from 0 on", place)
    return value


def _kind(given: object) -> str:
    return "a function" if callable(given) else f"of type {type(given).__name__}"


def _refused(message: str, place: Place) -> ProgramError:
    return ProgramError(f"expect: {message}", file=place.file, line=place.line)
