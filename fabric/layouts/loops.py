"""Nests of loops that move along the dimensions of a tensor, and their normal form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Loop", "cut", "ends", "merged"]


class Loop(NamedTuple):
    """One loop of a nest.

    Attributes:
        trips: how often it goes round.
        step: elements that a trip moves along; without meaning where ``dim`` is None.
        dim: the dimension of the tensor; None where everything inside is read again.
    """

    trips: int
    step: int
    dim: int | None


def merged(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Return the one nest that visits the same places in the same order with the fewest loops.

    It is the only one: how many places the innermost loop visits before something else than its
    step happens is seen in the places, and so on outwards.
    """
    found: list[Loop] = []
    for trips, step, dim in loops:
        if trips == 1:
            continue
        inner = Loop(trips, 1 if dim is None else step, dim)
        while found and _continues(found[-1], inner):
            inner = inner._replace(trips=inner.trips * found.pop().trips)
        found.append(inner)
    return tuple(found)


def _continues(outer: Loop, inner: Loop) -> bool:
    """Whether ``outer`` goes on where ``inner`` ends."""
    if outer.dim is None or inner.dim is None:
        return outer.dim is inner.dim
    return outer.dim == inner.dim and outer.step == inner.trips * inner.step


def cut(loops: Sequence[Loop], inside: int) -> tuple[tuple[Loop, ...], tuple[Loop, ...]] | None:
    """Return a nest in two, the inner one of ``inside`` rounds; None where no loop ends there."""
    inner: tuple[Loop, ...] = ()
    for at in reversed(range(len(loops))):
        if inside == 1:
            return tuple(loops[: at + 1]), inner
        trips, step, dim = loops[at]
        if trips % inside == 0 and trips > inside:
            step_outside = 1 if dim is None else step * inside
            outer = (*loops[:at], Loop(trips // inside, step_outside, dim))
            return outer, (Loop(inside, step, dim), *inner)
        if inside % trips:
            return None
        inner = (loops[at], *inner)
        inside //= trips
    return None if inside > 1 else ((), inner)


def ends(rank: int, tile: Sequence[int], start: Sequence[int], loops: Iterable[Loop]) -> list[int]:
    """Return for each dimension the element behind the last one that is visited."""
    found = [start[dim] + tile[dim] for dim in range(rank)]
    for trips, step, dim in loops:
        if dim is not None:
            found[dim] += (trips - 1) * step
    return found
