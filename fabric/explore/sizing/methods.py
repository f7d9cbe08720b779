"""The ways to find depths, side by side."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from fabric.explore.sizing.problem import Depths, Oracle

__all__ = ["METHODS", "Method", "Proposal", "proposal"]

Method = Literal["search", "exact", "high-water", "paper-lp"]

METHODS: Final[tuple[Method, ...]] = ("search", "exact", "high-water", "paper-lp")


class Proposal(NamedTuple):
    """What a method found in the records of a problem.

    Attributes:
        depths: that it found.
        bound: that no depths which keep the limits cost less than, as far as the method knows.
        note: what else is to be said of it.
    """

    depths: Depths
    bound: int
    note: str = ""


def proposal(method: Method, oracle: Oracle, lower: Depths) -> Proposal:
    """Return the depths that ``method`` finds, where the most that there are keep the limits.

    Args:
        method: which; of the two equalisations of ``paper-lp`` the cheaper one that keeps them.
        oracle: of the problem.
        lower: bound of each depth.

    Raises:
        ConfigurationError: the method needs a package that is not installed.
    """
    problem = oracle.problem
    bound = problem.cost_of(lower)
    if method == "high-water":
        from fabric.explore.sizing.high_water import high_water

        return Proposal(high_water(problem), bound)
    if method == "paper-lp":
        return _paper(oracle, bound)
    from fabric.explore.sizing.search import search

    found = search(oracle, lower)
    if method == "search":
        return Proposal(found.depths, found.lower_bound)
    from fabric.explore.sizing.exact import exact

    best = exact(oracle, lower, found.depths)
    gap = problem.cost_of(best.depths) - best.lower_bound
    note = f"at most {gap:,} above the least for the record" if gap else "the least for the record"
    if any(record.shares_links for record, _ in problem.limits):
        note = "if nothing waited for links"
    return Proposal(best.depths, best.lower_bound, note)


def _paper(oracle: Oracle, bound: int) -> Proposal:
    """Return the cheaper of the linear program's two answers; first one that keeps the limits."""
    from fabric.explore.sizing.paper_lp import paper_lp

    problem = oracle.problem
    answers = [
        Proposal(paper_lp(problem, conservative=each), bound, note)
        for each, note in ((True, "conservative"), (False, "normal"))
    ]
    return min(
        answers, key=lambda each: (not oracle.keeps(each.depths), problem.cost_of(each.depths))
    )
