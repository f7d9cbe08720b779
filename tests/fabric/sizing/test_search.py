"""Lower bounds and searching: which way they go, and how few vectors of depths they try."""

from __future__ import annotations

from types import SimpleNamespace

# Any: an oracle that is told what to say.
from typing import Any, cast

import numpy as np
import pytest

from fabric.explore.sizing import methods
from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.methods import NearestError, Proposal, validated
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
from fabric.explore.sizing.search import deepest_failing, lower_bounds, lowest, raised, search
from tests.fabric.sizing.brute_force import Case
from tests.fabric.sizing.networks import Network, Shape

SAME = Goal.parse("same-cycles")


def late(elements: int, relays: int, relayed_bytes: int) -> Case:
    """Return a source whose end counts, relays, and a sink that begins when all was sent.

    Elements can wait in front of any relay, or of the sink.
    """
    units = relays + 2
    element_bytes = (*[relayed_bytes] * relays, 64)
    ends = tuple((unit, unit + 1) for unit in range(units - 1))
    between = tuple((("r", each), ("s", each + 1)) * elements for each in range(relays))
    first = (("s", 0), ("c", 2)) * elements
    last = (("c", 2 * elements), *[("r", relays)] * elements)
    source = (*first, ("c", 8))
    its = Shape(units, ends, element_bytes, (0,) * len(ends))
    return Case(Network(its, (source, *between, last)))


class TestEvaluations:
    """How many vectors of depths are tried."""

    def test_bounds(self) -> None:
        """Channels that are never in the way are seen to be so together, not one by one."""
        case = late(5, relays=120, relayed_bytes=1)
        oracle = Oracle(case.problem(SAME))

        lower_bounds(oracle)

        assert oracle.evaluations <= 20

    def test_far(self) -> None:
        """What has to be a hundred times as deep is so after few steps, and no deeper."""
        case = late(400, relays=1, relayed_bytes=1)
        oracle = Oracle(case.problem(SAME))
        lower = lower_bounds(oracle)

        found = search(oracle, lower)

        assert found.depths[0] > 100
        assert not case.keeps((found.depths[0] - 1, found.depths[1]), SAME)
        assert case.keeps(found.depths, SAME)
        assert oracle.evaluations <= 60

    def test_gap(self) -> None:
        """Where an answer would take too long there is a gap, and all of it is true."""
        case = late(24, relays=3, relayed_bytes=1)
        oracle = Oracle(case.problem(SAME))
        lower = lower_bounds(oracle)
        found = search(oracle, lower)

        early = exact(oracle, lower, found.depths, evaluations=100)
        best = exact(oracle, lower, found.depths)

        assert best.optimal
        assert found.lower_bound < early.lower_bound < best.cost <= early.cost <= found.cost
        assert not early.optimal


class Threshold:
    """Keeps the limits from some depth of its second variable on, and notes what it is asked."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.asked: list[int] = []

    def keeps(self, depths: Depths) -> bool:
        """Whether it does."""
        assert depths[::2] == (5, 6)
        self.asked.append(depths[1])
        return depths[1] >= self.enough


class TestSteps:
    """Which depths are tried, one after the other: steps grow twofold, then halves are taken."""

    @pytest.mark.parametrize(
        ("start", "floor", "enough", "asked"),
        [
            (40, 1, 26, [39, 37, 33, 25, 29, 27, 26]),
            (40, 1, 1, [39, 37, 33, 25, 9, 1]),
            (40, 38, 1, [39, 38]),
            (40, 38, 40, [39]),
            (7, 7, 7, []),
        ],
    )
    def test_lowest(self, start: int, floor: int, enough: int, asked: list[int]) -> None:
        """Downwards from what keeps the limits, no further than is wanted."""
        oracle = Threshold(enough)
        found = lowest(cast("Oracle", oracle), (5, start, 6), 1, floor)
        assert found == max(enough, floor)
        assert oracle.asked == asked

    @pytest.mark.parametrize(
        ("start", "most", "enough", "asked"),
        [
            (1, 40, 15, [2, 4, 8, 16, 12, 14, 15]),
            (1, 40, 2, [2]),
            (1, 40, 40, [2, 4, 8, 16, 32, 36, 38, 39]),
            (1, 3, 3, [2]),
            (1, 2, 2, []),
        ],
    )
    def test_deepest_failing(self, start: int, most: int, enough: int, asked: list[int]) -> None:
        """Upwards from what fails, below what is known to be enough."""
        oracle = Threshold(enough)
        found = deepest_failing(cast("Oracle", oracle), (5, start, 6), 1, most)
        assert found == enough - 1
        assert oracle.asked == asked


class TestSearch:
    """Which way it goes."""

    def test_cheapest(self) -> None:
        """Where elements can wait in two places, they do where slots are cheap."""
        for relayed_bytes, in_front in ((1, True), (1_000, False)):
            oracle = Oracle(late(8, 1, relayed_bytes).problem(SAME))

            first, second = search(oracle, lower_bounds(oracle)).depths

            assert in_front == (first > second)


def test_which_is_deepened() -> None:
    """The one of the cut whose next slot is cheapest, the first of those; by 1, 2, 4, to its most.

    Slots of the first cost 3 and then 100, those of the second 4 each, those of the third 5.
    """
    prices = ([0, 0, 3, 103, 203], [4 * depth for depth in range(40)], [5 * n for n in range(40)])
    asked: list[tuple[int, ...]] = []

    class Told:
        problem = SimpleNamespace(
            most=(4, 12, 30), cost_at=lambda number, depth: prices[number][depth]
        )

        def cut(self, depths: tuple[int, ...]) -> list[int] | None:
            asked.append(depths)
            return [2, 0] if len(asked) == 6 else [0, 1, 2] if len(asked) < 9 else None

    oracle: Any = Told()
    assert (2, 12, 8) == raised(oracle, (1, 1, 1))
    assert asked == [
        (1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 4, 1), (2, 8, 1), (2, 12, 1), (2, 12, 2), (2, 12, 4),
        (2, 12, 8),
    ]  # fmt: skip


class Runs:
    """Two inputs of which runs decide: they keep the goal with depths from ``floor`` on."""

    now = (2, 2, 2, 2)

    def __init__(self, floor: Depths, events: tuple[int, int], *, shares_links: bool) -> None:
        self.unbounded = [
            SimpleNamespace(events=range(events[0]), shares_links=False),
            SimpleNamespace(events=range(events[1]), shares_links=shares_links),
        ]
        self.ran: dict[Depths, tuple[Any, Any]] = {}
        self._floor = floor

    def problem(self, records: list[Any]) -> Any:
        """Return the problem: slots of 8, 3, 5 and 3 bytes."""
        assert len(records) == 2
        channels = zip("abcd", (8, 3, 5, 3), strict=True)
        variables = tuple(Variable(name, (Slot(name, size),), 1, 9) for name, size in channels)
        return Problem(variables, (), lambda depth, size: depth * size)

    def known(self, depths: Depths) -> tuple[Any, Any] | None:
        """Return a run that there was."""
        return self.ran.get(depths)

    def run(self, depths: Depths) -> tuple[Any, Any]:
        """Run both: the first gets stuck where the goal is not kept."""
        kept = all(depth >= least for depth, least in zip(depths, self._floor, strict=True))
        first, second = (SimpleNamespace(record=n, cycles=90 - sum(depths)) for n in range(2))
        return self.ran.setdefault(depths, (first if kept else None, second))

    def keeps(self, found: tuple[Any, Any]) -> bool:
        """Whether both end."""
        return None not in found


def by_runs(
    monkeypatch: pytest.MonkeyPatch,
    floor: Depths = (2, 2, 3, 5),
    events: tuple[int, int] = (0, 0),
    *,
    shares_links: bool = False,
) -> tuple[list[Depths], tuple[Any, ...]]:
    """Return which depths are run, one after the other, and what is found."""
    wanted = iter([(2, 3, 3, 4), (2, 3, 3, 6), (2, 3, 3, 6)])
    base = SimpleNamespace(base=np.array([0, 9, 13, 20, 29]))
    monkeypatch.setattr(methods, "Oracle", lambda _: SimpleNamespace(evaluations=7))
    monkeypatch.setattr(methods, "lower_bounds", lambda _: None)
    monkeypatch.setattr(methods, "proposal", lambda *_: Proposal(next(wanted), 0))
    monkeypatch.setattr(methods, "high_water", lambda _: (8, 6, 7, 7))
    monkeypatch.setattr(methods, "sized_at_most", lambda _, of: tuple(of(base).tolist()))
    asked: Any = Runs(floor, events, shares_links=shares_links)
    try:
        found: tuple[Any, ...] = validated(asked, "search")
    except NearestError as error:
        found = (), error.cycles
    return list(asked.ran), found


RUN = [
    (1, 1, 1, 1), (2, 2, 2, 2), (8, 6, 7, 7),  # what comes to mind, the cheapest first
    (2, 3, 3, 4), (2, 6, 3, 7), (2, 3, 3, 7),  # what is proposed, and the half that saves most
    (2, 3, 3, 6),
    (2, 3, 3, 5), (1, 3, 3, 5), (2, 3, 2, 5), (2, 2, 3, 5), (2, 1, 3, 5),  # dearest first
    (1, 2, 3, 5), (2, 2, 2, 5), (2, 2, 3, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "least_runs", "runs", "found"),
    [
        ((0, 0), 12, 15, (2, 2, 3, 5)),
        ((100_000, 100_000), 12, 15, (2, 2, 3, 5)),
        ((100_000, 100_001), 12, 14, (2, 2, 3, 5)),
        ((1, 10_000_000), 12, 12, (2, 2, 3, 5)),
        ((1, 10_000_000), 8, 8, (2, 3, 3, 5)),
        ((1, 10_000_000), 5, 5, (2, 6, 3, 7)),
        ((1, 10_000_000), 4, 4, (8, 6, 7, 7)),
    ],
)
def test_which_are_run(
    events: tuple[int, int],
    least_runs: int,
    runs: int,
    found: Depths,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Proposals are taken as far as they keep the goal, and lowered, for three million events."""
    assert methods._LEAST_RUNS == 12
    monkeypatch.setattr(methods, "_LEAST_RUNS", least_runs)
    proposals = 1 if runs < 7 else 2 if runs == 7 else 3
    assert by_runs(monkeypatch, events=events) == (RUN[:runs], (found, 7 * proposals))


def test_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where links are shared, as many slots as elements are tried, too; least cycles are told."""
    more = (9, 4, 7, 9)
    assert by_runs(monkeypatch, more, shares_links=True)[0][:4] == [*RUN[:3], more]
    ran, found = by_runs(monkeypatch, (9, 9, 9, 9), shares_links=True)
    assert (ran, found) == ([*RUN[:3], more], ((), (None, 90 - 29)))
    assert by_runs(monkeypatch, (9, 9, 9, 9)) == (RUN[:3], ((), (None, 90 - 28)))


class Known:
    """Knows which of its depths, of two channels of 3 and 5 bytes, keep the limits."""

    def __init__(self, *kept: Depths, shares_links: bool = False) -> None:
        self._kept = kept
        sizes = zip("ab", (3, 5), strict=True)
        variables = tuple(Variable(name, (Slot(name, size),), 1, 9) for name, size in sizes)
        records: list[Any] = [SimpleNamespace(shares_links=each) for each in (False, shares_links)]
        limits = tuple(Limit(each, 0) for each in records)
        self.problem = Problem(variables, limits, lambda depth, size: depth * size * 1000)

    def keeps(self, depths: Depths) -> bool:
        """Whether they do."""
        return depths in self._kept


@pytest.mark.parametrize(
    ("bound", "shares_links", "note"),
    [
        (16_000, False, "the least for the record"),
        (14_766, False, "at most 1,234 above the least for the record"),
        (15_999, False, "at most 1 above the least for the record"),
        (14_766, True, "if nothing waited for links"),
    ],
)
def test_what_is_said_of_the_least(
    bound: int, shares_links: bool, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far it may be from the least for the record; where links are shared that is not all."""
    oracle: Any = Known(shares_links=shares_links)
    searched, best = Found((4, 4), 32_000, 11_000, 1), Found((2, 2), 16_000, bound, 1)
    monkeypatch.setattr("fabric.explore.sizing.search.search", lambda *_: searched)
    monkeypatch.setattr("fabric.explore.sizing.exact.exact", lambda *_: best)
    monkeypatch.setattr("fabric.explore.sizing.search.high_water", lambda _: (5, 5))
    assert methods.proposal("exact", oracle, (1, 1)) == Proposal((2, 2), bound, note)
    assert methods.proposal("search", oracle, (1, 1)) == Proposal((4, 4), 11_000)
    assert methods.proposal("high-water", oracle, (1, 1)) == Proposal((5, 5), 8_000)


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
def test_which_of_two(
    kept: tuple[Depths, ...], normal: Depths, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the linear program answers, what keeps the limits, then what is cheaper."""
    oracle: Any = Known(*kept)
    monkeypatch.setattr(
        "fabric.explore.sizing.paper_lp.paper_lp",
        lambda _, *, conservative: (2, 2) if conservative else normal,
    )
    depths = normal if chosen == "normal" else (2, 2)
    assert methods.proposal("paper-lp", oracle, (1, 2)) == Proposal(depths, 13_000, chosen)
