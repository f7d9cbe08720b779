"""Transfers over shared links: when each one ends, in a compiled loop over constant rates.

Between two events (a transfer begins or ends), rates are max-min fair: no rate can grow without
reducing an equal or smaller rate. The rates are found by filling: all rates grow alike, and a rate
stops when one of its links is full. All numbers are integers, so that every machine computes the
same: cycles are counted in ticks, and bytes in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table

TICK_BITS = 10
"""A cycle has 2 ** TICK_BITS ticks."""

PIECE_BITS = 26
"""A byte has 2 ** PIECE_BITS pieces."""

_NEVER = 2**62


class Transfer(Row):
    start: int  # tick
    left: int  # pieces; 0 if no link limits it
    first_link: int
    end_link: int
    source: int
    finish: int  # tick
    rate: int  # pieces a tick; below 0 if not computed
    rank: int


class Link(Row):
    capacity: int  # pieces a tick
    room: int
    users: int
    share: int
    until: int


class World(NamedTuple):
    transfers: Table[Transfer]
    links: Table[Link]
    taken: Counters
    order: Counters
    active: Counters
    listed: Counters
    members: Counters
    at_source: Counters


def world(transfers: int, links: int, taken: Sequence[int], sources: int) -> World:
    return World(
        Table.zeros(Transfer, transfers),
        Table.zeros(Link, links),
        np.array(taken, np.int64),
        *(np.zeros(size, np.int64) for size in (transfers, transfers, links, len(taken), sources)),
    )


def fill(w: World, under_way: int) -> None:  # noqa: C901, PLR0912 - compiled as one function
    """Give active transfers with a rate below 0 their share of the links' free capacity.

    All rates grow alike until a link is full. Then its transfers stop growing, and the others
    continue. Of links that are full at the same time, the lowest number is first. Remainders of
    divisions stay unused.
    """
    for number in range(w.links.size):
        w.links[number].users = 0
    for place in range(under_way):
        one = w.transfers[w.active[place]]
        if one.rate < 0:
            for at in range(one.first_link, one.end_link):
                w.links[w.taken[at]].users += 1
    count = 0
    # Transfers on listed links are in ``members``, link by link, before ``until``.
    end = 0
    for number in range(w.links.size):
        link = w.links[number]
        if link.users > 0:
            w.listed[count] = number
            count += 1
            link.until = end
            end += link.users
            link.share = link.room // link.users
    for place in range(under_way):
        one = w.transfers[w.active[place]]
        if one.rate < 0:
            for at in range(one.first_link, one.end_link):
                link = w.links[w.taken[at]]
                w.members[link.until] = w.active[place]
                link.until += 1
    while count > 0:
        level = _NEVER
        for place in range(count):
            level = min(level, w.links[w.listed[place]].share)
        for place in range(count):
            link = w.links[w.listed[place]]
            if link.share < 0 and link.users > 0:
                link.share = link.room // link.users
            if link.users > 0 and link.share == level:
                # Stopped members are skipped. The loop ends before the members of the previous
                # link.
                at_member = link.until - 1
                open_ones = link.users
                while open_ones > 0:
                    one = w.transfers[w.members[at_member]]
                    at_member -= 1
                    if one.rate < 0:
                        one.rate = level
                        open_ones -= 1
                        for at in range(one.first_link, one.end_link):
                            other = w.links[w.taken[at]]
                            other.room -= level
                            other.users -= 1
                            other.share = -1
        kept = 0
        for place in range(count):
            link = w.links[w.listed[place]]
            if link.users > 0:
                if link.share < 0:
                    link.share = link.room // link.users
                w.listed[kept] = w.listed[place]
                kept += 1
        count = kept


@MachineCode
def drain(w: World, lanes: int) -> tuple[int]:  # noqa: C901, PLR0912 - compiled as one function
    """Run all transfers to their ends; return how often rates were computed.

    The ``lanes`` oldest transfers of each source have equal rights. Later transfers share what
    these leave. With 0 lanes, all transfers have equal rights. ``order`` has the transfers in
    the order in which they begin.
    """
    under_way = 0
    begun = 0
    now = 0
    rounds = 0
    while under_way > 0 or begun < w.order.size:
        rounds += 1
        for number in range(w.links.size):
            w.links[number].room = w.links[number].capacity
        for source in range(w.at_source.size):
            w.at_source[source] = 0
        last_rank = 0
        for place in range(under_way):
            one = w.transfers[w.active[place]]
            one.rate = 0
            one.rank = 0
            if lanes > 0:
                one.rank = w.at_source[one.source]
                w.at_source[one.source] += 1
                if one.rank < lanes and one.rank > last_rank:
                    last_rank = one.rank
        for turn in range(last_rank + 1):
            for place in range(under_way):
                one = w.transfers[w.active[place]]
                if one.rank == turn:
                    one.rate = -1
            fill(w, under_way)
        next_tick = _NEVER
        if begun < w.order.size:
            next_tick = w.transfers[w.order[begun]].start
        for place in range(under_way):
            one = w.transfers[w.active[place]]
            if one.rate > 0:
                through = now - (-one.left // one.rate)
                next_tick = min(next_tick, through)
        kept = 0
        for place in range(under_way):
            one = w.transfers[w.active[place]]
            one.left -= one.rate * (next_tick - now)
            if one.left <= 0:
                one.finish = next_tick
            else:
                w.active[kept] = w.active[place]
                kept += 1
        under_way = kept
        now = next_tick
        while begun < w.order.size and w.transfers[w.order[begun]].start <= now:
            one = w.transfers[w.order[begun]]
            if one.left > 0:
                w.active[under_way] = w.order[begun]
                under_way += 1
            else:
                one.finish = one.start
            begun += 1
    return (rounds,)


class Transfers:
    """Max-min fair transfers that begin in known cycles and share links.

    A transfer uses all of its links at the same time, at one rate. The cycles of its head on the
    route are not included: add ``Route.cycles``.
    """

    def __init__(
        self, capacities: Sequence[float | Fraction | None], *, lanes: int | None = None
    ) -> None:
        """Begin without transfers.

        ``capacities`` are bytes a cycle, or None without a limit. ``lanes`` is the number of
        transfers that a source sends at a time, as a router with virtual channels does; None
        without a limit.
        """
        unit = 1 << (PIECE_BITS - TICK_BITS)
        self._capacities: Final = [
            0 if capacity is None else max(1, int(capacity * unit)) for capacity in capacities
        ]
        self._lanes: Final = lanes or 0
        self._starts: Final[list[int]] = []
        self._sizes: Final[list[int]] = []
        self._links: Final[list[int]] = []
        self._first_link: Final = [0]
        self._sources: Final[list[int]] = []

    def add(self, start_cycle: float, size_bytes: int, links: Sequence[int], source: int) -> int:
        """Add a transfer and return its number; an injector has one ``source``."""
        self._starts.append(int(start_cycle * (1 << TICK_BITS)))
        limiting = [link for link in links if self._capacities[link]]
        self._sizes.append(size_bytes << PIECE_BITS if limiting else 0)
        self._links.extend(limiting)
        self._first_link.append(len(self._links))
        self._sources.append(source)
        return len(self._starts) - 1

    def finish_cycles(self) -> list[float]:
        """Return the cycle in which the last byte of each transfer arrives."""
        count = len(self._starts)
        if not count:
            return []
        w = world(count, len(self._capacities), self._links, max(self._sources) + 1)
        rows = w.transfers.rows
        rows["start"], rows["left"], rows["source"] = self._starts, self._sizes, self._sources
        rows["first_link"], rows["end_link"] = self._first_link[:-1], self._first_link[1:]
        w.links.rows["capacity"] = self._capacities
        w.order[:] = np.argsort(rows["start"], kind="stable")
        drain.over(w)(self._lanes)
        cycles: list[float] = (rows["finish"] / (1 << TICK_BITS)).tolist()
        return cycles
