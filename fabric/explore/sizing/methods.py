"""The methods of finding depths, and their validation by runs.

If units share an off-chip memory or merge inputs, depths change the order of bursts or inputs. If a
run with the proposed depths keeps the goal, the search continues from its record. Otherwise only
the proposed depths with the largest savings are used, up to the number that keeps the goal. The
other depths are lowered by further runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from fabric.analysis.depths.problem import Depths, Oracle, with_depth
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.goal import Task
from fabric.explore.sizing.high_water import high_water, sized_at_most

_MOST_EVENTS: Final = 3_000_000
"""Most events of all runs together: about a minute, but equal on every machine."""

_LEAST_RUNS: Final = 12
"""Number of runs that are allowed even if they are long."""

Method = Literal["search", "exact", "high-water", "paper-lp"]
METHODS: Final[tuple[Method, ...]] = ("search", "exact", "high-water", "paper-lp")


class NearestError(Exception):
    """No tried depths keep the goal.

    ``cycles`` has the fewest cycles of each input, None if all its runs got stuck.
    """

    def __init__(self, cycles: Sequence[int | None]) -> None:
        super().__init__(cycles)
        self.cycles: Final = tuple(cycles)


class _Best:
    """The latest depths that kept the goal in runs, and their runs."""

    def __init__(self, task: Task) -> None:
        self._task: Final = task
        self.problem: Final = task.problem(task.unbounded)
        events = sum(len(record.events) for record in task.unbounded)
        self.runs_left = max(_LEAST_RUNS, _MOST_EVENTS // max(1, events))
        problem = self.problem
        proposed = {problem.least, task.wired_depths, high_water(problem)}
        if any(record.shares_links for record in task.unbounded):
            # A record leaves out waits for links, so it shows too few slots in use.
            proposed.add(sized_at_most(problem, lambda retimer: np.diff(retimer.base)))
        for depths in sorted(proposed, key=problem.cost_of):
            if self.accepts(depths):
                return
        of_inputs = zip(*map(task.cycles, proposed), strict=True)
        raise NearestError(
            [min((x for x in cycles if x is not None), default=None) for cycles in of_inputs]
        )

    def accepts(self, depths: Depths) -> bool:
        if self._task.known_cycles(depths) is None:
            self.runs_left -= 1
        runs = self._task.run(depths)
        if not self._task.keeps(runs):
            return False
        self.depths, self.runs = depths, [ran for ran in runs if ran is not None]
        return True


def validated(task: Task, method: Method) -> tuple[Depths, int]:
    """Return depths that keep the goal in runs of all inputs, and the number of timed vectors."""
    best = _Best(task)
    cost_of = best.problem.cost_of
    evaluations = 0
    while best.runs_left > 0:
        oracle = Oracle(task.problem([each.record for each in best.runs]))
        proposed = proposal(method, oracle, lower_bounds(oracle)).depths
        evaluations += oracle.evaluations
        before = cost_of(best.depths)
        if cost_of(proposed) >= before:
            break
        if not best.accepts(proposed):
            _take_some(best, proposed)
        if cost_of(best.depths) >= before:
            break
    while best.runs_left > 0 and _lowered(best):
        pass
    return best.depths, evaluations


def _lowered(best: _Best) -> bool:
    # Lowers each depth slot by slot, the most expensive first. Returns whether one was lowered.
    problem, before = best.problem, best.depths
    above = [at for at, depth in enumerate(before) if depth > problem.least[at]]
    for at in sorted(above, key=lambda each: (-problem.cost_at(each, before[each]), each)):
        while best.runs_left > 0 and best.depths[at] > problem.least[at]:
            if not best.accepts(with_depth(best.depths, at, best.depths[at] - 1)):
                break
    return best.depths != before


def _take_some(best: _Best, proposed: Depths) -> None:
    # Takes the proposed depths with the largest savings. Bisection finds how many keep the goal.
    problem, start = best.problem, best.depths
    saved = [
        problem.cost_at(at, depth) - problem.cost_at(at, less)
        for at, (depth, less) in enumerate(zip(start, proposed, strict=True))
    ]
    order = [at for at in sorted(range(len(saved)), key=lambda at: (-saved[at], at)) if saved[at]]
    enough, too_many = 0, len(order)
    while best.runs_left > 0 and too_many - enough > 1:
        middle = (enough + too_many) // 2
        taken = set(order[:middle])
        depths = [proposed[at] if at in taken else depth for at, depth in enumerate(start)]
        if best.accepts(tuple(depths)):
            enough = middle
        else:
            too_many = middle


class Proposal(NamedTuple):
    """The depths that a method found in the records, and its lower bound of the cost."""

    depths: Depths
    bound: int
    note: str = ""


def proposal(method: Method, oracle: Oracle, lower: Depths) -> Proposal:
    """Return the depths that ``method`` finds.

    The largest depths have to keep the limits. ``paper-lp`` takes the cheaper of its two
    equalisations that keeps the limits.
    """
    problem = oracle.problem
    bound = problem.cost_of(lower)
    if method == "high-water":
        return Proposal(high_water(problem), bound)
    if method == "paper-lp":
        return _paper(oracle, bound)
    searched = search(oracle, lower)
    if method == "search":
        return Proposal(searched.depths, searched.lower_bound)
    best = exact(oracle, lower, searched.depths)
    gap = problem.cost_of(best.depths) - best.lower_bound
    note = f"at most {gap:,} above the least for the record" if gap else "the least for the record"
    if any(record.shares_links for record, _ in problem.limits):
        note = "if nothing waited for links"
    return Proposal(best.depths, best.lower_bound, note)


def _paper(oracle: Oracle, bound: int) -> Proposal:
    from fabric.explore.sizing.paper_lp import paper_lp

    problem = oracle.problem
    answers = [
        Proposal(paper_lp(problem, conservative=each), bound, note)
        for each, note in ((True, "conservative"), (False, "normal"))
    ]
    return min(
        answers, key=lambda each: (not oracle.keeps(each.depths), problem.cost_of(each.depths))
    )
