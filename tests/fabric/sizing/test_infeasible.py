from __future__ import annotations

from functools import partial
from random import Random

import pytest

from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.problem import Goal, InfeasibleError, Oracle
from fabric.explore.sizing.search import lower_bounds, search
from tests.fabric.sizing.brute_force import GOALS, Case, cases, least_cost
from tests.fabric.sizing.networks import Network, Shape
from tests.profiles import of_profile, spread

CHAIN = Network(
    Shape(3, ((0, 1), (1, 2)), (1, 1), (0, 0)),
    (
        (("s", 0), ("s", 0), ("s", 0), ("c", 20)),
        (("r", 0), ("s", 1), ("r", 0), ("s", 1), ("r", 0), ("s", 1)),
        (("c", 9), ("r", 1), ("r", 1), ("r", 1)),
    ),
)


def test_pinned_depth_against_the_goal_is_named() -> None:
    case = Case(CHAIN)
    goal = Goal.parse("cycles=20")

    with pytest.raises(
        InfeasibleError,
        match=r"takes 24 cycles: expected at most 20; one of these is too shallow and may not "
        r"be deeper: u1\.0 at 1$",
    ) as caught:
        lower_bounds(Oracle(case.problem(goal, pinned={0: 1, 1: 1})))

    assert (24,) == caught.value.cycles == (case.cycles((1, 1)),)
    assert (0,) == caught.value.held


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
            with pytest.raises(InfeasibleError) as caught:
                lower_bounds(oracle)
            (nearest,) = caught.value.cycles
            assert case.cycles(problem.most) == nearest or nearest is None
            assert set(caught.value.held) <= set(pinned)
            assert caught.value.held
            continue
        lower = lower_bounds(oracle)
        found = search(oracle, lower)
        best = exact(oracle, lower, found.depths)
        assert expected == best.cost == best.lower_bound <= found.cost
        assert all(found.depths[each] == best.depths[each] == pinned[each] for each in pinned)

    assert {True, False} == outcomes
