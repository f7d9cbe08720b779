from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric.timing.network.fair_share import NEVER, PIECE_BITS, TICK_BITS
from fabric.timing.network.links import Links
from tests.network.transfers import fill, world
from tests.profiles import examples


class _End:
    def __init__(self) -> None:
        self.elements = 0

    def arrive(self, cycle: int) -> None:
        self.elements += 1
        self.cycle = cycle


class Traffic(NamedTuple):
    capacities: list[int]
    routes: list[list[int]]
    sent: list[tuple[int, int, int]]


@st.composite
def traffic(draw: st.DrawFn) -> Traffic:
    links = draw(st.integers(1, 8))
    capacities = draw(st.lists(st.integers(1, 5), min_size=links, max_size=links))
    route = st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True)
    routes = draw(st.lists(route, min_size=1, max_size=12))
    element = st.tuples(
        st.integers(0, len(routes) - 1), st.integers(0, 40), st.sampled_from([0, 1, 7, 64, 2**23])
    )
    sent = draw(st.lists(element, max_size=30))
    return Traffic(capacities, routes, sorted(sent, key=lambda each: each[1]))


def _rates(of: Traffic, flows: list[int], pieces: int) -> list[int]:
    w = world(
        len(of.routes), len(of.capacities), [link for route in of.routes for link in route], 0
    )
    w.transfers.rows["rate"] = -1
    w.transfers.rows["end_link"] = ends = np.cumsum([*map(len, of.routes)])
    w.transfers.rows["first_link"] = ends - [*map(len, of.routes)]
    w.links.rows["room"] = np.array(of.capacities) * pieces
    w.active[: len(flows)] = flows
    fill(w, len(flows))
    return [w.transfers[flow].rate for flow in flows]


@examples(quick=30, deep=4000)
@given(traffic())
def test_incremental_rates_equal_rates_computed_from_scratch(of: Traffic) -> None:
    # Both leave out links that no route uses.
    used = sorted({link for route in of.routes for link in route})
    of = of._replace(
        capacities=[of.capacities[link] for link in used],
        routes=[[used.index(link) for link in route] for route in of.routes],
    )
    links = Links(of.capacities, of.routes)
    ends: list[Any] = [_End() for _ in of.routes]
    links.connect([[end] for end in ends])
    for flow, cycle, size_bytes in of.sent:
        links.begin(flow, cycle, size_bytes)
    pieces = 1 << (PIECE_BITS - TICK_BITS)
    while links.next_cycle != NEVER:
        links.advance(0, 0)
        flows = links.world.flows
        under_way = np.flatnonzero(flows.rows["under_way"]).tolist()
        assert flows.rows["rate"][under_way].tolist() == _rates(of, under_way, pieces)
    expected = [sum(flow == each for each, _, _ in of.sent) for flow in range(len(ends))]
    assert [end.elements for end in ends] == expected


def test_rates_that_are_rounded_do_not_delay_the_last_cycle() -> None:
    links = Links([1], [[0]] * 3)
    end: Any = _End()
    links.connect([[end]] * 3)
    for flow in range(3):
        links.begin(flow, 0, 16_000)
    links.advance(0, 0)
    links.advance(0, 0)
    assert (3, 3 * 16_000, NEVER) == (end.elements, end.cycle, links.next_cycle)
