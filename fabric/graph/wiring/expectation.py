"""Expected outputs and streams of a program, and tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import NamedTuple, NoReturn

from fabric.graph.arguments.described import refuse
from fabric.messages.place import Place


class Tolerance(NamedTuple):
    """Bounds of errors: ``|found - wanted| <= atol + rtol * |wanted|``, carried errors if None."""

    rtol: float | None
    atol: float | None
    equal_nan: bool

    @classmethod
    def of(cls, rtol: object, atol: object, equal_nan: object) -> Tolerance:
        """Return the checked tolerance of ``expect``."""
        if equal_nan not in (True, False):
            refuse(f"expect: equal_nan is {_kind(equal_nan)}: expected True or False")
        return cls(_bound("rtol", rtol), _bound("atol", atol), bool(equal_nan))


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

    def refuse_output(self, program: str, name: str, stored: Iterable[str]) -> NoReturn:
        """Refuse the expectation of an output that is not ``stored``."""
        known = ", ".join(sorted(stored)) or "nothing"
        refuse(
            f"program {program!r} expects an output {name!r}, but stores {known}", place=self.place
        )


def expectations(
    outputs: Mapping[str, object], tolerance: Tolerance, place: Place
) -> dict[str, Expectation]:
    """Return the arguments of ``expect`` at ``place``, by output."""
    if not outputs:
        refuse("expect: no output is named: expected one, such as y=lambda: x @ w")
    found = {}
    for name, compute in outputs.items():
        if not callable(compute):
            refuse(
                f"expect: {name} is {_kind(compute)}: expected a function that returns the array, "
                f"such as {name}=lambda: array"
            )
        found[name] = Expectation(compute, tolerance, place)
    return found


def _bound(name: str, given: object) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, Real):
        called = f"; an output cannot be called {name}" if callable(given) else ""
        refuse(f"expect: {name} is {_kind(given)}: expected a number from 0 on{called}")
    value = float(given)
    if not (math.isfinite(value) and value >= 0):
        refuse(f"expect: {name} is {value:g}: expected a number from 0 on")
    return value


def _kind(given: object) -> str:
    return "a function" if callable(given) else f"of type {type(given).__name__}"
