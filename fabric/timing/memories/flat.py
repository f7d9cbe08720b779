"""The flat model of high-bandwidth memory: no banks, and cycles do not depend on addresses.

The inner loop is compiled: tens of millions of requests a run are normal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.messages.errors import Refusal
from fabric.messages.text import counted
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Burst
    from fabric.graph.hardware.description import FlatDescription
    from fabric.timing.engine.unit import Unit

SHUTDOWN_CYCLES: Final = 3
"""The memory stops this long after its last client, as in the authors' simulator."""

REQUESTS_PER_CALL: Final = 1 << 22
"""About 20 milliseconds of the host's time."""

REQUESTS_PER_SECOND: Final = 200_000_000
"""The compiled loop serves 226 to 264 million requests a second on one core of a server."""

MOST_REQUESTS: Final = 86_400 * REQUESTS_PER_SECOND
"""The most requests of one tile, which take a day of the host's time."""


class Client(Row):
    """The port of one client."""

    next_bundle: int  # The cycle in which its next requests are handed over
    left: int  # Requests not yet handed over
    ready: int  # The cycle in which all requests handed over so far are ready
    asked: int  # Requests of its latest burst
    stage: int  # Its number in the compiled loop; negative for a task


class Progress(Row):
    """The description, and the state of all ports."""

    request_bytes: int
    bundle: int  # Requests of a client in a cycle
    answer_cycles: int
    interval_cycles: int
    offset: int
    requests: int
    silent_until: int  # No burst under way completes before this cycle
    finished: int
    seen_cycle: int  # The cycle in which a client sees the first finished burst, or NEVER
    now_cycle: int  # The latest seen_cycle, in the compiled loop


class FlatWorld(NamedTuple):
    """State of the loop."""

    free: Counters  # by channel, the first idle cycle
    clients: Table[Client]
    active: Counters  # scratch space
    done: Counters  # clients with finished bursts
    progress: Progress


NEVER: Final = 1 << 62
"""A cycle that no run reaches."""


def _world(clients: int, channels: int) -> FlatWorld:
    active, done = np.zeros((2, clients), np.int64)
    table, progress = Table.zeros(Client, clients), Table.zeros(Progress, 1)[0]
    table.rows["stage"] = -1
    progress.silent_until = progress.seen_cycle = NEVER
    return FlatWorld(np.zeros(channels, np.int64), table, active, done, progress)


NO_MEMORY: Final = _world(0, 0)
"""Tables for a compiled loop without a flat memory."""


class FlatMemory:
    """Memory channels that serve requests of one size. Each client has one port.

    Tasks and the compiled loop use the same tables.

    Attributes:
        requests_per_call: ``advance`` returns after about this many requests, so that Python can
            handle signals.
    """

    def __init__(
        self, description: FlatDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        self._clients: Final = [*readers, *writers]
        self._port: Final = {unit.index: port for port, unit in enumerate(self._clients)}
        self.world: Final = _world(len(self._clients), description.channels)
        progress = self.world.progress
        self._progress: Final = progress
        progress.request_bytes = description.request_bytes
        progress.bundle = description.requests_per_bundle
        progress.answer_cycles = description.startup_cycles + description.latency_cycles
        progress.interval_cycles = description.initiation_interval_cycles
        self._advance: Final = advance.over(self.world)
        self.requests_per_call = REQUESTS_PER_CALL

    @property
    def pending(self) -> bool:
        return self._progress.silent_until < NEVER

    @property
    def bytes_moved(self) -> int:
        taken = self._progress.requests - int(self.world.clients.rows["left"].sum())
        return taken * self._progress.request_bytes

    @property
    def final_cycle(self) -> int | None:
        """The cycle in which the memory stops; None until all its clients have ended."""
        if not all(unit.finished for unit in self._clients):
            return None
        return max(unit.now for unit in self._clients) + SHUTDOWN_CYCLES

    def connect(self, unit: Unit, stage: int) -> int:
        """Let the compiled loop answer ``unit``; return its port, or -1 if it has none."""
        port = self._port.get(unit.index, -1)
        if port >= 0:
            self.world.clients[port].stage = stage
        return port

    def served(self, unit: Unit) -> int:
        client = self.world.clients[self._port[unit.index]]
        return client.asked - client.left

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock; refuse one that takes more than a day to simulate."""
        requests = burst.requests(self._progress.request_bytes)
        if requests > MOST_REQUESTS:
            days = requests // (REQUESTS_PER_SECOND * 86_400)
            raise Refusal(
                f"a tile of {counted(burst.rows, 'row')} of {counted(burst.row_bytes, 'byte')} "
                f"takes {counted(requests, 'request')} to the HBM, {counted(days, 'day')} of "
                f"simulation at {REQUESTS_PER_SECOND:,} requests a second: expected at most "
                f"{MOST_REQUESTS:,} requests"
            )
        begin(self.world, self._port[unit.index], unit.now, requests)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        if horizon_cycle < self._progress.silent_until:
            return []
        # Between two calls Python handles signals.
        while self._advance(horizon_cycle, self.requests_per_call)[0] < 0:
            pass
        return self.answered(self._progress.finished)

    def answered(self, count: int) -> list[Unit]:
        """Answer the first ``count`` clients in ``done``, and return their units."""
        ports = sorted(self.world.done[:count].tolist())
        for port in ports:
            self._clients[port].answered(self.world.clients[port].ready + 1)
        self._progress.finished, self._progress.seen_cycle = 0, NEVER
        return [self._clients[port] for port in ports]


def begin(w: FlatWorld, port: int, cycle: int, requests: int) -> None:
    client, progress = w.clients[port], w.progress
    client.next_bundle = cycle + 1
    client.left = client.asked = requests
    client.ready = 0
    progress.requests += requests
    note_silence(progress, client)


def note_silence(progress: Progress, client: Client) -> None:
    """Note the earliest cycle in which the burst completes: one bundle leaves per cycle."""
    seen = client.next_bundle - (-client.left // progress.bundle) + progress.answer_cycles
    progress.silent_until = min(progress.silent_until, seen)


@MachineCode
def advance(w: FlatWorld, horizon: int, budget: int) -> tuple[int]:
    return (advance_flat(w, horizon, budget),)


def advance_flat(w: FlatWorld, horizon: int, budget: int) -> int:  # noqa: C901 - one loop
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    Returns:
        The rest of ``budget``, in requests. If it is negative, the function has returned early so
        that Python can handle signals, and has to be called again.
    """
    channels = w.free.size
    progress = w.progress
    bundle, answer, interval = progress.bundle, progress.answer_cycles, progress.interval_cycles
    offset = progress.offset
    horizon = min(horizon, progress.seen_cycle)
    count = 0
    cycle = horizon + 1
    for number in range(w.clients.size):
        client = w.clients[number]
        if client.left > 0:
            w.active[count] = number
            count += 1
            cycle = min(cycle, client.next_bundle)
    while count > 0 and cycle <= horizon and budget >= 0:
        step = 0
        kept = 0
        following = horizon + 1
        for slot in range(count):
            number = w.active[slot]
            client = w.clients[number]
            if client.next_bundle <= cycle:
                requests = min(bundle, client.left)
                budget -= requests
                ready = client.ready
                for _ in range(requests):
                    start = max(w.free[offset], cycle + 1)
                    w.free[offset] = start + interval
                    ready = max(ready, start + answer)
                    step += 1
                    if step == channels:
                        step = 0
                    offset += step
                    if offset >= channels:
                        offset -= channels
                client.ready = ready
                client.left -= requests
                client.next_bundle = cycle + 1
                if client.left == 0:
                    w.done[progress.finished] = number
                    progress.finished += 1
                    horizon = min(horizon, ready + 1)
                    continue
            following = min(following, client.next_bundle)
            w.active[kept] = number
            kept += 1
        count = kept
        cycle = following
    progress.offset = offset
    if progress.finished > 0:
        progress.seen_cycle = horizon
    progress.silent_until = NEVER
    for slot in range(count):
        note_silence(progress, w.clients[w.active[slot]])
    return budget
