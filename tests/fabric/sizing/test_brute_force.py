"""Depths that are found, against all depths that there are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from statistics import mean

import pytest

from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.problem import Goal, Oracle, with_depth
from fabric.explore.sizing.search import lower_bounds, search
from fabric.explore.sizing.size import Objective
from tests.fabric.sizing.brute_force import BYTES, GOALS, Case, cases, least_cost
from tests.profiles import of_profile

FURTHER = 0.05
"""What ``search`` may cost more than the least, on average."""


@lru_cache
def some_cases() -> tuple[Case, ...]:
    """Return a hundred networks, in the deep profile three hundred."""
    return tuple(cases(of_profile(quick=100, deep=300)))


def further(case: Case, goal: Goal, objective: Objective = BYTES) -> tuple[int, int, int]:
    """Return the bound, the least cost and that of ``search``, after all of them were checked."""
    problem = case.problem(goal, objective)
    expected = least_cost(problem, lambda depths: case.keeps(depths, goal))

    oracle = Oracle(problem)
    lower = lower_bounds(oracle)
    found = search(oracle, lower)
    best = exact(oracle, lower, found.depths)

    for number, depth in enumerate(lower):
        assert case.keeps(with_depth(case.most, number, depth), goal)
        assert depth == 1 or not case.keeps(with_depth(case.most, number, depth - 1), goal)
    assert expected == best.cost == best.lower_bound == problem.cost_of(best.depths)
    assert case.keeps(best.depths, goal)
    assert problem.cost_of(found.depths) == found.cost
    assert found.lower_bound <= best.cost <= found.cost
    assert case.keeps(found.depths, goal)
    for depths in (found.depths, best.depths):
        for number, depth in enumerate(depths):
            assert depth == 1 or not case.keeps(with_depth(depths, number, depth - 1), goal)
    return found.lower_bound, best.cost, found.cost


def compare(every: Iterable[Case], goal: Goal) -> None:
    """Check all of ``every``, and how far ``search`` is from the least cost on average."""
    costs = [further(case, goal) for case in every]
    hard = [(best, cost) for bound, best, cost in costs if bound < best]
    average = mean(cost / best - 1 for _, best, cost in costs)
    average_of_hard = mean(cost / best - 1 for best, cost in hard)

    print(  # noqa: T201 - how far it is, with -s
        f"\n{goal}: {len(costs)} networks, in {len(hard)} of them more than the lower bounds; "
        f"search costs {average:.2%} more than the least on average, {average_of_hard:.2%} in "
        f"those; it finds the least in {sum(best == cost for _, best, cost in costs)}"
    )
    assert average <= FURTHER
    # Where lower bounds are enough, nothing is shown of what goes on from there.
    assert len(hard) >= len(costs) // 10


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_bytes(goal: Goal) -> None:
    """``exact`` finds the least there is, ``search`` almost; neither can be lowered by one."""
    compare(some_cases(), goal)


@pytest.mark.exhaustive
@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_bytes_at_length(goal: Goal) -> None:
    """The same as ``test_bytes``, for a quarter of an hour."""
    compare(cases(10_000, first=1_000_000), goal)


@pytest.mark.parametrize("goal", GOALS, ids=str)
@pytest.mark.parametrize(
    "objective",
    [Objective("slots"), Objective("bytes", 32), Objective("bytes", "power-of-two")],
    ids=["slots", "steps", "powers"],
)
def test_other_costs(goal: Goal, objective: Objective) -> None:
    """The least cost is found where bytes come in steps, too, or slots are counted."""
    for case in some_cases()[:25]:
        further(case, goal, objective)
