"""What comes after elements that are dealt out, or shared: on one of several ways or another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from fabric.symbolic.least import Least
from fabric.values.dims import Dim, Expression
from fabric.values.expression import terms_of
from fabric.wiring.elaborate import Edge

__all__ = ["After", "Dealt", "Share", "waited_for", "whole_of"]


class Share(NamedTuple):
    """What several streams have together.

    Attributes:
        parts: how many elements each has.
        size: all of them.
    """

    parts: tuple[Expression, ...]
    size: int

    @property
    def most(self) -> int:
        """Elements that one of them has at least."""
        return -(-self.size // len(self.parts))


class After(NamedTuple):
    """How long after an element that was dealt out an operator sends, at the earliest.

    Attributes:
        first: its first element; None where that need not be after it.
        last: its last one.
    """

    first: int | None
    last: int


Dealt: TypeAlias = dict[tuple[int, int], After]
"""By the number of an operator that deals and its output, after the last element it sends there.

What is shared stands for an operator with a negative number: -1 for the first total.
"""


def waited_for(
    its: Least,
    edges: Sequence[Edge | None],
    least: Sequence[Least],
    dealt: Sequence[Dealt],
    shares: Sequence[Share],
) -> Dealt:
    """Return which dealt elements what an operator sends comes after; see ``earliest``.

    Args:
        its: what the operator does.
        edges: of its inputs.
        least: what all operators do.
        dealt: the same of those in front.
        shares: what streams have together.
    """
    begins: dict[tuple[int, int], int] = {}
    lasts = dict(_most(its.open_cycles, shares))
    for port, edge in enumerate(edges):
        if edge is None:
            continue
        front = least[edge.producer.index]
        visible = 1 + front.delay_cycles
        closes = port in its.may_close and edge.output in front.late
        for place, after in _sent(edge, front, dealt).items():
            if after.first is not None and its.starts_with == "all":
                begins[place] = max(begins.get(place, 0), after.first + visible)
            if closes:
                lasts[place] = max(lasts.get(place, 0), after.last + visible + its.last_cycles)
    for place, begin in begins.items():
        lasts[place] = max(lasts.get(place, 0), begin + its.cycles)
    found = {place: After(last if its.sends_one else None, last) for place, last in lasts.items()}
    for place, begin in begins.items():
        first = max(found[place].first or 0, begin + its.first_cycles)
        found[place] = After(first, found[place].last)
    return found


def _sent(edge: Edge, front: Least, dealt: Sequence[Dealt]) -> Dealt:
    """Return which dealt elements what is sent through ``edge`` waits for."""
    number = edge.producer.index
    if not front.deals:
        return dealt[number]
    if edge.output not in front.late:
        return {}
    return {(number, edge.output): After(0 if front.elements[edge.output] == 1 else None, 0)}


def _most(cycles: Dim, shares: Sequence[Share]) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield how long an operator of ``cycles`` takes where it has the most of what is shared."""
    number, terms = terms_of(cycles) if isinstance(cycles, Expression) else (0, {})
    if any(each < 0 for each in terms.values()):
        return
    for index, share in enumerate(shares, 1):
        for port, part in enumerate(share.parts):
            if share.most and part in terms:
                yield (-index, port), int(number + terms[part] * share.most)


def whole_of(
    mine: Dealt, least: Sequence[Least], dealt: Sequence[Dealt], shares: Sequence[Share]
) -> list[tuple[int, int]]:
    """Take those who deal out of ``mine`` of whom all outputs are in it.

    Returns:
        These, each with how long after its last element; what they waited for is in ``mine`` now.
    """
    whole: list[tuple[int, int]] = []
    while True:
        found: dict[int, list[int]] = {}
        for (dealer, _), after in mine.items():
            found.setdefault(dealer, []).append(after.last)
        full = [
            (dealer, min(lasts))
            for dealer, lasts in found.items()
            if len(lasts) == len(shares[-dealer - 1].parts if dealer < 0 else least[dealer].late)
        ]
        if not full:
            return whole
        for dealer, shortest in full:
            for place in [each for each in mine if each[0] == dealer]:
                del mine[place]
            for place, after in dealt[dealer].items() if dealer >= 0 else ():
                last = shortest + after.last
                mine[place] = After(None, max(last, mine[place].last if place in mine else 0))
        whole += full
