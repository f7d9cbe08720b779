from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from statistics import mean

import pytest

from fabric.analysis.depths.problem import Oracle, with_depth
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.goal import Cost, Goal
from fabric.explore.sizing.size import cost_function
from tests.fabric.sizing.brute_force import BYTES, GOALS, Case, cases, least_cost
from tests.profiles import of_profile, spread

FURTHER = 0.05


@lru_cache
def some_cases() -> tuple[Case, ...]:
    return tuple(cases(of_profile(quick=100, deep=300)))


def further(case: Case, goal: Goal, cost: Cost = BYTES) -> tuple[int, int, int]:
    problem = case.problem(goal, cost)
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
    costs = [further(case, goal) for case in every]
    hard = [(best, cost) for bound, best, cost in costs if bound < best]
    average = mean(cost / best - 1 for _, best, cost in costs)
    assert average <= FURTHER
    # Cases decided by their lower bounds do not test the search.
    assert len(hard) >= len(costs) // 10


@pytest.mark.deep
@pytest.mark.parametrize("goal", spread(GOALS[::-1], 1), ids=str)
def test_exact_finds_the_least_bytes_and_search_nearly(goal: Goal) -> None:
    compare(some_cases(), goal)


@pytest.mark.parametrize("goal", spread(GOALS, 1), ids=str)
@pytest.mark.parametrize(
    "cost",
    [cost_function("slots"), cost_function("bytes", "32"), cost_function("bytes", "power-of-two")],
    ids=["slots", "steps", "powers"],
)
def test_exact_finds_the_least_of_other_costs(goal: Goal, cost: Cost) -> None:
    for case in some_cases()[: of_profile(quick=8, deep=25)]:
        further(case, goal, cost)
