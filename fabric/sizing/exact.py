"""Depths of least cost, by cuts: logic-based Benders decomposition with HiGHS.

The master, who looks for the cheapest depths that escape all cuts known so far, knows no records.
The oracle, which does, says whether they keep the limits, and if not, by which cuts they do not.
What is cheapest under some of the cuts is a lower bound of what is under all of them.
"""

from __future__ import annotations

from typing import Final

from fabric.sizing.cuts import cuts_around, cuts_of
from fabric.sizing.found import Found
from fabric.sizing.master import Master
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths
from fabric.sizing.search import raised, trimmed

__all__ = ["exact"]

_ROUNDS: Final = 200


def exact(oracle: Oracle, lower: Depths, start: Depths, *, rounds: int = _ROUNDS) -> Found:
    """Return depths of least cost, or the best found in so many ``rounds`` and their gap.

    Args:
        oracle: knows the limits.
        lower: depths below which none can be; see ``bounds.lower_bounds``.
        start: depths that keep the limits; see ``search.search``.
        rounds: in each the master is asked once. Not seconds: what is found does not depend on
            the machine.

    Raises:
        ConfigurationError: the extra is not installed.
    """
    problem = oracle.problem
    master = Master(problem, lower)
    best, cost, bound = start, problem.cost_of(start), problem.cost_of(lower)
    if cost > bound:
        master.add(cuts_around(oracle, lower, best))
    for _ in range(rounds):
        if cost <= bound:
            break
        depths, at_least = master.solve()
        bound = max(bound, min(at_least, cost))
        if depths is None or cost <= bound:
            break
        cuts = list(cuts_of(oracle, depths))
        master.add(cuts)
        better = trimmed(oracle, raised(oracle, depths), lower)
        if problem.cost_of(better) < cost:
            best, cost = better, problem.cost_of(better)
        if not cuts:
            # Not the cheapest that escape all cuts, which would be the bound: too many to look at.
            break
    return Found(best, cost, bound, oracle.evaluations)
