"""Links shared by the channels of a run, and the arrivals of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fabric.timing.engine.channel import Channel
from fabric.timing.engine.machine_code import Loop
from fabric.timing.engine.tables import Counters, Table
from fabric.timing.network import fair_share as f
from fabric.timing.network.fair_share import NEVER, NONE, LinkWorld, Queued, advance

_FIRST_QUEUED: Final = 2
"""Initial queue length of a flow."""


def _world(flows: int, crossings: int, links: int) -> LinkWorld:
    """Return tables of idle links, and of flows without queues."""
    live, arrived, touched = np.zeros((3, flows), np.int64)
    marked, differing = np.zeros((2, links), np.int64)
    world = LinkWorld(
        flows=Table.zeros(f.Flow, flows), queue=Table.zeros(Queued, 0),
        crossings=Table.zeros(f.Crossing, crossings), links=Table.zeros(f.Link, links),
        members=np.zeros(crossings, np.int64), live=live, arrived=arrived, marked=marked,
        touched=touched, differing=differing, progress=Table.zeros(f.Progress, 1)[0],
    )  # fmt: skip
    world.flows.rows["live_at"] = world.flows.rows["by"] = NONE
    world.links.rows["level"] = world.links.rows["full_at"] = NEVER
    world.progress.next_cycle = NEVER
    return world


NO_LINKS: Final = _world(0, 0, 0)
"""Tables of a run without shared links."""


class Links:
    """Links with max-min fair shares of their bytes per cycle.

    A flow has one transfer under way, on all links of its route, at one rate. Tasks and the
    compiled loop share the tables.

    Attributes:
        ends: the channels of each flow; a route or a tree of routes is one flow.
        world: replaced when queues change their lengths.
    """

    def __init__(self, capacities: Sequence[int | None], routes: Sequence[Sequence[int]]) -> None:
        """Begin without transfers.

        ``capacities`` are bytes per cycle, None for unlimited; each route has a limited link.
        """
        used = sorted({link for route in routes for link in route if capacities[link] is not None})
        place = {link: at for at, link in enumerate(used)}
        limited = [[place[link] for link in route if link in place] for route in routes]
        count = len(routes)
        self.ends: Sequence[Sequence[Channel]] = ()
        numbers = [link for links in limited for link in links]
        world = self.world = _world(count, len(numbers), len(used))
        ends = np.cumsum([*map(len, limited)])
        world.flows.rows["first_crossing"] = ends - [*map(len, limited)]
        world.flows.rows["end_crossing"] = ends
        world.crossings.rows["link"] = numbers
        world.crossings.rows["flow"] = np.repeat(np.arange(count), [*map(len, limited)])
        pieces = 1 << (f.PIECE_BITS - f.TICK_BITS)
        world.links.rows["capacity"] = [(capacities[link] or 0) * pieces for link in used]
        users = np.bincount(numbers, minlength=len(used))
        world.links.rows["first_member"] = np.cumsum(users) - users
        self.reserve(np.full(count, _FIRST_QUEUED))

    def reserve(self, elements: Counters) -> None:
        """Set the queue lengths of idle flows, powers of two."""
        flows = self.world.flows
        flows.rows["base"], flows.rows["mask"] = np.cumsum(elements) - elements, elements - 1
        self._replace_queue(Table.zeros(Queued, int(elements.sum())))

    def connect(self, ends: Sequence[Sequence[Channel]]) -> None:
        self.ends = ends
        self.world.flows.rows["ends"] = [*map(len, ends)]

    def grow(self, flow: int) -> None:
        row, queue = self.world.flows[flow], self.world.queue
        size = row.mask + 1
        # Element n of the flow is at n modulo the size, before and after.
        order = np.arange(row.through, row.through + size)
        more = Table.zeros(Queued, 2 * size)
        more.rows[order & (2 * size - 1)] = queue.rows[row.base + (order & (size - 1))]
        row.base, row.mask = queue.size, 2 * size - 1
        self._replace_queue(Table(Queued, np.concatenate([queue.cells, more.cells])))

    def _replace_queue(self, queue: Table[Queued]) -> None:
        self.world = self.world._replace(queue=queue)
        self._advance: Loop | None = None

    def begin(self, flow: int, cycle: int, size_bytes: int) -> None:
        if not f.has_room(self.world, flow):
            self.grow(flow)
        f.depart(self.world, flow, cycle, size_bytes)

    def advance(self, horizon_cycle: int, quiet_cycle: int) -> None:  # noqa: ARG002 - one event
        if self._advance is None:
            self._advance = advance.over(self.world)
        cycle, count = self._advance()
        self.hand_over(self.world.arrived[:count], cycle)

    def hand_over(self, flows: Counters, cycle: int) -> None:
        """Deliver elements of ``flows`` that arrived at ``cycle``."""
        arrived = self.world.flows.rows["arrived"]
        elements = arrived[flows]
        arrived[flows] = 0
        for number, count in zip(flows.tolist(), elements.tolist(), strict=True):
            for _ in range(count):
                for channel in self.ends[number]:
                    channel.arrive(cycle)

    @property
    def cycle(self) -> int:
        return self.world.progress.now_cycle + bool(self.world.progress.now_tick)

    @property
    def next_cycle(self) -> int:
        return f.next_cycle(self.world)
