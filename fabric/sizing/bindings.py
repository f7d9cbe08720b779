"""Why depths are not shallower."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.retiming.retimer import NO_LIMIT
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, with_depth

if TYPE_CHECKING:
    from fabric.sizing.asked import Asked
    from fabric.sizing.result import Binding

__all__ = ["bindings"]


def bindings(asked: Asked, depths: Depths) -> tuple[Binding, ...]:
    """Return for each of ``depths`` what happens with one slot less, all else kept.

    It is asked of the records where they tell, and else of the runs that there were.
    """
    problem = asked.problem(asked.unbounded)
    keeps = Oracle(problem)
    endless = tuple(limit._replace(cycles=NO_LIMIT) for limit in problem.limits)
    ends = Oracle(replace(problem, limits=endless))

    def missed(less: Depths) -> Binding:
        if asked.can_prove:
            if not ends.keeps(less):
                return "deadlock"
            return "" if keeps.keeps(less) else "goal"
        ran = asked.known(less)
        if ran is None or asked.keeps(ran):
            return ""
        return "deadlock" if None in ran else "goal"

    def binding(number: int) -> Binding:
        if problem.variables[number].is_pinned:
            return "pinned"
        depth = depths[number]
        return "one slot" if depth == 1 else missed(with_depth(depths, number, depth - 1))

    return tuple(map(binding, range(len(depths))))
