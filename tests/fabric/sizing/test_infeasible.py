"""Goals that no depths keep: which would be the nearest, and what stands in the way."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.problem import Goal, InfeasibleError, Oracle
from fabric.explore.sizing.search import lower_bounds, search
from tests.fabric.sizing.brute_force import GOALS, Case, cases, least_cost
from tests.fabric.sizing.networks import Network, Shape
from tests.profiles import of_profile

CHAIN = Network(
    Shape(3, ((0, 1), (1, 2)), (1, 1), (0, 0)),
    (
        (("s", 0), ("s", 0), ("s", 0), ("c", 20)),
        (("r", 0), ("s", 1), ("r", 0), ("s", 1), ("r", 0), ("s", 1)),
        (("c", 9), ("r", 1), ("r", 1), ("r", 1)),
    ),
)
"""A unit sends all at once and works then; the last one of three begins late."""

BEFORE = Network(
    Shape(2, ((0, 1), (0, 1)), (1, 1), (0, 0)),
    ((("s", 0), ("s", 0), ("s", 1)), (("r", 1), ("r", 0), ("r", 0))),
)
"""What is sent first is received last: two slots, or nothing goes on."""


class TestGoals:
    def test_too_soon(self) -> None:
        """It is said how soon the run ends with all depths at their most."""
        case = Case(CHAIN)

        with pytest.raises(
            InfeasibleError,
            match=r"^no depths keep the limits: with all at their most, network takes 20 cycles: "
            r"expected at most 19$",
        ) as caught:
            lower_bounds(Oracle(case.problem(Goal.parse("cycles=19"))))

        assert (20,) == caught.value.cycles
        assert () == caught.value.held

    def test_just_in_time(self) -> None:
        """That many cycles can be kept to."""
        case = Case(CHAIN)

        assert 20 == case.cycles((3, 1))
        assert (3, 1) == lower_bounds(Oracle(case.problem(Goal.parse("cycles=20"))))

    def test_search(self) -> None:
        """Without bounds, too, a search ends and says so."""
        problem = Case(CHAIN).problem(Goal.parse("cycles=19"))

        with pytest.raises(InfeasibleError):
            search(Oracle(problem), problem.least)


class TestPinned:
    def test_too_shallow(self) -> None:
        """A pinned depth that contradicts the goal is named."""
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

    def test_blocked(self) -> None:
        """Where the units block each other there is no nearest limit."""
        problem = Case(BEFORE).problem(Goal.parse("deadlock-free"), pinned={0: 1})

        with pytest.raises(
            InfeasibleError, match=r"network does not end; .*: u1\.0 at 1$"
        ) as caught:
            lower_bounds(Oracle(problem))

        assert (None,) == caught.value.cycles

    @pytest.mark.parametrize("goal", GOALS, ids=str)
    def test_brute_force(self, goal: Goal) -> None:
        """What is found with some depths pinned is the least there is, or there is none."""
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
