"""Links that the channels of a run share: when what was sent on them is through."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

import numpy as np

from fabric.engine.network import Arriving
from fabric.network.carrying import PIECE_BITS, TICK_BITS, begin, go_on

__all__ = ["NO_CYCLE", "UNCOUNTED_TICKS", "Links", "SharedFlow"]

_MOST_BYTES: Final = 2**22
"""Of one transfer; what is larger goes as several, one right behind the other."""

NO_CYCLE: Final = 1 << 63
"""Later than whatever a clock waits for: nothing is under way."""

_TICK: Final = 1 << TICK_BITS

UNCOUNTED_TICKS: Final = 3050
"""Rates are rounded down, and ends are rounded up, so that what would fill its last cycle ends some
ticks later. Of a cycle that has begun, less than this (1 / 86) is not counted."""


class SharedFlow:
    """What one unit sends along one route, or one tree of routes, in the order in which it does.

    Attributes:
        number: its place among all; of flows that would be given the same, it breaks ties.
        waiting: of transfers that are not through yet, the oldest first, the cycle they may begin
            in, their bytes, and whether they are the last of an element.
        resting: nothing of it is under way or to begin.
    """

    __slots__ = ("_ends", "_links", "_sent", "number", "resting", "waiting")

    def __init__(self, links: Links, number: int) -> None:
        """Lead to no channel so far."""
        self.number: Final = number
        self.waiting: Final[deque[tuple[int, int, bool]]] = deque()
        self.resting = True
        self._links: Final = links
        self._ends: Final[list[Arriving]] = []
        self._sent = 0

    def lead_to(self, end: Arriving) -> None:
        """Lead to one more channel; what is sent goes to all."""
        self._ends.append(end)

    def begin(self, cycle: int, size_bytes: int) -> None:
        """See ``Flow``."""
        self._sent += 1
        if self._sent < len(self._ends):
            return
        self._sent = 0
        while size_bytes > _MOST_BYTES:
            self.waiting.append((cycle, _MOST_BYTES, False))
            size_bytes -= _MOST_BYTES
        self.waiting.append((cycle, size_bytes, True))
        if self.resting:
            self.resting = False
            self._links.schedule(self, cycle * _TICK)

    def arrive(self, cycle: int) -> None:
        """Hand over what was under way, in all channels."""
        for end in self._ends:
            end.arrive(cycle)


class Links:
    """Links whose bytes a cycle are shared by all that is under way on them, max-min fair.

    A flow has one transfer under way at a time, on all links of its route at once, at one rate.
    """

    def __init__(self, capacities: Sequence[int | None], routes: Sequence[Sequence[int]]) -> None:
        """Begin with nothing under way.

        Args:
            capacities: bytes a cycle of each link, by its number; None for any number.
            routes: links of each flow, each once; one of them at least is limited.
        """
        used = sorted({link for route in routes for link in route if capacities[link] is not None})
        place = {link: at for at, link in enumerate(used)}
        limited = [[place[link] for link in route if link in place] for route in routes]
        count = len(routes)
        self.flows: Final = tuple(SharedFlow(self, number) for number in range(count))
        self._left = np.zeros(count, np.int64)
        self._ended = np.zeros(count, np.int64)
        self._beginning = np.zeros(count, np.int64)
        rate, active = np.zeros(count, np.int64), np.zeros(count, np.int64)
        pieces = 1 << (PIECE_BITS - TICK_BITS)
        self._go_on = go_on.over(left=self._left, rate=rate, active=active, ended=self._ended)
        self._begin = begin.over(
            left=self._left,
            rate=rate,
            active=active,
            beginning=self._beginning,
            first_link=np.cumsum([0, *map(len, limited)], dtype=np.int64),
            links=np.array([link for route in limited for link in route], np.int64),
            capacity=np.array([(capacities[link] or 0) * pieces for link in used], np.int64),
            room=np.zeros(len(used), np.int64),
            users=np.zeros(len(used), np.int64),
            share=np.zeros(len(used), np.int64),
            listed=np.zeros(len(used), np.int64),
            until=np.zeros(len(used), np.int64),
            members=np.zeros(sum(map(len, limited)), np.int64),
        )
        self._beginnings: Final[list[tuple[int, int]]] = []
        self._under_way = 0
        self._tick = 0
        self._through_tick = NO_CYCLE

    def schedule(self, flow: SharedFlow, tick: int) -> None:
        """Let what ``flow`` sends next begin at ``tick``."""
        heappush(self._beginnings, (tick, flow.number))

    @property
    def next_cycle(self) -> int:
        """See ``Network``."""
        tick = self._next_tick
        return NO_CYCLE if tick == NO_CYCLE else -(-tick // _TICK)

    @property
    def _next_tick(self) -> int:
        beginnings = self._beginnings
        return min(self._through_tick, beginnings[0][0]) if beginnings else self._through_tick

    def advance(self) -> None:
        """See ``Network``."""
        tick = self._next_tick
        count, self._under_way = self._go_on(tick - self._tick, self._under_way)
        self._tick = tick
        through = [self.flows[number] for number in self._ended[:count].tolist()]
        begun = 0
        beginnings = self._beginnings
        arrived = [flow for flow in through if flow.waiting[0][2]]
        for flow in through:
            begun = self._after(flow, tick, begun)
        while beginnings and beginnings[0][0] == tick:
            flow = self.flows[heappop(beginnings)[1]]
            _, size_bytes, _ = flow.waiting[0]
            if size_bytes:
                begun = self._let_begin(flow, size_bytes, begun)
            else:
                # A bare stop takes a slot and no bytes.
                arrived.append(flow)
                begun = self._after(flow, tick, begun)
        self._under_way, ticks = self._begin(begun, self._under_way)
        self._through_tick = tick + ticks if self._under_way else NO_CYCLE
        cycle = (tick + _TICK - 1 - UNCOUNTED_TICKS) // _TICK
        for flow in arrived:
            flow.arrive(cycle)

    def _after(self, flow: SharedFlow, tick: int, begun: int) -> int:
        """Let what ``flow`` sends next begin, now or later; return how many begin now."""
        waiting = flow.waiting
        waiting.popleft()
        if not waiting:
            flow.resting = True
            return begun
        cycle, size_bytes, _ = waiting[0]
        if size_bytes and cycle * _TICK <= tick:
            return self._let_begin(flow, size_bytes, begun)
        self.schedule(flow, max(tick, cycle * _TICK))
        return begun

    def _let_begin(self, flow: SharedFlow, size_bytes: int, begun: int) -> int:
        self._left[flow.number] = size_bytes << PIECE_BITS
        self._beginning[begun] = flow.number
        return begun + 1
