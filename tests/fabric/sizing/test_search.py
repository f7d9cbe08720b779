from __future__ import annotations

from fabric.analysis.depths.problem import Oracle
from fabric.analysis.depths.search import lower_bounds, search
from fabric.explore.sizing.goal import Goal
from tests.fabric.sizing.brute_force import Case
from tests.fabric.sizing.networks import Network, Shape

SAME = Goal.parse("same-cycles")


def late(elements: int, relays: int, relayed_bytes: int) -> Case:
    # Elements can wait in front of any relay or in front of the sink.
    units = relays + 2
    element_bytes = (*[relayed_bytes] * relays, 64)
    ends = tuple((unit, unit + 1) for unit in range(units - 1))
    between = tuple((("r", each), ("s", each + 1)) * elements for each in range(relays))
    first = (("s", 0), ("c", 2)) * elements
    last = (("c", 2 * elements), *[("r", relays)] * elements)
    source = (*first, ("c", 8))
    chain = Shape(units, ends, element_bytes, (0,) * len(ends))
    return Case(Network(chain, (source, *between, last)))


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
