"""Depths of least cost, by cuts: logic-based Benders decomposition with HiGHS.

The master, who looks for the cheapest depths that escape all cuts known so far, knows no records.
The oracle, which does, says whether they keep the limits, and if not, by which cuts they do not.
What is cheapest under some of the cuts is a lower bound of what is under all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fabric.sizing.cuts import Escapes, cuts_around, cuts_of
from fabric.sizing.found import Found
from fabric.sizing.master import Master
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths
from fabric.sizing.search import raised, trimmed

__all__ = ["exact"]

_EVALUATIONS: Final = 100_000
"""That an answer may take where a record is small."""

_ROUNDS: Final = 200
"""The master is asked at most: where slots of many channels stand in for each other, there are as
many cuts as ways to deal them out, and each round takes longer than the one before."""

_EVENTS: Final = 4_000_000_000
"""Of records that are gone over for an answer, at most: a minute's work."""


def exact(oracle: Oracle, lower: Depths, start: Depths, *, evaluations: int | None = None) -> Found:
    """Return depths of least cost, or the best found in so many ``evaluations`` and their gap.

    Args:
        oracle: knows the limits.
        lower: depths below which none can be; see ``bounds.lower_bounds``.
        start: depths that keep the limits; see ``search.search``.
        evaluations: about so many vectors of depths are tried; by default as many as records of
            their size allow in a minute or so. Not seconds: what is found does not depend on the
            machine.

    Raises:
        ConfigurationError: the extra is not installed.
    """
    problem = oracle.problem
    master = Master(problem, lower)
    best, cost, bound = start, problem.cost_of(start), problem.cost_of(lower)
    last = oracle.evaluations + (_affordable(oracle) if evaluations is None else evaluations)

    def learn(cuts: Iterator[Escapes]) -> bool:
        """Tell the master of as many cuts as there is time for; False where there was none."""
        known = len(master)
        while oracle.evaluations < last and (cut := next(cuts, None)) is not None:
            master.add(cut)
        return len(master) > known

    if cost > bound:
        learn(cuts_around(oracle, lower, best))
    for _ in range(_ROUNDS):
        if cost <= bound:
            break
        depths, at_least = master.solve()
        bound = max(bound, at_least)
        if depths is None or cost <= bound or oracle.evaluations >= last:
            break
        learned = learn(cuts_of(oracle, depths))
        if oracle.evaluations < last:
            better = trimmed(oracle, raised(oracle, depths), lower)
            if problem.cost_of(better) < cost:
                best, cost = better, problem.cost_of(better)
        if not learned:
            # Not the cheapest that escape all cuts, which would be the bound: too many to look at.
            break
    return Found(best, cost, bound, oracle.evaluations)


def _affordable(oracle: Oracle) -> int:
    events = sum(len(record.events) for record, _ in oracle.problem.limits)
    return min(_EVALUATIONS, _EVENTS // max(1, events))
