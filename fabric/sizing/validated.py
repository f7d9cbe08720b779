"""Depths for programs whose records do not tell all: each proposal is run, and what ran is used.

Where the off-chip memory is shared, or a merge takes what comes first, other depths make other
bursts meet and other inputs come first. So what is found in a record is a proposal. It is run: if
it keeps the goal, the search goes on from its record, which is closer to what is looked for; if it
does not, its record has to be kept to, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fabric.sizing.asked import Asked
from fabric.sizing.bounds import lower_bounds
from fabric.sizing.high_water import high_water
from fabric.sizing.methods import Method, proposal
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, Limit, Problem
from fabric.sizing.running import Ran

__all__ = ["MOST_RUNS", "NearestError", "validated"]

MOST_RUNS: Final = 12
"""Proposals that are run at most."""


class NearestError(Exception):
    """No depths that were run keep the goal.

    Attributes:
        cycles: the least that a run of each input took; None where all got stuck.
    """

    def __init__(self, cycles: Sequence[int | None]) -> None:
        """Say how close the runs came."""
        super().__init__(cycles)
        self.cycles: Final = tuple(cycles)


def validated(asked: Asked, method: Method) -> Depths:
    """Return depths with which runs of all inputs keep the goal.

    Args:
        asked: what for.
        method: that proposes depths.

    Raises:
        NearestError: none of those that were run does.
    """
    best, ran = _begin(asked)
    missed: list[Limit] = []
    for _ in range(MOST_RUNS):
        records = [each.record for each in ran]
        depths = _proposed(method, asked.problem(records), missed)
        if depths is None or _cost(asked, depths) >= _cost(asked, best):
            break
        found = asked.run(depths)
        if not asked.keeps(found):
            # Something in between may do.
            missed += [
                Limit(each.record, limit)
                for each, limit in zip(found, asked.limits, strict=True)
                if each is not None
            ]
            depths = tuple(-(-(low + high) // 2) for low, high in zip(depths, best, strict=True))
            found = asked.run(depths)
        kept = [each for each in found if each is not None]
        if asked.keeps(found) and _cost(asked, depths) < _cost(asked, best):
            best, ran = depths, kept
    return best


def _begin(asked: Asked) -> tuple[Depths, list[Ran]]:
    """Return the cheapest depths that keep the goal of those that come to mind, and their runs."""
    problem = asked.problem(asked.unbounded)
    tried: list[tuple[Ran | None, ...]] = []
    for depths in sorted({problem.least, asked.now, high_water(problem)}, key=problem.cost_of):
        found = asked.run(depths)
        if asked.keeps(found):
            return depths, [each for each in found if each is not None]
        tried.append(found)
    cycles = [
        min((each.cycles for each in its if each is not None), default=None)
        for its in zip(*tried, strict=True)
    ]
    raise NearestError(cycles)


def _proposed(
    method: Method, problem: Problem, missed: Sequence[Limit]
) -> Depths | None:
    """Return what ``method`` finds; None where nothing keeps the limits."""
    for more in _fewer(missed):
        wanted = Problem(problem.variables, (*problem.limits, *more), problem.cost)
        oracle = Oracle(wanted)
        if oracle.keeps(wanted.most):
            return proposal(method, oracle, lower_bounds(oracle)).depths
    return None


def _fewer(missed: Sequence[Limit]) -> Iterator[Sequence[Limit]]:
    """Yield what missed the goal, all of it and none of it."""
    yield missed
    if missed:
        yield ()


def _cost(asked: Asked, depths: Depths) -> int:
    return asked.problem(asked.unbounded).cost_of(depths)
