from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fabric.analysis.depths.problem import Depths, Limit, Oracle, Problem, Slot, Variable
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing import methods
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.goal import Goal
from fabric.explore.sizing.methods import Proposal
from tests.fabric.sizing.brute_force import Case
from tests.fabric.sizing.networks import Network, Shape

SAME = Goal.parse("same-cycles")


def late(elements: int, relays: int, relayed_bytes: int) -> Case:
    # Elements can wait in front of any relay, or of the sink.
    units = relays + 2
    element_bytes = (*[relayed_bytes] * relays, 64)
    ends = tuple((unit, unit + 1) for unit in range(units - 1))
    between = tuple((("r", each), ("s", each + 1)) * elements for each in range(relays))
    first = (("s", 0), ("c", 2)) * elements
    last = (("c", 2 * elements), *[("r", relays)] * elements)
    source = (*first, ("c", 8))
    its = Shape(units, ends, element_bytes, (0,) * len(ends))
    return Case(Network(its, (source, *between, last)))


def test_lower_bounds_of_many_channels_take_few_evaluations() -> None:
    case = late(5, relays=120, relayed_bytes=1)
    oracle = Oracle(case.problem(SAME))

    lower_bounds(oracle)

    assert oracle.evaluations <= 20


def test_search_for_a_deep_channel_takes_few_evaluations() -> None:
    case = late(400, relays=1, relayed_bytes=1)
    oracle = Oracle(case.problem(SAME))
    lower = lower_bounds(oracle)

    found = search(oracle, lower)

    assert found.depths[0] > 100
    assert not case.keeps((found.depths[0] - 1, found.depths[1]), SAME)
    assert case.keeps(found.depths, SAME)
    assert oracle.evaluations <= 60


def test_exact_stopped_early_reports_a_gap() -> None:
    case = late(24, relays=3, relayed_bytes=1)
    oracle = Oracle(case.problem(SAME))
    lower = lower_bounds(oracle)
    found = search(oracle, lower)

    early = exact(oracle, lower, found.depths, evaluations=100)
    best = exact(oracle, lower, found.depths)

    assert best.cost == best.lower_bound
    assert found.lower_bound < early.lower_bound < best.cost <= early.cost <= found.cost
    assert early.cost > early.lower_bound


def test_search_deepens_the_cheaper_channel() -> None:
    for relayed_bytes, in_front in ((1, True), (1_000, False)):
        oracle = Oracle(late(8, 1, relayed_bytes).problem(SAME))

        first, second = search(oracle, lower_bounds(oracle)).depths

        assert in_front == (first > second)


class Known:
    def __init__(self, *kept: Depths, shares_links: bool = False) -> None:
        self._kept = kept
        sizes = zip("ab", (3, 5), strict=True)
        variables = tuple(Variable(name, (Slot(name, size),), 1, 9) for name, size in sizes)
        records: list[Any] = [SimpleNamespace(shares_links=each) for each in (False, shares_links)]
        limits = tuple(Limit(each, 0) for each in records)
        self.problem = Problem(variables, limits, lambda depth, size: depth * size * 1000)

    def keeps(self, depths: Depths) -> bool:
        return depths in self._kept


@pytest.mark.parametrize(
    ("kept", "normal", "chosen"),
    [
        (((2, 2), (3, 3)), (3, 3), "conservative"),
        (((3, 3),), (3, 3), "normal"),
        ((), (3, 3), "conservative"),
        (((2, 2), (2, 1)), (2, 1), "normal"),
        (((2, 2),), (2, 2), "conservative"),
        (((2, 2),), (2, 1), "conservative"),
    ],
)
def test_paper_lp_proposal_is_the_cheaper_that_keeps_the_limits(
    kept: tuple[Depths, ...], normal: Depths, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle: Any = Known(*kept)
    monkeypatch.setattr(
        "fabric.explore.sizing.paper_lp.paper_lp",
        lambda _, *, conservative: (2, 2) if conservative else normal,
    )
    depths = normal if chosen == "normal" else (2, 2)
    assert methods.proposal("paper-lp", oracle, (1, 2)) == Proposal(depths, 13_000, chosen)
