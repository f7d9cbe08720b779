"""Expected outputs and streams of a program, and tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import NamedTuple

from fabric.messages.errors import ProgramError
from fabric.messages.place import Place


class Tolerance(NamedTuple):
    """Bounds of errors: ``|found - wanted| <= atol + rtol * |wanted|``, carried errors if None."""

    rtol: float | None
    atol: float | None
    equal_nan: bool

    @classmethod
    def of(cls, rtol: object, atol: object, equal_nan: object, place: Place) -> Tolerance:
        """Return the checked tolerance of ``expect`` at ``place``."""
        if equal_nan not in (True, False):
            raise _refused(f"equal_nan is {_kind(equal_nan)}: expected True or False", place)
        return cls(_bound("rtol", rtol, place), _bound("atol", atol, place), bool(equal_nan))


class Expectation(NamedTuple):
    """An expected output or stream.

    Attributes:
        compute: returns the array, or the tiles.
        finer: returns the array with more digits, or None.
    """

    compute: Callable[[], object]
    tolerance: Tolerance
    place: Place
    finer: Callable[[], object] = lambda: None

    def without_output(self, program: str, name: str, stored: Iterable[str]) -> ProgramError:
        """Return the error for an expected output that is not ``stored``."""
        known = ", ".join(sorted(stored)) or "nothing"
        return ProgramError(
            f"program {program!r} expects an output {name!r}, but stores {known}",
            file=self.place.file,
            line=self.place.line,
        )


def expectations(
    outputs: Mapping[str, object], tolerance: Tolerance, place: Place
) -> dict[str, Expectation]:
    """Return the arguments of ``expect`` at ``place``, by output."""
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
