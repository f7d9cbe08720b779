"""Lower bounds and searching: which way they go, and how few vectors of depths they try."""

from __future__ import annotations

from types import SimpleNamespace

# Any: an oracle that is told what to say.
from typing import Any, cast

import pytest

from fabric.explore.sizing.exact import exact
from fabric.explore.sizing.problem import Depths, Goal, Oracle
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
