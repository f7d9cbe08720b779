"""The flat model of high-bandwidth memory: channels without banks, independent of addresses.

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
"""The memory stops this long after its last client (the authors' simulator, observed)."""


REQUESTS_PER_CALL: Final = 1 << 22
"""Some 20 milliseconds of the host's time."""

REQUESTS_PER_SECOND: Final = 200_000_000
"""The compiled loop serves 226 to 264 million on one core of a server, measured."""

MOST_REQUESTS: Final = 86_400 * REQUESTS_PER_SECOND
"""The most requests of one tile, which take a day of the host's time."""


class _Client(Row):
    next_bundle: int  # The cycle in which its next requests are handed over
    left: int  # Requests not yet handed over
    ready: int  # When its latest request is ready


class _World(NamedTuple):
    """State of the loop."""

    free: Counters  # by channel, the first idle cycle
    clients: Table[_Client]
    active: Counters  # scratch space
    done: Counters  # clients with complete bursts


class FlatMemory:
    """Memory channels of fixed-size requests behind one port per client.

    Attributes:
        requests_per_call: the compiled loop returns after this many requests.
    """

    def __init__(
        self, description: FlatDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        self._description: Final = description
        self._clients: Final = [*readers, *writers]
        self._port: Final = {unit.index: port for port, unit in enumerate(self._clients)}
        clients = len(self._clients)
        free = np.zeros(description.channels, np.int64)
        active, done = np.zeros((2, clients), np.int64)
        self._world: Final = _World(free, Table.zeros(_Client, clients), active, done)
        self._advance: Final = advance.over(self._world)
        self._asked = [0] * clients
        self._offset = 0
        self._bursts = 0
        self.requests = 0
        self.silent_until = _NEVER
        self.requests_per_call = REQUESTS_PER_CALL

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""
        return self._bursts > 0

    @property
    def bytes_moved(self) -> int:
        """Bytes of all requests that the memory has taken, whole requests each."""
        taken = self.requests - int(self._world.clients.rows["left"].sum())
        return taken * self._description.request_bytes

    @property
    def final_cycle(self) -> int | None:
        """The cycle in which the memory stops; None until all its clients have ended."""
        if not all(unit.finished for unit in self._clients):
            return None
        return max(unit.now for unit in self._clients) + SHUTDOWN_CYCLES

    def served(self, unit: Unit) -> int:
        """Return how many requests of the burst under way have been taken."""
        port = self._port[unit.index]
        return self._asked[port] - self._world.clients[port].left

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock.

        Raises:
            Refusal: it would take more than a day to simulate.
        """
        requests = burst.requests(self._description.request_bytes)
        if requests > MOST_REQUESTS:
            raise Refusal(_too_long(burst, requests))
        port = self._port[unit.index]
        client = self._world.clients[port]
        client.next_bundle = unit.now + 1
        client.left = self._asked[port] = requests
        client.ready = 0
        self._bursts += 1
        self.requests += requests
        description = self._description
        bundles = -(-requests // description.requests_per_bundle)
        answer_cycles = description.startup_cycles + description.latency_cycles
        # A bundle a cycle, and an answer that is seen a cycle after it has come.
        self.silent_until = min(self.silent_until, unit.now + 1 + bundles + answer_cycles)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance to the first completion, or to ``horizon_cycle``."""
        description = self._description
        finished, cycle = 0, 0
        while cycle <= horizon_cycle:
            # Between two calls Python looks whether there was a signal.
            self._offset, finished, cycle, horizon_cycle, self.silent_until = self._advance(
                horizon_cycle,
                self.requests_per_call,
                finished,
                self._offset,
                description.requests_per_bundle,
                description.startup_cycles + description.latency_cycles,
                description.initiation_interval_cycles,
            )
        self._bursts -= finished
        done = []
        for port in sorted(self._world.done[:finished].tolist()):
            unit = self._clients[port]
            unit.answered(self._world.clients[port].ready + 1)
            done.append(unit)
        return done


def _too_long(burst: Burst, requests: int) -> str:
    days = requests // (REQUESTS_PER_SECOND * 86_400)
    return (
        f"a tile of {counted(burst.rows, 'row')} of {counted(burst.row_bytes, 'byte')} takes "
        f"{counted(requests, 'request')} to the HBM, {counted(days, 'day')} of simulation at "
        f"{REQUESTS_PER_SECOND:,} requests a second: expected at most {MOST_REQUESTS:,}"
    )


_NEVER = 1 << 62


@MachineCode
def advance(  # noqa: C901 - one loop, compiled as one function
    w: _World,
    horizon: int,
    budget: int,
    finished: int,
    offset: int,
    bundle: int,
    answer: int,
    interval: int,
) -> tuple[int, int, int, int, int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It may return earlier, after about ``budget`` requests, so that signals are handled; call it
    again with its results. ``done`` is filled with ``finished`` clients. ``bundle`` counts
    requests, ``answer`` and ``interval`` cycles.

    Returns:
        The new offset, the number of finished clients, the first unprocessed cycle, the last one to
        process, and a cycle before which no other burst is complete.
    """
    channels = w.free.size
    count = 0
    cycle = horizon + 1
    for number in range(w.clients.size):
        client = w.clients[number]
        if client.left > 0:
            w.active[count] = number
            count += 1
            cycle = min(cycle, client.next_bundle)
    turns = budget // max(1, count * bundle) + 1
    while count > 0 and cycle <= horizon and turns > 0:
        turns -= 1
        step = 0
        kept = 0
        following = horizon + 1
        for slot in range(count):
            number = w.active[slot]
            client = w.clients[number]
            if client.next_bundle <= cycle:
                requests = min(bundle, client.left)
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
                    w.done[finished] = number
                    finished += 1
                    horizon = min(horizon, ready + 1)
                    continue
            following = min(following, client.next_bundle)
            w.active[kept] = number
            kept += 1
        count = kept
        cycle = following
    silent_until = _NEVER
    for slot in range(count):
        client = w.clients[w.active[slot]]
        bundles = -(-client.left // bundle)
        silent_until = min(silent_until, client.next_bundle + bundles + answer)
    return offset, finished, cycle, horizon, silent_until
