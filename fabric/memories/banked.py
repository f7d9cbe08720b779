"""HBM with banks: which row is open, what else is on the bus and who came first decide.

Its loop is compiled (``banked_kernel``) and stops at the first completed burst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.engine.memory_counters import BusCycles, ChannelTraffic, ClientTraffic, MemoryCounters
from fabric.memories import banked_columns as c
from fabric.memories.banked_kernel import advance, settle
from fabric.memories.banked_tables import Tables, table
from fabric.telling.errors import Refusal

if TYPE_CHECKING:
    from fabric.engine.off_chip import Burst
    from fabric.engine.unit import Unit
    from fabric.hardware.banked import BankedDescription

__all__ = ["BankedMemory"]

REQUESTS_PER_CALL: Final = 1 << 17
"""Some 20 milliseconds of the host's time."""

MOST_REQUESTS: Final = 1 << 28
"""Of one tile: more than ten gigabytes of the host's memory while they wait."""


class BankedMemory:
    """Channels with banks behind one port per client.

    Attributes:
        requests: handed over so far.
        requests_per_call: after about so many the loop comes back from compiled code.
        log: the latest commands; see ``banked_columns``. None are kept where it has no row.
    """

    def __init__(
        self,
        description: BankedDescription,
        readers: list[Unit],
        writers: list[Unit],
        *,
        logged: int = 0,
    ) -> None:
        """Serve ``readers`` before ``writers`` in every cycle, each in the order given.

        Args:
            description: of the memory.
            readers: units that read.
            writers: units that write.
            logged: so many commands are kept.
        """
        self._description: Final = description
        self._clients: Final = [*readers, *writers]
        self._port: Final = {unit.index: port for port, unit in enumerate(self._clients)}
        made = Tables(description, len(self._clients), logged)
        self._state: Final = made.state
        self._queues = made.queues
        self._ports: Final = made.clients
        self._channels: Final = made.channels
        self._done: Final = made.done
        self.log: Final = made.log
        self._link()
        self._asked = [0] * len(self._clients)
        self._bursts = 0
        self.requests = 0
        self.requests_per_call = REQUESTS_PER_CALL

    def _link(self) -> None:
        """Let the loop work on the tables as they are."""
        self._advance = advance.over(m=self._state, queues=self._queues)

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""
        return self._bursts > 0

    @property
    def bytes_moved(self) -> int:
        """Bytes of all requests that the memory has taken, whole requests each."""
        taken = self.requests - int(self._ports[:, c.LEFT].sum())
        return taken * self._description.request_bytes

    final_cycle = None
    """It does not outlast its clients."""

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way have been taken."""
        port = self._port[unit.index]
        return self._asked[port] - int(self._ports[port, c.LEFT])

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock.

        Raises:
            Refusal: it has more requests than the host has room for.
        """
        request_bytes = self._description.request_bytes
        requests = burst.requests(request_bytes)
        if requests > MOST_REQUESTS:
            raise Refusal(
                f"a tile of {burst.rows:,} rows of {burst.row_bytes:,} bytes takes {requests:,} "
                f"requests to the HBM: expected at most {MOST_REQUESTS:,}"
            )
        port = self._port[unit.index]
        row = self._ports[port]
        row[c.NEXT_BUNDLE] = unit.now + 1
        row[c.LEFT] = row[c.OPEN] = self._asked[port] = requests
        row[c.READY] = 0
        row[c.WRITE] = burst.write
        row[c.ROW_ADDRESS] = burst.address
        row[c.PITCH] = burst.pitch_bytes
        row[c.ROW_REQUESTS] = -(-burst.row_bytes // request_bytes)
        row[c.IN_ROW] = 0
        self._bursts += 1
        self.requests += requests

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Go on to the first completion, or up to ``horizon_cycle``."""
        state = self._state
        while state[c.CYCLE] < horizon_cycle:
            # Between two calls Python looks whether there was a signal.
            (horizon_cycle,) = self._advance(horizon_cycle, self.requests_per_call)
            if state[c.SHORT]:
                self._grow()
        ports = sorted(self._done[: state[c.FINISHED]].tolist())
        state[c.FINISHED] = 0
        self._bursts -= len(ports)
        done = []
        for port in ports:
            unit = self._clients[port]
            unit.answered(int(self._ports[port, c.READY]) + 1)
            done.append(unit)
        return done

    def _grow(self) -> None:
        """Make room for twice as many requests that wait outside of a window."""
        room = int(self._state[c.ROOM])
        old = self._queues.reshape(-1, room, c.QUEUED_COLUMNS)
        new = np.zeros((len(old), 2 * room, c.QUEUED_COLUMNS), np.int64)
        heads = self._channels[:, [c.READ_HEAD, c.WRITE_HEAD]].reshape(-1)
        for queue, head in enumerate(heads.tolist()):
            new[queue, :room] = np.roll(old[queue], -(head % room), axis=0)
        self._channels[:, [c.READ_HEAD, c.WRITE_HEAD]] = 0
        self._queues = new.reshape(-1)
        self._state[c.ROOM] = 2 * room
        self._state[c.SHORT] = 0
        self._link()

    def counters(self) -> MemoryCounters:
        """Return what became of the bandwidth; cycles up to the end of a period of 32."""
        # The last burst that is written is on the bus for longer than its command takes.
        latest = int(self._ports[:, c.READY].max(initial=0)) + int(self._state[c.BURST_CYCLES])
        cycle = -(-max(latest, int(self._state[c.CYCLE])) // c.WORD) * c.WORD
        # Settled is a copy: commands of a run that goes on may still come in cycles before.
        state = self._state.copy()
        settle.over(m=state)(cycle)
        channels = table(state, c.CHANNELS_AT, int(state[c.CHANNELS]), c.CHANNEL_COLUMNS)
        period_bits = int(state[c.PERIOD_BITS])
        periods = table(state, c.PERIODS_AT, -(-cycle >> period_bits) or 1, c.FATES)
        return MemoryCounters(
            tuple(_channel(row) for row in channels.tolist()),
            tuple(_client(*each) for each in zip(self._clients, self._ports.tolist(), strict=True)),
            1 << period_bits,
            tuple(BusCycles(*row) for row in periods.tolist()),
        )


def _channel(row: list[int]) -> ChannelTraffic:
    return ChannelTraffic(
        row[c.SERVED_READS],
        row[c.SERVED_WRITES],
        row[c.ROW_HITS],
        row[c.ROW_MISSES],
        row[c.ROW_CONFLICTS],
        BusCycles(*row[c.BUS : c.BUS + c.FATES]),
    )


def _client(unit: Unit, row: list[int]) -> ClientTraffic:
    return ClientTraffic(
        unit.index,
        row[c.HITS] + row[c.MISSES] + row[c.CONFLICTS],
        row[c.HITS],
        row[c.MISSES],
        row[c.CONFLICTS],
        row[c.QUEUED],
        row[c.WAITED],
        row[c.SERVED],
    )
