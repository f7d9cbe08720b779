from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from math import prod
from random import Random

import pytest

from fabric.analysis.depths.problem import Depths, Found, Limit, Oracle, Problem, Variable
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.goal import Goal
from tests.fabric.sizing.brute_force import BYTES, GOALS, Case, cases, least_cost
from tests.fabric.sizing.networks import network, shape
from tests.profiles import of_profile, spread

SAME = Goal.parse("same-cycles")


@pytest.mark.parametrize("goal", spread(GOALS, 1), ids=str)
def test_exact_for_two_records_costs_the_least(goal: Goal) -> None:
    more_than_one = 0
    for first, second in pairs(of_profile(quick=40, deep=40)):
        most = tuple(map(max, first.most, second.most))
        variables = tuple(
            Variable(slot.option, (slot,), 1, depth)
            for slot, depth in zip(first.slots(), most, strict=True)
        )
        limits = tuple(Limit(each.record, each.limit(goal)) for each in (first, second))
        problem = Problem(variables, limits, BYTES)
        keeping = [partial(each.keeps, goal=goal) for each in (first, second)]
        expected = least_cost(problem, lambda depths: all(keep(depths) for keep in keeping))  # noqa: B023
        alone = [least_cost(problem, keep) for keep in keeping]
        more_than_one += expected not in alone

        found, best = both(problem)

        assert expected == best.cost == best.lower_bound <= found.cost
        assert all(keep(each.depths) for keep in keeping for each in (found, best))

    assert more_than_one > 0


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_exact_with_shared_depths_costs_the_least(goal: Goal) -> None:
    for seed, case in enumerate(cases(of_profile(quick=12, deep=40))):
        letters = Random(seed).choices("abc", k=len(case.most))
        groups = {name: [at for at, each in enumerate(letters) if each == name] for name in letters}
        slots = case.slots()
        variables = tuple(
            Variable(name, tuple(slots[at] for at in group), 1, max(case.most[at] for at in group))
            for name, group in groups.items()
        )
        problem = Problem(variables, (Limit(case.record, case.limit(goal)),), BYTES)

        def keeps(depths: Depths) -> bool:
            options = problem.options(depths)  # noqa: B023
            return case.keeps(tuple(options[slot.option] for slot in slots), goal)  # noqa: B023

        found, best = both(problem)

        assert least_cost(problem, keeps) == best.cost == best.lower_bound <= found.cost
        assert keeps(found.depths)
        assert keeps(best.depths)


def test_exact_stopped_early_brackets_the_least_cost() -> None:
    unfinished = 0
    for case in cases(60):
        problem = case.problem(SAME)
        oracle = Oracle(problem)
        lower = lower_bounds(oracle)
        start = search(oracle, lower).depths
        least = exact(oracle, lower, start).cost
        cost, bound = problem.cost_of(start), problem.cost_of(lower)
        for evaluations in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            fresh = Oracle(problem)
            found = exact(fresh, lower, start, evaluations=evaluations)
            assert bound <= found.lower_bound <= least <= found.cost <= cost
            assert case.keeps(found.depths, SAME)
            assert problem.cost_of(found.depths) == found.cost
            cost, bound = found.cost, found.lower_bound
            if found.cost == found.lower_bound:
                break
            unfinished += bound > problem.cost_of(lower)
        assert cost == bound == least

    assert unfinished > 0


def both(problem: Problem) -> tuple[Found, Found]:
    oracle = Oracle(problem)
    lower = lower_bounds(oracle)
    found = search(oracle, lower)
    return found, exact(oracle, lower, found.depths)


def pairs(how_many: int) -> Iterator[tuple[Case, Case]]:
    found = 0
    for seed in count():
        random = Random(seed)
        drawn = shape(random)
        first, second = (Case(network(random, drawn)) for _ in range(2))
        if prod(map(max, first.most, second.most)) <= 5_000:
            yield first, second
            found += 1
            if found == how_many:
                return
