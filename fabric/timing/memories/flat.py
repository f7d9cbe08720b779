"""The flat model of high-bandwidth memory: channels without banks, independent of addresses.

The inner loop is compiled: tens of millions of requests a run are normal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.wording import counted
from fabric.timing.engine.machine_code import Counters, MachineCode

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Burst
    from fabric.graph.hardware.description import FlatDescription
    from fabric.timing.engine.unit import Unit

SHUTDOWN_CYCLES: Final = 3
"""The memory stops this long after its last client (the authors' simulator, observed)."""


REQUESTS_PER_CALL: Final = 1 << 22
"""Some 20 milliseconds of the host's time."""

REQUESTS_PER_SECOND: Final = 200_000_000
"""What the compiled loop serves on one core of a server; measured: 226 to 264 million."""

MOST_REQUESTS: Final = 86_400 * REQUESTS_PER_SECOND
"""Of one tile: a day of the host's time."""


class FlatMemory:
    """Memory channels of fixed-size requests behind one port per client.

    Attributes:
        requests_per_call: after that many the compiled loop returns.
    """

    def __init__(
        self, description: FlatDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        self._description: Final = description
        self._clients: Final = [*readers, *writers]
        self._port: Final = {unit.index: port for port, unit in enumerate(self._clients)}
        clients = len(self._clients)
        self._free = np.zeros(description.channels, np.int64)
        self._next_bundle = np.zeros(clients, np.int64)
        self._left = np.zeros(clients, np.int64)
        self._last_ready = np.zeros(clients, np.int64)
        self._done = np.zeros(clients, np.int64)
        self._advance = advance.over(
            free=self._free,
            next_bundle=self._next_bundle,
            left=self._left,
            last_ready=self._last_ready,
            active=np.zeros(clients, np.int64),
            done=self._done,
        )
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
        taken = self.requests - int(self._left.sum())
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
        return self._asked[port] - int(self._left[port])

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock.

        Raises:
            Refusal: it would take more than a day to simulate.
        """
        requests = burst.requests(self._description.request_bytes)
        if requests > MOST_REQUESTS:
            raise Refusal(_too_long(burst, requests))
        port = self._port[unit.index]
        self._next_bundle[port] = unit.now + 1
        self._left[port] = self._asked[port] = requests
        self._last_ready[port] = 0
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
        for port in sorted(self._done[:finished].tolist()):
            unit = self._clients[port]
            unit.answered(int(self._last_ready[port]) + 1)
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
    horizon: int,
    budget: int,
    finished: int,
    offset: int,
    free: Counters,
    next_bundle: Counters,
    left: Counters,
    last_ready: Counters,
    active: Counters,
    done: Counters,
    bundle: int,
    answer: int,
    interval: int,
) -> tuple[int, int, int, int, int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It may return earlier, after about ``budget`` requests, so that signals are handled; call it
    again with its results. ``free`` has, by channel, the first idle cycle; by client,
    ``next_bundle`` is the cycle of its next bundle, ``left`` its requests not yet handed over and
    ``last_ready`` when its latest request is ready. ``done`` is filled with ``finished`` clients.
    ``bundle`` counts requests, ``answer`` and ``interval`` cycles.

    Returns:
        The new offset, the number of finished clients, the first unprocessed cycle, the last one to
        process, and a cycle before which no other burst is complete.
    """
    channels = free.size
    count = 0
    cycle = horizon + 1
    for client in range(left.size):
        if left[client] > 0:
            active[count] = client
            count += 1
            cycle = min(cycle, next_bundle[client])
    turns = budget // max(1, count * bundle) + 1
    while count > 0 and cycle <= horizon and turns > 0:
        turns -= 1
        step = 0
        kept = 0
        following = horizon + 1
        for slot in range(count):
            client = active[slot]
            if next_bundle[client] <= cycle:
                requests = min(bundle, left[client])
                ready = last_ready[client]
                for _ in range(requests):
                    start = max(free[offset], cycle + 1)
                    free[offset] = start + interval
                    ready = max(ready, start + answer)
                    step += 1
                    if step == channels:
                        step = 0
                    offset += step
                    if offset >= channels:
                        offset -= channels
                last_ready[client] = ready
                left[client] -= requests
                next_bundle[client] = cycle + 1
                if left[client] == 0:
                    done[finished] = client
                    finished += 1
                    horizon = min(horizon, ready + 1)
                    continue
            following = min(following, next_bundle[client])
            active[kept] = client
            kept += 1
        count = kept
        cycle = following
    silent_until = _NEVER
    for slot in range(count):
        client = active[slot]
        bundles = -(-left[client] // bundle)
        silent_until = min(silent_until, next_bundle[client] + bundles + answer)
    return offset, finished, cycle, horizon, silent_until
