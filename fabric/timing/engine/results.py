"""What users' hardware functions return, compared with what they have promised.

The fabric's own functions are handed on as they are, and cost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Protocol, TypeAlias

from fabric.graph.values.fit import MOST_CYCLES, described, element_misfit, freeze, misfit, whole
from fabric.graph.values.stream_type import StreamType, ValueType
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import Place, defining_place, is_own

Call: TypeAlias = Callable[..., Any]
"""Functions of users take and return what they like; what it is is looked at."""

__all__ = ["numbers_of", "parts_of", "update_of", "values_of"]


class Updating(Protocol):
    """What ``update_of`` is given."""

    @property
    def update(self) -> Call:
        """Return the next state."""


class Splitting(Protocol):
    """What ``parts_of`` is given."""

    @property
    def apply(self) -> Call:
        """Return parts with their stops."""

    @property
    def rank(self) -> int:
        """Of the stream of parts."""


def values_of(function: object, method: str, kind: ValueType, functional: bool) -> Call:
    """Return ``function.method``, whose results have to be of type ``kind``."""
    call: Call = getattr(function, method)
    if is_own(function):
        return call
    refuse = _refusals(function, method)

    @wraps(call)
    def checked(*inputs: object) -> object:
        freeze(inputs)
        result = call(*inputs)
        wrong = misfit(result, kind, functional)
        refuse(wrong)
        freeze(result, sent=True)
        return result

    return checked


def update_of(reduction: Updating) -> Call:
    """Return ``reduction.update``, which leaves its inputs as they are."""
    call: Call = reduction.update
    if is_own(reduction):
        return call

    @wraps(call)
    def checked(state: object, *inputs: object) -> object:
        freeze(inputs)
        return call(state, *inputs)

    return checked


def numbers_of(function: object, method: str) -> Callable[..., int]:
    """Return ``function.method``, whose results have to be integers of at least 0."""
    call: Callable[..., int] = getattr(function, method)
    if is_own(function):
        return call
    name, place = _named(function, method)

    @wraps(call)
    def checked(*inputs: object) -> int:
        result = call(*inputs)
        if type(result) is int and 0 <= result < MOST_CYCLES:
            return result
        try:
            number = whole(result, f"is returned by {name}")
        except Refusal as refusal:
            refusal.place = place
            raise
        if number >= MOST_CYCLES:
            raise Refusal(f"{number} is returned by {name}: expected less than 2**60", place=place)
        return number

    return checked


def parts_of(split: Splitting, part: ValueType, functional: bool) -> Call:
    """Return ``split.apply``, which gives streams of rank ``split.rank`` of ``part``s."""
    call: Call = split.apply
    if is_own(split):
        return call
    refuse = _refusals(split, "apply")
    rank: int = split.rank
    stream_type = StreamType((1,) * (rank + 1), part)

    @wraps(call)
    def checked(tile: object) -> object:
        freeze(tile)
        parts = call(tile)
        wrong = _wrong_parts(parts, stream_type, functional)
        refuse(wrong)
        return parts

    return checked


def _wrong_parts(parts: object, stream_type: StreamType, functional: bool) -> str | None:
    if type(parts) is not list:
        return f"{described(parts)}: expected a list of parts, each with its stop"
    rank = last = stream_type.rank
    for number, element in enumerate(parts):
        if type(element) is not tuple or len(element) != 2 or type(element[1]) is not int:
            return (
                f"a list whose item {number} is {described(element)}: expected a tuple (part, "
                "level of the stop)"
            )
        wrong = element_misfit(element, last, stream_type, functional)
        if wrong is not None:
            return f"a list whose item {number} {wrong}"
        last = element[1]
        freeze(element[0], sent=True)
    if last != rank:
        return f"a list whose last stop is of level {last}: expected {rank}, the rank of the split"
    return None


def _refusals(function: object, method: str) -> Callable[[str | None], None]:
    """Return what raises, unless it is given None, a refusal with the number of the call."""
    name, place = _named(function, method)
    numbers: Iterator[int] = itertools.count()

    def refuse(wrong: str | None) -> None:
        number = next(numbers)
        if wrong is not None:
            raise Refusal(f"result {number:,} of {name} is {wrong}", place=place, counted=True)

    return refuse


def _named(function: object, method: str) -> tuple[str, Place | None]:
    """Return what ``method`` is called, and where it is defined, or else its class is."""
    kind = type(function)
    place = defining_place(getattr(function, method)) or next(
        filter(None, map(defining_place, vars(kind).values())), None
    )
    return f"{kind.__name__}.{method}", place
