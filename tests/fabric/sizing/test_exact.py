"""Least costs: of whatever is asked, as far as it is asked."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from itertools import count
from math import prod
from random import Random
from types import SimpleNamespace

# Any: an oracle that is told what to say.
from typing import Any

import pytest

from fabric import ConfigurationError
from fabric.explore.sizing import exact as exact_depths
from fabric.explore.sizing.exact import cuts_around, exact
from fabric.explore.sizing.problem import (
    Depths,
    Found,
    Goal,
    Limit,
    Oracle,
    Problem,
    Slot,
    Variable,
)
from fabric.explore.sizing.search import lower_bounds, search
from tests.fabric.sizing.brute_force import BYTES, GOALS, Case, cases, least_cost
from tests.fabric.sizing.networks import Network, Shape, network, shape
from tests.profiles import of_profile

SAME = Goal.parse("same-cycles")

UPSTREAM = Network(
    Shape(3, ((0, 1), (1, 2)), (1, 64), (0, 0)),
    (
        (*((("s", 0), ("c", 2)) * 4), ("c", 18)),
        (("r", 0), ("s", 1)) * 4,
        (("c", 10), *((("r", 1),) * 4)),
    ),
)
"""A source whose end counts, a relay that is never behind, and a sink that begins late.

Where no channel is limited, one slot to the relay is used, and four to the sink, which are large.
"""


class TestBox:
    """A channel deeper than it would ever be filled lets another one be shallower."""

    def test_upstream(self) -> None:
        """Elements that wait in front of the relay need no large slots behind it."""
        case = Case(UPSTREAM)
        problem = case.problem(SAME)
        oracle = Oracle(problem)
        lower = lower_bounds(oracle)

        found = exact(oracle, lower, (1, 4))

        assert (4, 4) == case.most
        assert ((2, 1), 66, 66) == (found.depths, found.cost, found.lower_bound)
        used = [(1, depth) for depth in range(1, 5)]
        assert [(1, 2), (1, 3), (1, 4)] == [each for each in used if case.keeps(each, SAME)]
        assert 129 == problem.cost_of((1, 2))
        escapes = [{0: 2, 1: 2}]
        for depths, told in (((2, 1), escapes), ((1, 2), escapes), ((2, 2), [])):
            # One slot each fails; two of either channel do not.
            assert told == list(cuts_around(oracle, (1, 1), depths))


class TestRecords:
    """Depths that serve several inputs."""

    @pytest.mark.parametrize("goal", GOALS, ids=str)
    def test_brute_force(self, goal: Goal) -> None:
        """What is found keeps the limits of both records, and costs the least of all that do."""
        more_than_one = 0
        for first, second in pairs(of_profile(quick=40, deep=60)):
            most = tuple(map(max, first.most, second.most))
            variables = tuple(
                Variable(slot.option, (slot,), 1, depth)
                for slot, depth in zip(first.slots(), most, strict=True)
            )
            limits = tuple(Limit(each.record, each.limit(goal)) for each in (first, second))
            problem = Problem(variables, limits, BYTES.cost)
            keeping = [partial(each.keeps, goal=goal) for each in (first, second)]
            expected = least_cost(problem, lambda depths: all(keep(depths) for keep in keeping))  # noqa: B023
            alone = [least_cost(problem, keep) for keep in keeping]
            more_than_one += expected not in alone

            found, best = both(problem)

            assert expected == best.cost == best.lower_bound <= found.cost
            assert all(keep(each.depths) for keep in keeping for each in (found, best))

        assert more_than_one > 0


class TestShared:
    """Channels that share a depth."""

    @pytest.mark.parametrize("goal", GOALS, ids=str)
    def test_brute_force(self, goal: Goal) -> None:
        """Their depth is one number, and the cost is that of all of them."""
        for seed, case in enumerate(cases(of_profile(quick=20, deep=60))):
            its = Random(seed).choices("abc", k=len(case.most))
            groups = {name: [at for at, each in enumerate(its) if each == name] for name in its}
            slots = case.slots()
            variables = tuple(
                Variable(
                    name, tuple(slots[at] for at in group), 1, max(case.most[at] for at in group)
                )
                for name, group in groups.items()
            )
            problem = Problem(variables, (Limit(case.record, case.limit(goal)),), BYTES.cost)

            def keeps(depths: Depths) -> bool:
                options = problem.options(depths)  # noqa: B023
                return case.keeps(tuple(options[slot.option] for slot in slots), goal)  # noqa: B023

            found, best = both(problem)

            assert least_cost(problem, keeps) == best.cost == best.lower_bound <= found.cost
            assert keeps(found.depths)
            assert keeps(best.depths)


class TestAnytime:
    """However early it stops, there are depths and a bound."""

    def test_anytime(self) -> None:
        """With more time the cost never grows and the bound never falls, until they meet."""
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
                if found.optimal:
                    break
                unfinished += bound > problem.cost_of(lower)
            assert cost == bound == least

        assert unfinished > 0

    def test_from_anywhere(self) -> None:
        """Whatever depths it starts with, the cost is the same."""
        for case in cases(40):
            problem = case.problem(SAME)
            oracle = Oracle(problem)
            lower = lower_bounds(oracle)

            far, near = (
                exact(oracle, lower, start)
                for start in (problem.most, search(oracle, lower).depths)
            )

            assert far.cost == near.cost
            assert far.optimal
            assert near.optimal


@pytest.mark.parametrize(
    ("events", "evaluations", "asked"),
    [
        ((30_000, 50_000), None, 50_000),  # 4,000,000,000 events in all
        ((39_999, 1), None, 100_000),
        ((40_001, 0), None, 99_997),
        ((0, 0), None, 100_000),
        ((0, 0), 5, 5),
    ],
)
def test_how_many_evaluations(
    events: tuple[int, int], evaluations: int | None, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as records of their size allow in a minute, beside those that there were."""
    oracle = _oracle(events)

    def cuts(*_: object) -> Iterator[dict[int, int]]:
        while True:
            oracle.evaluations += 1
            yield {0: 2}

    monkeypatch.setattr(exact_depths, "cuts_around", cuts)
    monkeypatch.setattr(exact_depths.Master, "solve", lambda _: ((1, 1), 3))
    found = exact(oracle, (1, 1), (3, 3), evaluations=evaluations)
    assert found == Found((3, 3), 6, 3, 7 + asked)


@pytest.mark.parametrize(("new", "rounds"), [(1, 2), (9, 10), (400, 200)])
def test_how_many_rounds(new: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master is asked as long as it learns something, and 200 times at most."""
    solved: list[int] = []

    def solve(_: object) -> tuple[Depths, int]:
        solved.append(0)
        return (1, 1), 0

    monkeypatch.setattr(exact_depths, "cuts_around", lambda *_: iter(()))
    monkeypatch.setattr(exact_depths, "cuts_of", lambda *_: iter([{0: min(new, len(solved))}]))
    monkeypatch.setattr(exact_depths.Master, "solve", solve)
    monkeypatch.setattr(exact_depths, "raised", lambda _, depths: depths)
    monkeypatch.setattr(exact_depths, "trimmed", lambda *_: (3, 2))
    found = exact(_oracle((0, 0)), (1, 1), (3, 3))
    assert len(solved) == rounds
    assert found == Found((3, 2), 5, 2, 7)


def _oracle(events: tuple[int, int]) -> Any:
    """Return who has tried 7 vectors of two variables, of records with so many events."""
    variables = tuple(Variable(name, (Slot(name, 1),), 1, 9) for name in "ab")
    records: list[Any] = [SimpleNamespace(events=range(each)) for each in events]
    problem = Problem(variables, tuple(Limit(each, 0) for each in records), BYTES.cost)
    return SimpleNamespace(problem=problem, evaluations=7)


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scipy it is said how to get it; search needs none."""
    oracle = Oracle(Case(UPSTREAM).problem(SAME))
    lower = lower_bounds(oracle)
    start = search(oracle, lower).depths
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(
        ConfigurationError,
        match=r"^exact sizes need scipy, which is not installed: expected the extra sizing, as in "
        r"pip install 'step-fabric\[sizing\]'$",
    ):
        exact(oracle, lower, start)


def both(problem: Problem) -> tuple[Found, Found]:
    """Return what ``search`` and ``exact`` find."""
    oracle = Oracle(problem)
    lower = lower_bounds(oracle)
    found = search(oracle, lower)
    return found, exact(oracle, lower, found.depths)


def pairs(how_many: int) -> Iterator[tuple[Case, Case]]:
    """Yield networks of one shape whose units do other things."""
    found = 0
    for seed in count():
        random = Random(seed)
        its = shape(random)
        first, second = (Case(network(random, its)) for _ in range(2))
        if prod(map(max, first.most, second.most)) <= 5_000:
            yield first, second
            found += 1
            if found == how_many:
                return
