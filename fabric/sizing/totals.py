"""What each method finds, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.sizing.asked import Asked
from fabric.sizing.methods import METHODS, Method, Proposal, proposal
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, Problem
from fabric.sizing.result import MethodTotal
from fabric.telling.errors import ConfigurationError

__all__ = ["totals_of"]


def totals_of(
    asked: Asked, problem: Problem, lower: Depths, chosen: Method, found: Proposal
) -> tuple[MethodTotal, ...]:
    """Return what all methods find in the records of ``problem``, and what that comes to.

    Args:
        asked: what for.
        problem: its records.
        lower: bounds of the depths.
        chosen: the method that was asked for.
        found: by it.
    """
    return tuple(_totals(asked, problem, lower, chosen, found))


def _totals(
    asked: Asked, problem: Problem, lower: Depths, chosen: Method, found: Proposal
) -> Iterator[MethodTotal]:
    oracle = Oracle(problem)
    for method in METHODS:
        try:
            its = found if method == chosen else proposal(method, oracle, lower)
        except ConfigurationError as error:
            # A package is not installed.
            yield MethodTotal(method, None, None, keeps=False, note=error.message)
            continue
        cycles, keeps = _outcome(asked, oracle, its.depths)
        yield MethodTotal(method, problem.cost_of(its.depths), cycles, keeps, its.note)


def _outcome(asked: Asked, oracle: Oracle, depths: Depths) -> tuple[int | None, bool]:
    """Return the cycles of the first input, and whether all inputs keep the goal."""
    if not asked.can_prove:
        ran = asked.run(depths)
        return (None if ran[0] is None else ran[0].cycles), asked.keeps(ran)
    return oracle.cycles(depths)[0], oracle.keeps(depths)
