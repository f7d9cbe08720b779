from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.transfers import Transfers
from tests.profiles import examples

Drawn = tuple[int, int, frozenset[int]]
Link = TypeVar("Link", bound=Hashable)


LINKS = st.lists(st.integers(1, 40), min_size=1, max_size=4)


@pytest.mark.deep
@given(st.data())
@examples(quick=20, deep=1000)
def test_rates_are_max_min_fair(data: st.DataObject) -> None:
    capacities = data.draw(LINKS)
    routes = st.frozensets(st.integers(0, len(capacities) - 1), min_size=1)
    one = st.tuples(st.integers(0, 30), st.integers(1, 200), routes)
    drawn = data.draw(st.lists(one, min_size=1, max_size=7))
    transfers = Transfers(capacities)
    for number, (start, size, links) in enumerate(drawn):
        transfers.add(start, size, sorted(links), number)
    # Each of up to 14 events is at most a tick late, and delays the other events by as much.
    expected = _by_definition(capacities, drawn)
    assert transfers.finish_cycles() == pytest.approx([float(end) for end in expected], abs=0.1)


def _by_definition(capacities: list[int], drawn: list[Drawn]) -> list[Fraction]:
    left = [Fraction(size) for _, size, _ in drawn]
    ends: dict[int, Fraction] = {}
    now = Fraction(0)
    while len(ends) < len(drawn):
        live = [n for n, (start, *_) in enumerate(drawn) if start <= now and n not in ends]
        rates = rates_by_definition(dict(enumerate(capacities)), {n: drawn[n][2] for n in live})
        events = [now + left[n] / rates[n] for n in live]
        events += [Fraction(start) for start, *_ in drawn if start > now]
        later = min(events)
        for n in live:
            left[n] -= rates[n] * (later - now)
            if left[n] == 0:
                ends[n] = later
        now = later
    return [ends[n] for n in range(len(drawn))]


def rates_by_definition(
    capacities: Mapping[Link, int], routes: Mapping[int, frozenset[Link]]
) -> dict[int, Fraction]:
    rates: dict[int, Fraction] = {}
    room = {link: Fraction(capacity) for link, capacity in capacities.items()}
    while len(rates) < len(routes):
        waiting = {n: links for n, links in routes.items() if n not in rates}
        shares = {
            link: room[link] / users
            for link in room
            if (users := sum(link in links for links in waiting.values()))
        }
        tightest = min(shares, key=lambda link: shares[link])
        for n, links in waiting.items():
            if tightest in links:
                rates[n] = shares[tightest]
                for link in links:
                    room[link] -= shares[tightest]
    return rates
