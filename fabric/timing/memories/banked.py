"""HBM with banks: cycles depend on open rows, on the bus, and on the order of requests.

The loop is compiled (``banked_kernel``) and stops at the first completed burst. A client submits
one tile at a time. If the memory fetches ahead, a tile is fetched in parts, as soon as there is
room for requests. A client has one port for each part that may be under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import numpy as np

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.messages.errors import ConfigurationError, Refusal
from fabric.messages.text import counted
from fabric.timing.engine.off_chip import BusCycles, ChannelTraffic, ClientTraffic, MemoryCounters
from fabric.timing.engine.tables import Table
from fabric.timing.engine.unit import Unit
from fabric.timing.memories.banked_kernel import advance, settle
from fabric.timing.memories.banked_rows import (
    FATES,
    PORT_MASK,
    ROWS_MET,
    Command,
    Port,
    Queued,
    World,
)
from fabric.timing.memories.banked_tables import world_of

REQUESTS_PER_CALL: Final = 1 << 17
"""Some 50 milliseconds of the host's time."""

_GROWTH: Final = 8
"""Factor by which full queues grow."""

MOST_REQUESTS: Final = 1 << 28
"""The most requests of one tile. More would take over ten gigabytes of the host's memory."""


class BankedMemory:
    """Channels with banks behind one port per client, or several if it fetches ahead.

    Attributes:
        requests_per_call: the compiled loop returns after about this many requests.
        log: the latest commands; empty if no commands are kept.
    """

    final_cycle: Final = None

    def __init__(
        self,
        description: BankedDescription,
        readers: list[Unit],
        writers: list[Unit],
        *,
        logged: int = 0,
    ) -> None:
        """Serve ``readers`` before ``writers`` in every cycle, and keep ``logged`` commands."""
        self._description: Final = description
        # A reader's submitted tile has one part, or two if room for requests ended within the tile.
        # Each part that is fetched ahead has at least one request.
        ahead_requests = description.prefetch_requests
        width = ahead_requests + 2 if ahead_requests else 1
        widths = [width] * len(readers) + [1] * len(writers)
        count = sum(widths)
        if count > PORT_MASK:
            raise ConfigurationError(
                f"prefetch_requests is {description.prefetch_requests} in a program with "
                f"{counted(len(readers), 'reading operator')}: expected at most "
                f"{(PORT_MASK - len(writers)) // len(readers) - 2:,}"
            )
        self._world = world_of(description, count, logged)
        ports = self._world.ports
        self._clients: Final = [
            Client(unit, range(end - width, end), ports, description)
            for unit, width, end in zip(
                (*readers, *writers), widths, accumulate(widths), strict=True
            )
        ]
        self._of_unit: Final = {client.unit.index: client for client in self._clients}
        self._of_port: Final = [client for client in self._clients for _ in client.ports]
        self.log: Final[Table[Command]] = self._world.log
        self._advance = advance.over(self._world)
        self._bursts = 0
        self._fetched: list[Client] = []
        self.requests_per_call = REQUESTS_PER_CALL

    @property
    def pending(self) -> bool:
        return self._bursts > 0

    @property
    def requests(self) -> int:
        return sum(client.requests for client in self._clients)

    @property
    def bytes_moved(self) -> int:
        taken = self.requests - int(self._world.ports.rows["left"].sum())
        return taken * self._description.request_bytes

    @property
    def prefetches(self) -> bool:
        return self._description.prefetch_requests > 0

    def announce(self, unit: Unit, bursts: Iterator[Burst]) -> None:
        self._of_unit[unit.index].announce(bursts)

    def served(self, unit: Unit) -> int:
        tile = self._of_unit[unit.index].submitted
        if tile is None:
            return 0
        return tile.requests - int(self._world.ports.rows["left"][tile.ports].sum())

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock; refuse too many requests, and unannounced bursts."""
        requests = burst.requests(self._description.request_bytes)
        if requests > MOST_REQUESTS:
            raise Refusal(
                f"a tile of {counted(burst.rows, 'row')} of "
                f"{counted(burst.row_bytes, 'byte')} takes "
                f"{counted(requests, 'request')} to the HBM: expected at most {MOST_REQUESTS:,}"
            )
        client = self._of_unit[unit.index]
        client.submit(burst, requests)
        self._bursts += 1
        if client.answer_cycle() is not None:
            self._fetched.append(client)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        done: dict[Client, int] = {}
        # A prefetched tile is answered after the bursts that complete in earlier cycles.
        fetched = _answers(self._fetched)
        horizon_cycle = min((horizon_cycle, *fetched.values()))
        while not done and self._world.memory.cycle < horizon_cycle:
            done = _answers(self._of_port[port] for port in self._completed(horizon_cycle))
        done |= {client: cycle for client, cycle in fetched.items() if cycle <= horizon_cycle}
        self._fetched = [client for client in self._fetched if client not in done]
        self._bursts -= len(done)
        clients = sorted(done, key=lambda client: client.ports.start)
        for client in clients:
            client.unit.answered(done[client])
            client.submitted = None
        return [client.unit for client in clients]

    def _completed(self, horizon_cycle: int) -> list[int]:
        memory = self._world.memory
        while memory.cycle < horizon_cycle:
            # Between two calls Python handles signals.
            (horizon_cycle,) = self._advance(horizon_cycle, self.requests_per_call)
            if memory.is_short:
                self._grow()
        ports: list[int] = self._world.done[: memory.finished].tolist()
        memory.finished = 0
        return ports

    def _grow(self) -> None:
        memory, windows = self._world.memory, self._world.windows
        old = self._world.queues.rows.reshape(windows.size, memory.room)
        queues = Table.zeros(Queued, windows.size * _GROWTH * memory.room)
        new = queues.rows.reshape(windows.size, _GROWTH * memory.room)
        for queue, head in enumerate(windows.rows["head"].tolist()):
            new[queue, : memory.room] = np.roll(old[queue], -(head % memory.room))
        windows.rows["head"] = 0
        memory.room *= _GROWTH
        memory.is_short = 0
        self._world = self._world._replace(queues=queues)
        self._advance = advance.over(self._world)

    def counters(self) -> MemoryCounters:
        """Return the counters up to the end of the last data."""
        # The last written burst is on the bus after its command.
        written = int(self._world.ports.rows["ready"].max(initial=0))
        cycle = max(written + self._world.dram.burst_cycles, self._world.memory.cycle)
        # A copy is settled, because a running memory may still issue commands in earlier cycles.
        world = deepcopy(self._world._replace(queues=Table.zeros(Queued, 0)))
        cycle = settle(world, cycle)
        period_bits = world.memory.period_bits
        periods = world.periods.reshape(-1, FATES)[: -(-cycle >> period_bits) or 1]
        return MemoryCounters(
            tuple(_channel(world, number) for number in range(world.channels.size)),
            tuple(map(self._traffic, self._clients)),
            1 << period_bits,
            tuple(BusCycles(*row) for row in periods.tolist()),
        )

    def _traffic(self, client: Client) -> ClientTraffic:
        ports = slice(client.ports.start, client.ports.stop)
        met = self._world.ports_met.reshape(-1, ROWS_MET)[ports].sum(axis=0).tolist()
        rows = self._world.ports.rows[ports]
        cycles = [int(rows[name].sum()) for name in ("queued", "waited", "served")]
        return ClientTraffic(client.unit.index, sum(met), *met, *cycles)


def _channel(world: World, number: int) -> ChannelTraffic:
    reads, writes = world.windows[2 * number].served, world.windows[2 * number + 1].served
    hits, misses, conflicts = world.channels_met.reshape(-1, ROWS_MET)[number].tolist()
    bus = BusCycles(*world.fates.reshape(-1, FATES)[number].tolist())
    return ChannelTraffic(reads, writes, hits, misses, conflicts, bus)


@dataclass(eq=False, slots=True)
class Tile:
    """A burst, of which ``ports`` hand over ``begun`` requests."""

    burst: Burst
    requests: int
    begun: int = 0
    ports: list[int] = field(default_factory=list)


class Client:
    """A unit and its ports.

    Attributes:
        submitted: the submitted tile, until its answer.
        requests: requests of all tiles that have begun.
    """

    def __init__(
        self, unit: Unit, ports: range, table: Table[Port], description: BankedDescription
    ) -> None:
        self.unit: Final = unit
        self.ports: Final = ports
        self.submitted: Tile | None = None
        self.requests = 0
        self._table: Final = table
        self._description: Final = description
        self._announced: Iterator[Burst] = iter(())
        self._ahead: Final[deque[Tile]] = deque()
        self._room_requests = 0
        self._parts = 0
        self._free_cycle = 0

    def announce(self, bursts: Iterator[Burst]) -> None:
        """Begin the next bursts; all bursts announced before have been submitted."""
        self._announced = bursts
        self._room_requests = self._description.prefetch_requests
        self._begin_ahead()

    def submit(self, burst: Burst, requests: int) -> None:
        """Submit ``burst``, and fetch more ahead; refuse it if another burst was announced."""
        # An announcement always has room for a part of its first tile.
        if not self._ahead:
            self.submitted = Tile(burst, requests)
            self._begin(self.submitted, requests)
            return
        expected = self._ahead[0].burst
        if burst != expected:
            raise Refusal(f"{burst} is submitted: expected {expected}, as announced")
        self._room_requests += requests
        self._begin_ahead()
        self.submitted = self._ahead.popleft()

    def answer_cycle(self) -> int | None:
        """Return the cycle in which the unit sees the submitted tile; None if it is not known."""
        if self.submitted is None:
            return None
        ports = [self._table[port] for port in self.submitted.ports]
        if any(port.open for port in ports):
            return None
        return max(self.unit.now, *(port.ready for port in ports)) + 1

    def _begin_ahead(self) -> None:
        while self._room_requests:
            if not self._ahead or self._ahead[-1].begun == self._ahead[-1].requests:
                burst = next(self._announced, None)
                if burst is None:
                    return
                self._ahead.append(Tile(burst, burst.requests(self._description.request_bytes)))
            tile = self._ahead[-1]
            requests = min(self._room_requests, tile.requests - tile.begun)
            self._room_requests -= requests
            self._begin(tile, requests)

    def _begin(self, tile: Tile, requests: int) -> None:
        """Hand over the next ``requests`` of a tile, by the next port."""
        number = self.ports[self._parts % len(self.ports)]
        self._parts += 1
        burst, port = tile.burst, self._table[number]
        port.row_requests = -(-burst.row_bytes // self._description.request_bytes)
        row, port.in_row = divmod(tile.begun, port.row_requests)
        port.row_address = burst.address + row * burst.pitch_bytes
        port.pitch = burst.pitch_bytes
        port.next_bundle = max(self.unit.now + 1, self._free_cycle)
        port.left = port.open = requests
        port.ready = 0
        port.write = burst.write
        self._free_cycle = port.next_bundle - (-requests // self._description.requests_per_bundle)
        tile.begun += requests
        tile.ports.append(number)
        self.requests += requests


def _answers(clients: Iterable[Client]) -> dict[Client, int]:
    """Return the clients with complete tiles, and the cycles in which they see them."""
    cycles = ((client, client.answer_cycle()) for client in clients)
    return {client: cycle for client, cycle in cycles if cycle is not None}
