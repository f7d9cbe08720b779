"""Links shared by the channels of a run, and the arrivals of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fabric.timing.engine.clock import Arriving
from fabric.timing.engine.machine_code import Counters, Loop
from fabric.timing.network import columns as n
from fabric.timing.network.carrying import begin, go_on, next_cycle

NO_CYCLE: Final = 1 << 63
"""A cycle after all others: nothing is under way."""

_FIRST_WAITING: Final = 2
"""Initial queue length of a flow."""


NO_LINKS: Final[Mapping[str, Counters]] = {
    name: np.full(n.NOTES, n.NEVER, np.int64)
    for name in (
        "flows",
        "waiting",
        "taken",
        "links",
        "members",
        "live",
        "arrived",
        "marked",
        "touched",
        "differing",
        "notes",
    )
}
"""Arrays of a run without shared links."""


class SharedFlow:
    """Transfers of one unit along one route or tree of routes, in order."""

    __slots__ = ("_links", "ends", "number")

    def __init__(self, links: Links, number: int) -> None:
        self.number: Final = number
        self.ends: Final[list[Arriving]] = []
        self._links: Final = links

    def lead_to(self, end: Arriving) -> None:
        """Add a channel."""
        self.ends.append(end)
        self._links.count_end(self.number)

    def begin(self, cycle: int, size_bytes: int) -> None:
        """See ``Flow``."""
        self._links.begin(self.number, cycle, size_bytes)


class Links:
    """Links with max-min fair shares of their bytes per cycle.

    A flow has one transfer under way, on all links of its route, at one rate. Tasks and the
    compiled loop share the arrays.

    Attributes:
        flows: one for each route.
        waiting: queued elements; see ``columns``. Replaced by ``grow``.
    """

    def __init__(self, capacities: Sequence[int | None], routes: Sequence[Sequence[int]]) -> None:
        """Begin without transfers.

        ``capacities`` are bytes per cycle, None for unlimited; each route has a limited link.
        """
        used = sorted({link for route in routes for link in route if capacities[link] is not None})
        place = {link: at for at, link in enumerate(used)}
        limited = [[place[link] for link in route if link in place] for route in routes]
        count = len(routes)
        self.flows: Final = tuple(SharedFlow(self, number) for number in range(count))
        self.next_cycle = NO_CYCLE
        flows = self._flows = np.zeros((count, n.FLOW_COLUMNS), np.int64)
        ends = np.cumsum([len(links) for links in limited])
        flows[:, n.FIRST_LINK], flows[:, n.END_LINK] = ends - [*map(len, limited)], ends
        flows[:, [n.LIVE_AT, n.BY]] = n.NOBODY
        taken = np.zeros((int(ends[-1]), n.TAKEN_COLUMNS), np.int64)
        taken[:, n.LINK] = [link for links in limited for link in links]
        taken[:, n.FLOW] = np.repeat(np.arange(count), [*map(len, limited)])
        links = np.zeros((len(used), n.LINK_COLUMNS), np.int64)
        pieces = 1 << (n.PIECE_BITS - n.TICK_BITS)
        links[:, n.CAPACITY] = [(capacities[link] or 0) * pieces for link in used]
        users = np.bincount(taken[:, n.LINK], minlength=len(used))
        links[:, n.FIRST_MEMBER] = np.cumsum(users) - users
        links[:, [n.LEVEL, n.FULL_AT]] = n.NEVER
        self._notes = np.zeros(n.NOTES, np.int64)
        self._notes[n.NEXT_CYCLE] = n.NEVER
        self._arrived = np.zeros(count, np.int64)
        self._fixed = {
            "flows": flows.reshape(-1),
            "taken": taken.reshape(-1),
            "links": links.reshape(-1),
            "members": np.zeros(len(taken), np.int64),
            "live": np.zeros(count, np.int64),
            "arrived": self._arrived,
            "marked": np.zeros(len(used), np.int64),
            "touched": np.zeros(count, np.int64),
            "differing": np.zeros(len(used), np.int64),
            "notes": self._notes,
        }
        self.reserve(np.full(count, _FIRST_WAITING))

    @property
    def arrays(self) -> Mapping[str, Counters]:
        """Arrays for ``carrying``, valid until ``grow``."""
        return {**self._fixed, "waiting": self.waiting.reshape(-1)}

    def reserve(self, elements: Counters) -> None:
        """Set the queue lengths of idle flows, powers of two."""
        self._flows[:, n.BASE], self._flows[:, n.MASK] = (
            np.cumsum(elements) - elements,
            elements - 1,
        )
        self.waiting = np.zeros((int(elements.sum()), n.WAITING_COLUMNS), np.int64)
        self._loops: tuple[Loop, Loop] | None = None

    def count_end(self, flow: int) -> None:
        """Count one more channel of a flow."""
        self._flows[flow, n.ENDS] += 1

    def grow(self, flow: int) -> None:
        """Double the queue of a flow."""
        row = self._flows[flow]
        base, size = int(row[n.BASE]), int(row[n.MASK]) + 1
        # In the order in which they came, from a multiple of the size on.
        order = np.arange(row[n.THROUGH], row[n.THROUGH] + size)
        more = np.zeros((2 * size, n.WAITING_COLUMNS), np.int64)
        more[order & (2 * size - 1)] = self.waiting[base + (order & (size - 1))]
        row[n.BASE], row[n.MASK] = len(self.waiting), 2 * size - 1
        self.waiting = np.concatenate([self.waiting, more])
        self._loops = None

    def begin(self, flow: int, cycle: int, size_bytes: int) -> None:
        """Send ``size_bytes`` in a flow; see ``Flow``."""
        while True:
            begun, next_cycle = self._linked[0](flow, cycle, size_bytes)
            if begun:
                self._note(next_cycle)
                return
            self.grow(flow)

    def advance(self, horizon_cycle: int) -> None:  # noqa: ARG002 - units do what comes of it
        """See ``Network``."""
        cycle, count, next_cycle = self._linked[1]()
        self._note(next_cycle)
        self.hand_over(self._arrived[:count], cycle)

    def hand_over(self, flows: Counters, cycle: int) -> None:
        """Deliver elements of these flows that arrived at ``cycle``."""
        elements = self._flows[flows, n.ARRIVED]
        self._flows[flows, n.ARRIVED] = 0
        for number, count in zip(flows.tolist(), elements.tolist(), strict=True):
            for _ in range(count):
                for end in self.flows[number].ends:
                    end.arrive(cycle)

    @property
    def cycle(self) -> int:
        """The current cycle."""
        return self._notes.item(n.NOW_CYCLE) + bool(self._notes[n.NOW_TICK])

    def see(self) -> None:
        """Update the next event after another loop has advanced the links."""
        self._note(next_cycle(self._notes))

    def _note(self, cycle: int) -> None:
        self.next_cycle = NO_CYCLE if cycle == n.NEVER else int(cycle)

    @property
    def _linked(self) -> tuple[Loop, Loop]:
        if self._loops is None:
            arrays = self.arrays
            names = "flows", "waiting", "live", "notes"
            self._loops = begin.over(**{name: arrays[name] for name in names}), go_on.over(**arrays)
        return self._loops
