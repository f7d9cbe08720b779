from __future__ import annotations

from functools import partial
from random import Random

import pytest

from fabric.analysis.depths.problem import InfeasibleError, Oracle
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.goal import Goal
from tests.fabric.sizing.brute_force import GOALS, cases, least_cost
from tests.profiles import of_profile, spread


@pytest.mark.parametrize("goal", spread(GOALS, 1), ids=str)
def test_sizing_with_pinned_depths_costs_the_least_or_fails(goal: Goal) -> None:
    outcomes = set()
    for case in cases(of_profile(quick=25, deep=80)):
        random = Random(len(case.most))
        numbers = random.sample(range(len(case.most)), random.randint(1, 2))
        pinned = {each: random.randint(1, min(3, case.most[each])) for each in numbers}
        problem = case.problem(goal, pinned=pinned)
        expected = least_cost(problem, partial(case.keeps, goal=goal))
        outcomes.add(expected is None)
        oracle = Oracle(problem)
        if expected is None:
            with pytest.raises(InfeasibleError):
                lower_bounds(oracle)
            cut = oracle.cut(problem.most)
            assert cut
            assert cut <= set(pinned)
            continue
        lower = lower_bounds(oracle)
        found = search(oracle, lower)
        best = exact(oracle, lower, found.depths)
        assert expected == best.cost == best.lower_bound <= found.cost
        assert all(found.depths[each] == best.depths[each] == pinned[each] for each in pinned)

    assert {True, False} == outcomes
