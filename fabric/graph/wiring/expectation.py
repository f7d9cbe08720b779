"""Expected outputs and streams of a program, and their tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Annotated, NamedTuple, NoReturn, TypeAlias

from fabric.graph.arguments.checks import Check, Unfit
from fabric.graph.arguments.described import refuse
from fabric.messages.place import Place


def _bound(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise Unfit
    return float(value)


Bound: TypeAlias = Annotated[
    float,
    Check(
        "a number from 0 on",
        "numbers from 0 on",
        _bound,
        lambda value: "; no output can have this name" if callable(value) else "",
    ),
]


class Tolerance(NamedTuple):
    """Bounds of errors: ``|found - wanted| <= atol + rtol * |wanted|``.

    None: the bound follows from the rounding errors that a functional run estimates.
    """

    rtol: float | None
    atol: float | None
    equal_nan: bool


class Expectation(NamedTuple):
    """An expected output or stream.

    Attributes:
        compute: returns the array of an output, or the tiles of a stream.
        finer: returns the array in higher precision, or None if unknown.
    """

    compute: Callable[[], object]
    tolerance: Tolerance
    place: Place
    finer: Callable[[], object] = lambda: None

    def refuse_output(self, program: str, name: str, stored: Iterable[str]) -> NoReturn:
        names = ", ".join(sorted(stored)) or "nothing"
        refuse(
            f"program {program!r} expects an output {name!r}, but stores {names}", place=self.place
        )
