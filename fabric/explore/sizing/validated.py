"""Depths for programs whose records do not tell all: what is found in one is a proposal, and run.

Where the off-chip memory is shared, or a merge takes what comes first, other depths make other
bursts meet and other inputs come first. Where a proposal keeps the goal when it is run, the search
goes on from the record of that run, which is closer to what is looked for. Where it does not, as
many of its depths are taken as do, those that save most first. What is left is lowered by runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fabric.explore.sizing.asked import Asked
from fabric.explore.sizing.high_water import high_water, sized_at_most
from fabric.explore.sizing.methods import Method, proposal
from fabric.explore.sizing.problem import Depths, Oracle, with_depth
from fabric.explore.sizing.running import Ran
from fabric.explore.sizing.search import lower_bounds

__all__ = ["NearestError", "validated"]

_MOST_EVENTS: Final = 3_000_000
"""Of all runs together: so many take a minute. The bound is the same on every machine."""

_LEAST_RUNS: Final = 12
"""However long they are."""


class NearestError(Exception):
    """No depths that were run keep the goal.

    Attributes:
        cycles: the least that a run of each input took; None where all got stuck.
    """

    def __init__(self, cycles: Sequence[int | None]) -> None:
        """Say how close the runs came."""
        super().__init__(cycles)
        self.cycles: Final = tuple(cycles)


class _Best:
    """The cheapest depths so far that keep the goal in a run, and that run."""

    def __init__(self, asked: Asked) -> None:
        """Begin with the cheapest that keep it of those that come to mind."""
        self._asked: Final = asked
        self.problem: Final = asked.problem(asked.unbounded)
        events = sum(len(record.events) for record in asked.unbounded)
        self.left = max(_LEAST_RUNS, _MOST_EVENTS // max(1, events))
        tried: list[tuple[Ran | None, ...]] = []
        problem = self.problem
        proposed = {problem.least, asked.now, high_water(problem)}
        if any(record.shares_links for record in asked.unbounded):
            # A record has elements come sooner than links bring them, and so too few slots in use.
            proposed.add(sized_at_most(problem, lambda retimer: np.diff(retimer.base)))
        for depths in sorted(proposed, key=problem.cost_of):
            if self.takes(depths, tried):
                return
        raise NearestError(
            [
                min((each.cycles for each in its if each is not None), default=None)
                for its in zip(*tried, strict=True)
            ]
        )

    def takes(self, depths: Depths, tried: list[tuple[Ran | None, ...]] | None = None) -> bool:
        """Run ``depths``; where they keep the goal they are the best."""
        if self._asked.known(depths) is None:
            self.left -= 1
        found = self._asked.run(depths)
        if tried is not None:
            tried.append(found)
        if not self._asked.keeps(found):
            return False
        self.depths, self.ran = depths, [each for each in found if each is not None]
        return True


def validated(asked: Asked, method: Method) -> tuple[Depths, int]:
    """Return depths with which runs of all inputs keep the goal, and how often records were timed.

    Args:
        asked: what for.
        method: that proposes depths.

    Raises:
        NearestError: none of those that were run does.
    """
    best = _Best(asked)
    cost_of = best.problem.cost_of
    evaluations = 0
    while best.left > 0:
        oracle = Oracle(asked.problem([each.record for each in best.ran]))
        wanted = proposal(method, oracle, lower_bounds(oracle)).depths
        evaluations += oracle.evaluations
        before = cost_of(best.depths)
        if cost_of(wanted) >= before:
            break
        if not best.takes(wanted):
            _take_some(best, wanted)
        if cost_of(best.depths) >= before:
            break
    while best.left > 0 and _lowered(best):
        pass
    return best.depths, evaluations


def _lowered(best: _Best) -> bool:
    """Lower each depth by one where the goal is kept, the dearest first; whether any was."""
    problem, before = best.problem, best.depths
    above = [at for at, depth in enumerate(before) if depth > problem.least[at]]
    for at in sorted(above, key=lambda each: (-problem.cost_at(each, before[each]), each)):
        while best.left > 0 and best.depths[at] > problem.least[at]:
            if not best.takes(with_depth(best.depths, at, best.depths[at] - 1)):
                break
    return best.depths != before


def _take_some(best: _Best, wanted: Depths) -> None:
    """Take as many of the ``wanted`` depths as keep the goal, those that save most first."""
    problem, start = best.problem, best.depths
    saved = [
        problem.cost_at(at, depth) - problem.cost_at(at, less)
        for at, (depth, less) in enumerate(zip(start, wanted, strict=True))
    ]
    order = [at for at in sorted(range(len(saved)), key=lambda at: (-saved[at], at)) if saved[at]]
    enough, too_many = 0, len(order)
    while best.left > 0 and too_many - enough > 1:
        middle = (enough + too_many) // 2
        taken = set(order[:middle])
        depths = [wanted[at] if at in taken else depth for at, depth in enumerate(start)]
        if best.takes(tuple(depths)):
            enough = middle
        else:
            too_many = middle
