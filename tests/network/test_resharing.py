from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric.timing.network import columns as n
from fabric.timing.network.links import NO_CYCLE, Links
from tests.network.transfers import fill
from tests.profiles import examples


class _End:
    def __init__(self) -> None:
        self.elements = 0

    def arrive(self, _: int) -> None:
        self.elements += 1


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
    count, links = len(of.routes), len(of.capacities)
    numbers = [link for route in of.routes for link in route]
    rate = np.full(count, -1, np.int64)
    fill(
        len(flows),
        np.array([*flows, 0], np.int64),
        rate,
        np.cumsum([0, *map(len, of.routes)]),
        np.array(numbers, np.int64),
        np.array(of.capacities, np.int64) * pieces,
        np.zeros(links, np.int64),
        np.zeros(links, np.int64),
        np.zeros(links, np.int64),
        np.zeros(links, np.int64),
        np.zeros(len(numbers), np.int64),
    )
    return [int(rate[flow]) for flow in flows]


@examples(quick=60, deep=4000)
@given(traffic())
def test_incremental_rates_equal_rates_computed_from_scratch(of: Traffic) -> None:
    # Links that no route takes are left out, by both alike.
    used = sorted({link for route in of.routes for link in route})
    of = of._replace(
        capacities=[of.capacities[link] for link in used],
        routes=[[used.index(link) for link in route] for route in of.routes],
    )
    links = Links(of.capacities, of.routes)
    ends = [_End() for _ in of.routes]
    for one, end in zip(links.flows, ends, strict=True):
        one.lead_to(end)
    for flow, cycle, size_bytes in of.sent:
        links.flows[flow].begin(cycle, size_bytes)
    pieces = 1 << (n.PIECE_BITS - n.TICK_BITS)
    while links.next_cycle != NO_CYCLE:
        links.advance(0)
        rows = links.arrays["flows"].reshape(-1, n.FLOW_COLUMNS)
        under_way = np.flatnonzero(rows[:, n.UNDER_WAY]).tolist()
        assert rows[under_way, n.RATE].tolist() == _rates(of, under_way, pieces)
    expected = [sum(flow == each for each, _, _ in of.sent) for flow in range(len(ends))]
    assert [end.elements for end in ends] == expected
