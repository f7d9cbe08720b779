"""Families: what is of one idea, such as the loads of 128 experts, and is told of in one row.

This is the one fold of the fabric: tables, pages, pictures and queries all take it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from fabric.messages.telling.wording import counted, merged_text, without_numbers

__all__ = ["Family", "Spread", "absent_line", "families", "spread", "those"]

T = TypeVar("T")

_LISTED: Final = 6
"""Families that a sentence names."""


class Family(NamedTuple, Generic[T]):
    """Things whose names differ in numbers only, and that agree in what else they were asked for.

    Attributes:
        title: the name of one; of several with a range or ``i`` where they differ.
        members: in their order.
    """

    title: str
    members: tuple[T, ...]


class Spread(NamedTuple, Generic[T]):
    """Three members of a family by some measure: the median is the lower of two."""

    least: T
    median: T
    most: T


def families(
    things: Iterable[T], name: Callable[[T], str], *shared: Callable[[T], Hashable]
) -> list[Family[T]]:
    """Return the families of ``things``, in the order of the first member of each.

    Args:
        things: units, operators or channels.
        name: what each is called.
        shared: what the members of a family have in common besides the pattern of their names,
            such as the place where they were wired.
    """
    found: dict[Hashable, list[T]] = {}
    for thing in things:
        key = (without_numbers(name(thing)), *(each(thing) for each in shared))
        found.setdefault(key, []).append(thing)
    return [
        Family(merged_text([name(each) for each in members]), tuple(members))
        for members in found.values()
    ]


def those(found: Iterable[Family[T]], fit: Callable[[T], bool]) -> list[Family[T]]:
    """Return the families with the members that fit; their titles stay those of all."""
    fitting = [Family(title, tuple(filter(fit, members))) for title, members in found]
    return [family for family in fitting if family.members]


def spread(members: Iterable[T], measure: Callable[[T], int]) -> Spread[T]:
    """Return the members with the least, the median and the most of ``measure``."""
    ordered = sorted(members, key=measure)
    return Spread(ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])


def absent_line(found: Sequence[Family[T]]) -> str:
    """Return in one line who never got an element: the first families, and how many more."""
    named = [
        family.title + (f" (x {len(family.members):,})" if len(family.members) > 1 else "")
        for family in found
    ]
    if len(named) > _LISTED:
        named[_LISTED:] = [f"{len(named) - _LISTED:,} more"]
    count = counted(sum(len(family.members) for family in found), "unit")
    return f"{count} never got an element: {', '.join(named)}"
