"""Shares of links: by hand, and against the definition of max-min fairness, in fractions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.messages.telling.errors import ConfigurationError
from tests.network.transfers import Transfers
from tests.profiles import examples

Drawn = tuple[int, int, frozenset[int]]
Link = TypeVar("Link", bound=Hashable)


def test_two_on_one_link_have_half_of_it_each() -> None:
    """Two on one link have half of it each."""
    transfers = Transfers([10])
    transfers.add(0, 100, [0], 0)
    transfers.add(5, 100, [0], 1)
    # 50 bytes alone; 50 of each at half; the rest of the second one alone.
    assert transfers.finish_cycles() == [15, 20]


def test_one_that_another_link_holds_up_leaves_the_rest() -> None:
    """One that another link holds up leaves the rest."""
    transfers = Transfers([8, 2])
    transfers.add(0, 20, [0, 1], 0)
    transfers.add(0, 60, [0], 1)
    assert transfers.finish_cycles() == [10, 10]


def test_a_source_with_one_lane_sends_in_order() -> None:
    """A source with one lane sends in order."""
    transfers = Transfers([4], lanes=1)
    for _ in range(3):
        transfers.add(0, 40, [0], 0)
    assert transfers.finish_cycles() == [10, 20, 30]


def test_a_second_lane_has_what_the_first_one_leaves() -> None:
    """A second lane has what the first one leaves."""
    transfers = Transfers([4, 1, 4], lanes=2)
    transfers.add(0, 10, [0, 1], 0)
    transfers.add(0, 30, [0, 2], 0)
    transfers.add(0, 4, [0, 2], 0)
    # The third waits for a lane, which the others leave together.
    assert transfers.finish_cycles() == [10, 10, 11]


def test_links_without_a_limit_take_no_time() -> None:
    """Links without a limit take no time."""
    transfers = Transfers([None, None])
    transfers.add(3, 2**30, [0, 1], 0)
    assert transfers.finish_cycles() == [3]


@pytest.mark.parametrize(
    ("size", "links", "told"),
    [(0, [0], "0 bytes"), (1, [], "takes links"), (1, [1], "takes links"), (1, [0, 0], "once")],
)
def test_what_is_refused(size: int, links: list[int], told: str) -> None:
    """What is refused says what was expected."""
    with pytest.raises(ConfigurationError, match=told):
        Transfers([1]).add(0, size, links, 0)


def test_a_link_that_carries_nothing_is_refused() -> None:
    """A link that carries nothing is refused."""
    with pytest.raises(ConfigurationError, match="link 1: bytes a cycle are 0: expected"):
        Transfers([1, 0])


def test_limits() -> None:
    """The most that a link and a transfer can have are taken, and the least; nothing beyond."""
    assert Transfers([1]).finish_cycles() == []
    # The last link has a piece a tick: of a cycle's 2**10 ticks and a byte's 2**26 pieces.
    transfers = Transfers([2**20, Fraction(1, 2), 0.25, None, 1e-9])
    asked = [
        (0.5, 2**20, [0], 5), (0, 1, [1], 0), (1, 1, [2, 3], 2), (7, 2**34, [3], 9), (0, 1, [4], 3),
    ]  # fmt: skip
    assert [transfers.add(*each) for each in asked] == [0, 1, 2, 3, 4]
    assert transfers.finish_cycles() == [1.5, 2, 5, 7, 2**16]
    assert transfers.add(0, 2**34, [0], 0) == 5
    with pytest.raises(ConfigurationError) as refused:
        Transfers([2**20, 2**20 + 1])
    assert refused.value.message == (
        "link 1: bytes a cycle are 1048577: expected more than 0 and at most 1048576, or None"
    )
    for start, size, links, source, told in (
        (0, 2**34 + 1, [0], 0, "a transfer of 17,179,869,185 bytes at cycle 0 from source 0: "),
        (-1, 1, [0], 2, "a transfer of 1 byte at cycle -1 from source 2: expected 1 to 171798691"),
        (3, 1, [0], -1, "a transfer of 1 byte at cycle 3 from source -1: expected 1 to 17179869"),
        (0, 1, [-1], 0, "a transfer takes links [-1]: expected at least one, each once, of 5"),
        (0, 1, [5], 0, "a transfer takes links [5]: expected at least one, each once, of 5"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            transfers.add(start, size, links, source)
        assert refused.value.message.startswith(told)
    assert transfers.add(0, 1, [4], 0) == 6


@pytest.mark.parametrize(
    ("lanes", "ends"),
    [(1, [5, 15, 18, 8]), (2, [5, 11.25, 14.25, 8]), (None, [5, 14.25, 7.25, 8])],
)
def test_lanes_are_of_each_source(lanes: int | None, ends: list[float]) -> None:
    """Who waits for a lane of its source does not wait for those of another one.

    A second lane has the 3 bytes that the first one leaves of link 0 for 5 cycles, then all 4.
    Without lanes two have 1.5 each meanwhile, and 2 each until the shorter one is through.
    """
    transfers = Transfers([4, 1, 1], lanes=lanes)
    for size, links, source in (5, [0, 1], 1), (40, [0], 1), (12, [0], 1), (8, [2], 0):
        transfers.add(0, size, links, source)
    assert transfers.finish_cycles() == ends
    with pytest.raises(ConfigurationError, match=r"^lanes is 0: expected at least 1$"):
        Transfers([1], lanes=0)


LINKS = st.lists(st.integers(1, 40), min_size=1, max_size=4)


@given(st.data())
@examples(quick=40, deep=2000)
def test_rates_are_max_min_fair(data: st.DataObject) -> None:
    """Rates are max min fair."""
    capacities = data.draw(LINKS)
    routes = st.frozensets(st.integers(0, len(capacities) - 1), min_size=1)
    one = st.tuples(st.integers(0, 30), st.integers(1, 200), routes)
    drawn = data.draw(st.lists(one, min_size=1, max_size=7))
    transfers = Transfers(capacities)
    for number, (start, size, links) in enumerate(drawn):
        transfers.add(start, size, sorted(links), number)
    # Each of up to 14 events comes at most a tick late, and slows the others by as little.
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
    """Take the link with the smallest share, settle its users, take them out, and again."""
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
