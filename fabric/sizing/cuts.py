"""Why depths fail, said of as many depths as can be: the cuts of a Benders decomposition."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TypeAlias

from fabric.sizing.bounds import deepest_failing
from fabric.sizing.found import infeasible
from fabric.sizing.oracle import Cut, Oracle
from fabric.sizing.problem import Depths, with_depth

__all__ = ["Escapes", "cuts_around", "cuts_of"]

Escapes: TypeAlias = Mapping[int, int]
"""Variables and a depth of each: whatever keeps the limits is as deep as that in one of them."""


def cuts_of(oracle: Oracle, depths: Depths) -> Iterator[Escapes]:
    """Yield why ``depths`` fail: reason after reason, as long as there are others behind them.

    Raises:
        InfeasibleError: all depths fail.
    """
    while (cut := oracle.cut(depths)) is not None:
        escapes = _lifted(oracle, depths, cut)
        yield escapes
        depths = _deepened(oracle, depths, escapes)


def cuts_around(oracle: Oracle, lower: Depths, depths: Depths) -> Iterator[Escapes]:
    """Yield why ``depths``, where none can be lowered, cannot be: one reason for each of them.

    Args:
        oracle: knows the limits.
        lower: those that are as low as that have no reason but this.
        depths: they keep the limits.
    """
    for number, depth in enumerate(depths):
        if depth > lower[number]:
            less = with_depth(depths, number, depth - 1)
            cut = oracle.cut(less)
            if cut is not None:
                yield _lifted(oracle, less, cut)


def _lifted(oracle: Oracle, depths: Depths, cut: Cut) -> Escapes:
    """Return why ``depths`` fail by ``cut``, said of the deepest depths that still do.

    Cheap ways out are closed first: what is left costs more.

    Raises:
        InfeasibleError: all depths fail.
    """
    problem = oracle.problem
    most = problem.most

    def price(number: int) -> tuple[int, int]:
        depth = depths[number]
        return problem.cost_at(number, depth + 1) - problem.cost_at(number, depth), number

    deepest = _deepened(oracle, depths, frozenset(range(len(depths))) - cut)
    for number in sorted(cut, key=price):
        if deepest[number] == most[number]:
            continue
        without = _deepened(oracle, deepest, (number,))
        still = oracle.cut(without)
        if still is None:
            depth = deepest_failing(oracle, deepest, number, most[number])
            deepest = with_depth(deepest, number, depth)
        else:
            deepest = _deepened(oracle, without, cut - still)
    escapes = {each: deepest[each] + 1 for each in sorted(cut) if deepest[each] < most[each]}
    if not escapes:
        raise infeasible(oracle)
    return escapes


def _deepened(oracle: Oracle, depths: Depths, numbers: Container[int]) -> Depths:
    """Return ``depths`` with those of ``numbers`` at their most."""
    return tuple(
        most if number in numbers else depth
        for number, (depth, most) in enumerate(zip(depths, oracle.problem.most, strict=True))
    )
