"""Depths by steps: up where something is in the way, then down as far as it goes."""

from __future__ import annotations

from collections import Counter

from fabric.sizing.bounds import lowest
from fabric.sizing.found import Found, infeasible
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, with_depth

__all__ = ["raised", "search", "trimmed"]


def search(oracle: Oracle, lower: Depths) -> Found:
    """Return depths of which none can be lowered, the others kept, near the least cost.

    Args:
        oracle: knows the limits.
        lower: depths below which none can be; see ``bounds.lower_bounds``.

    Raises:
        InfeasibleError: no depths keep the limits.
    """
    problem = oracle.problem
    depths = trimmed(oracle, raised(oracle, lower), lower)
    bound = problem.cost_of(lower)
    return Found(depths, problem.cost_of(depths), bound, oracle.evaluations)


def raised(oracle: Oracle, depths: Depths) -> Depths:
    """Return depths that keep the limits: of each cut, the cheapest to be deepened is.

    By one at first and by twice as much each time after: what is too deep is lowered later.

    Raises:
        InfeasibleError: no depths keep the limits.
    """
    problem = oracle.problem
    most, cost_at = problem.most, problem.cost_at
    found = list(depths)
    steps: Counter[int] = Counter()

    def price(number: int) -> tuple[int, int]:
        return cost_at(number, found[number] + 1) - cost_at(number, found[number]), number

    while (cut := oracle.cut(tuple(found))) is not None:
        candidates = [each for each in cut if found[each] < most[each]]
        if not candidates:
            raise infeasible(oracle)
        number = min(candidates, key=price)
        found[number] = min(most[number], found[number] + (1 << steps[number]))
        steps[number] += 1
    return tuple(found)


def trimmed(oracle: Oracle, depths: Depths, lower: Depths) -> Depths:
    """Return ``depths``, which keep the limits, lowered until none can be by one.

    Each is lowered once, the dearest first: what cannot be lowered cannot be later either, when
    the others are shallower still.
    """
    problem = oracle.problem
    above = [number for number, depth in enumerate(depths) if depth > lower[number]]
    for number in sorted(above, key=lambda each: (-problem.cost_at(each, depths[each]), each)):
        depths = with_depth(depths, number, lowest(oracle, depths, number, lower[number]))
    return depths
