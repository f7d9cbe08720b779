"""Why depths are not shallower."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.retiming.retimer import NO_LIMIT
from fabric.sizing.oracle import Oracle

if TYPE_CHECKING:
    from fabric.sizing.problem import Depths, Problem
    from fabric.sizing.result import Binding

__all__ = ["bindings"]


def bindings(problem: Problem, depths: Depths) -> tuple[Binding, ...]:
    """Return for each of ``depths`` what happens in the records with one slot less.

    All else is kept as it is.
    """
    keeps = Oracle(problem)
    endless = tuple(limit._replace(cycles=NO_LIMIT) for limit in problem.limits)
    ends = Oracle(replace(problem, limits=endless))

    def binding(number: int) -> Binding:
        variable, depth = problem.variables[number], depths[number]
        if variable.is_pinned:
            return "pinned"
        if depth == 1:
            return "one slot"
        less = (*depths[:number], depth - 1, *depths[number + 1 :])
        if not ends.keeps(less):
            return "deadlock"
        return "" if keeps.keeps(less) else "goal"

    return tuple(map(binding, range(len(depths))))
