"""Transfers over shared links: when each is through, in a compiled loop over constant rates.

Between two events (a transfer begins, or is through) rates are max-min fair shares of the links: no
one's rate can grow but at the cost of one that is not greater. They are found by filling: all rates
grow alike, and those stop whose link is full. All numbers are integers, so that they are the same
on every machine: cycles and bytes come in fractions of 2 to the power of ``TICK_BITS`` and
``PIECE_BITS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted
from fabric.timing.engine.machine_code import Counters, MachineCode

TICK_BITS = 10
"""A cycle has 2 ** TICK_BITS ticks."""

PIECE_BITS = 26
"""A byte has 2 ** PIECE_BITS pieces."""

_NEVER = 2**62

_MOST: Final = 2**20
"""Bytes a cycle that a link can be given."""

_MOST_BYTES: Final = 2**34
"""Of one transfer."""


def fill(  # noqa: C901, PLR0912 - one loop, compiled as one function
    under_way: int,
    active: Counters,
    rate: Counters,
    first_link: Counters,
    links: Counters,
    room: Counters,
    users: Counters,
    share: Counters,
    listed: Counters,
    until: Counters,
    members: Counters,
) -> None:
    """Give all that is under way and has a rate below 0 its share of what room is left.

    All of them grow alike until a link is full; those on it stop, and the others go on. Of links
    that are full at once the first by number is, with what it leaves to the others. What is left
    over in a division stays free.

    Args:
        under_way: how many are.
        active: which.
        rate: of each transfer, in pieces a tick; those below 0 are found.
        first_link: of each in ``links``, and one more.
        links: of all transfers, one behind the other.
        room: of each link, what nobody has so far; what is given is taken away.
        users: scratch space, one entry a link.
        share: likewise.
        listed: likewise.
        until: likewise.
        members: scratch space, one entry a link of each transfer.
    """
    for link in range(room.size):
        users[link] = 0
    for place in range(under_way):
        one = active[place]
        if rate[one] < 0:
            for at in range(first_link[one], first_link[one + 1]):
                users[links[at]] += 1
    count = 0
    for link in range(room.size):
        if users[link] > 0:
            listed[count] = link
            count += 1
    # Who is on a link stands in ``members``, up to ``until``; of links that are listed in turn.
    end = 0
    for place in range(count):
        link = listed[place]
        until[link] = end
        end += users[link]
        share[link] = room[link] // users[link]
    for place in range(under_way):
        one = active[place]
        if rate[one] < 0:
            for at in range(first_link[one], first_link[one + 1]):
                link = links[at]
                members[until[link]] = one
                until[link] += 1
    while count > 0:
        level = _NEVER
        for place in range(count):
            level = min(level, share[listed[place]])
        for place in range(count):
            link = listed[place]
            if share[link] < 0 and users[link] > 0:
                share[link] = room[link] // users[link]
            if users[link] > 0 and share[link] == level:
                # Those before it that stopped are skipped, and so are others' before its first.
                at_member = until[link] - 1
                open_ones = users[link]
                while open_ones > 0:
                    one = members[at_member]
                    at_member -= 1
                    if rate[one] < 0:
                        rate[one] = level
                        open_ones -= 1
                        for at in range(first_link[one], first_link[one + 1]):
                            room[links[at]] -= level
                            users[links[at]] -= 1
                            share[links[at]] = -1
        kept = 0
        for place in range(count):
            link = listed[place]
            if users[link] > 0:
                if share[link] < 0:
                    share[link] = room[link] // users[link]
                listed[kept] = link
                kept += 1
        count = kept


@MachineCode
def drain(  # noqa: C901, PLR0912 - one loop, compiled as one function
    lanes: int,
    order: Counters,
    start: Counters,
    left: Counters,
    first_link: Counters,
    links: Counters,
    capacity: Counters,
    source: Counters,
    finish: Counters,
    rate: Counters,
    rank: Counters,
    active: Counters,
    room: Counters,
    users: Counters,
    share: Counters,
    listed: Counters,
    until: Counters,
    members: Counters,
    at_source: Counters,
) -> tuple[int]:
    """Let all transfers go through.

    Args:
        lanes: how many transfers a source has under way at once, those that began first, where a
            later one has what earlier ones leave; 0 for any number, which share alike.
        order: transfers by when they begin.
        start: tick in which each begins.
        left: pieces of each that are to come; counted down. 0 for one that no link limits.
        first_link: of each in ``links``, and one more.
        links: of all transfers, one behind the other.
        capacity: of each link, in pieces a tick.
        source: of each transfer.
        finish: filled with the tick in which each is through.
        rate: scratch space, one entry a transfer.
        rank: likewise.
        active: likewise.
        room: scratch space, one entry a link.
        users: likewise, as ``share``, ``listed`` and ``until``.
        share: see there.
        listed: see there.
        until: see there.
        members: scratch space, one entry a link of each transfer.
        at_source: scratch space, one entry a source.

    Returns:
        How often rates were found.
    """
    under_way = 0
    begun = 0
    now = 0
    rounds = 0
    while under_way > 0 or begun < order.size:
        rounds += 1
        for link in range(room.size):
            room[link] = capacity[link]
        for each in range(at_source.size):
            at_source[each] = 0
        last_rank = 0
        for place in range(under_way):
            one = active[place]
            rate[one] = 0
            rank[one] = 0
            if lanes > 0:
                rank[one] = at_source[source[one]]
                at_source[source[one]] += 1
                if rank[one] < lanes and rank[one] > last_rank:
                    last_rank = rank[one]
        for turn in range(last_rank + 1):
            for place in range(under_way):
                one = active[place]
                if rank[one] == turn:
                    rate[one] = -1
            fill(
                under_way, active, rate, first_link, links, room, users,
                share, listed, until, members,
            )  # fmt: skip
        next_tick = _NEVER
        if begun < order.size:
            next_tick = start[order[begun]]
        for place in range(under_way):
            one = active[place]
            if rate[one] > 0:
                through = now - (-left[one] // rate[one])
                next_tick = min(next_tick, through)
        kept = 0
        for place in range(under_way):
            one = active[place]
            left[one] -= rate[one] * (next_tick - now)
            if left[one] <= 0:
                finish[one] = next_tick
            else:
                active[kept] = one
                kept += 1
        under_way = kept
        now = next_tick
        while begun < order.size and start[order[begun]] <= now:
            one = order[begun]
            begun += 1
            if left[one] > 0:
                active[under_way] = one
                under_way += 1
            else:
                finish[one] = start[one]
    return (rounds,)


class Transfers:
    """Transfers that begin in known cycles and share links, max-min fair, as long as they last.

    A transfer is under way on all of its links at once, at one rate. How long its head takes over
    the route is no part of this: add ``Route.cycles``.
    """

    def __init__(
        self, capacities: Sequence[float | Fraction | None], *, lanes: int | None = None
    ) -> None:
        """Begin with no transfer.

        Args:
            capacities: bytes a cycle of each link, by its number; None for any number.
            lanes: how many transfers a source has under way at once, as a router's virtual
                channels: those that began first, and a later one has what earlier ones leave. None
                for any number, which share alike.

        Raises:
            ConfigurationError: a link carries nothing, or there is no lane.
        """
        for link, capacity in enumerate(capacities):
            if capacity is not None and not 0 < capacity <= _MOST:
                raise ConfigurationError(
                    f"link {link}: bytes a cycle are {capacity}: expected more than 0 and at "
                    f"most {_MOST}, or None"
                )
        if lanes is not None and lanes < 1:
            raise ConfigurationError(f"lanes is {lanes}: expected at least 1")
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
        """Add a transfer and return its number.

        Args:
            start_cycle: when its first byte is ready.
            size_bytes: at least 1.
            links: which it takes, at least one, each once.
            source: a number from 0 on, the same for all that one injector sends.

        Raises:
            ConfigurationError: it has no link, one that there is not, or no byte.
        """
        if not 1 <= size_bytes <= _MOST_BYTES or start_cycle < 0 or source < 0:
            raise ConfigurationError(
                f"a transfer of {counted(size_bytes, 'byte')} at cycle {start_cycle} from source "
                f"{source}: expected 1 to {_MOST_BYTES} bytes, and a cycle and a source from 0 on"
            )
        known = len(self._capacities)
        if not links or min(links) < 0 or max(links) >= known or len({*links}) < len(links):
            raise ConfigurationError(
                f"a transfer takes links {list(links)}: expected at least one, each once, of "
                f"{known}"
            )
        self._starts.append(int(start_cycle * (1 << TICK_BITS)))
        limiting = [link for link in links if self._capacities[link]]
        self._sizes.append(size_bytes << PIECE_BITS if limiting else 0)
        self._links.extend(limiting)
        self._first_link.append(len(self._links))
        self._sources.append(source)
        return len(self._starts) - 1

    def finish_cycles(self) -> list[float]:
        """Return when the last byte of each transfer is through, in the order they were added."""
        count = len(self._starts)
        if not count:
            return []
        starts = np.array(self._starts, np.int64)
        finish = np.zeros(count, np.int64)
        drain.over(
            order=np.argsort(starts, kind="stable").astype(np.int64),
            start=starts,
            left=np.array(self._sizes, np.int64),
            first_link=np.array(self._first_link, np.int64),
            links=np.array(self._links, np.int64),
            capacity=np.array(self._capacities, np.int64),
            source=np.array(self._sources, np.int64),
            finish=finish,
            rate=np.zeros(count, np.int64),
            rank=np.zeros(count, np.int64),
            active=np.zeros(count, np.int64),
            room=np.zeros(len(self._capacities), np.int64),
            users=np.zeros(len(self._capacities), np.int64),
            share=np.zeros(len(self._capacities), np.int64),
            listed=np.zeros(len(self._capacities), np.int64),
            until=np.zeros(len(self._capacities), np.int64),
            members=np.zeros(len(self._links), np.int64),
            at_source=np.zeros(max(self._sources) + 1, np.int64),
        )(self._lanes)
        cycles: list[float] = (finish / (1 << TICK_BITS)).tolist()
        return cycles
