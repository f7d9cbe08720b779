"""The arbitrated memory, cycle by cycle. A FIFO is full or empty as at the start of a cycle.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval, and the
generic controller of Ramulator 2.0 (CMU-SAFARI), which it contains.
"""

from __future__ import annotations

import bisect
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric.graph.hardware.memory_models import ArbitratedBanksDescription, ArbitratedDescription

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.graph.hardware.address_space import Burst
    from fabric.graph.hardware.memory_models import PortDescription
    from fabric.timing.engine.unit import Unit

REORDER_CYCLES: Final = 2
"""Cycles from an answer of the memory until it can leave the reorder buffer."""


@dataclass(eq=False, slots=True)
class Request:
    """A request on its way. The addresses of a port's requests are consecutive, from 0."""

    port: int
    address: int
    write: bool
    back_cycle: int | None = None


class _Fifo:
    """Requests or answers; ``held`` is their number at the start of the cycle."""

    def __init__(self, every: list[_Fifo], room: int = 2) -> None:
        self.items: Final[deque[Request]] = deque()
        self.held = 0
        self._room: Final = room
        every.append(self)

    @property
    def full(self) -> bool:
        return self.held >= self._room

    def pass_on(self, following: _Fifo) -> None:
        if self.held and not following.full:
            following.items.append(self.items.popleft())


class _Client:
    """A port, its stream of bursts, and the burst under way.

    Bursts that were announced together are one stream. A burst that was not announced is a stream
    by itself. A writer has one stream. No request has bytes of two streams.

    Attributes:
        first, end: request numbers of the latest stream; ``end`` is exclusive.
        begin_cycle: the cycle in which the latest stream was announced.
        stream_bytes, before_bytes: of the latest stream, and of its complete bursts.
        since_cycle: first cycle of the burst under way; None without a burst.
        free_cycle: the cycle after the one in which the last burst was complete.
    """

    def __init__(self, unit: Unit, port: int, every: list[_Fifo], answers: int) -> None:
        self.unit: Final = unit
        self.port: Final = port
        self.requests: Final = _Fifo(every)
        self.buffer: Final = _Fifo(every, answers)
        self.answers: Final = _Fifo(every, answers)
        self.response: Final = _Fifo(every)
        self.asked = self.seen = self.first = self.end = self.begin_cycle = 0
        self.stream_bytes = self.before_bytes = self.free_cycle = 0
        self.since_cycle: int | None = None
        self.write = False
        self.burst_bytes = 0

    def needs(self, request_bytes: int) -> int:
        """Return the number of the answer that completes the next burst."""
        if self.before_bytes >= self.stream_bytes:
            return self.end
        return self.first + max(0, -(-self.before_bytes // request_bytes) - 1)


class ArbitratedMemory:
    """Ports, an arbiter, and the memory behind them."""

    final_cycle: Final = None
    prefetches: Final = True

    def __init__(
        self, description: PortDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        self._description: Final = description
        self._behind: Final = behind_arbiter(description)
        fifos: Final[list[_Fifo]] = []
        self._clients: Final = [
            _Client(unit, port, fifos, description.answers)
            for port, unit in enumerate((*readers, *writers))
        ]
        self._of_unit: Final = {client.unit.index: client for client in self._clients}
        self._sent, self._into, self._last, self._out, self._back = (_Fifo(fifos) for _ in range(5))
        self._flying: Final = _Fifo(fifos, description.reads_in_flight)
        self._fifos: Final = fifos
        self._cycle = self._first = self._bursts = self._taken = 0

    @property
    def bytes_moved(self) -> int:
        return (self._taken - self._behind.open_requests) * (self._description.request_bytes)

    @property
    def pending(self) -> bool:
        return self._bursts > 0

    def announce(self, unit: Unit, bursts: Iterator[Burst]) -> None:
        """Request all ``bursts`` of a reader from the unit's clock on."""
        description, client = self._description, self._of_unit[unit.index]
        size, total_bytes, last_bytes = description.request_bytes, 0, 0
        for burst in bursts:
            last_bytes = burst.rows * burst.row_bytes + description.tag_bytes
            total_bytes += last_bytes
        if total_bytes:
            client.first = client.end
            client.stream_bytes, client.before_bytes = total_bytes, 0
            # The last request is left out if the last burst begins at its first byte or earlier.
            # A stream has at least one request.
            client.end += -(-max(1, total_bytes - min(size, last_bytes)) // size)
            client.begin_cycle = unit.now

    def submit(self, unit: Unit, burst: Burst) -> None:
        client = self._of_unit[unit.index]
        client.since_cycle = max(unit.now, client.free_cycle)
        client.write = burst.write
        client.burst_bytes = burst.rows * burst.row_bytes + self._description.tag_bytes
        if not burst.write and client.before_bytes >= client.stream_bytes:
            self.announce(unit, iter((burst,)))
        self._bursts += 1

    def served(self, unit: Unit) -> int:
        client, size = self._of_unit[unit.index], self._description.request_bytes
        return max(0, (client.asked - client.first) * size - client.before_bytes) // size

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance to the first completion, or to ``horizon_cycle``.

        Units may submit bursts in that cycle: it ends with the first call for a later cycle.
        """
        while self._cycle <= horizon_cycle:
            cycle = self._cycle
            done = [client for client in self._clients if self._complete(client, cycle)]
            if done:
                self._bursts -= len(done)
                for client in done:
                    client.since_cycle = None
                    client.free_cycle = cycle + 1
                    client.unit.answered(cycle)
                return [client.unit for client in done]
            if cycle == horizon_cycle:
                break
            self._end(cycle)
        return []

    def _end(self, cycle: int) -> None:
        """Move requests and answers one step, and begin the next cycle."""
        self._choose()
        self._send(cycle)
        self._answer(cycle)
        for client in self._clients:
            self._read(client, cycle)
        for fifo in self._fifos:
            fifo.held = len(fifo.items)
        self._cycle = cycle + 1

    def _choose(self) -> None:
        count = len(self._clients)
        for step in range(count):
            number = (self._first + step) % count
            client = self._clients[number]
            if client.requests.held:
                self._first = (number + 1) % count
                if not client.answers.full:
                    client.requests.pass_on(self._sent)
                return

    def _send(self, cycle: int) -> None:
        self._sent.pass_on(self._into)
        if self._into.held and not self._last.full:
            request = self._into.items[0]
            if request.write or not self._flying.full:
                self._into.pass_on(self._last)
                if not request.write:
                    self._flying.items.append(request)
        if self._last.held and self._behind.take(self._last.items[0], cycle):
            self._last.items.popleft()
            self._taken += 1

    def _answer(self, cycle: int) -> None:
        """Return answers in the order of sending."""
        answered = self._behind.step(cycle)
        if answered is not None:
            answered.back_cycle = cycle + REORDER_CYCLES
        if self._flying.held:
            back_cycle = self._flying.items[0].back_cycle
            if back_cycle is not None and back_cycle <= cycle:
                self._flying.pass_on(self._out)
        self._out.pass_on(self._back)
        if self._back.held:
            self._back.pass_on(self._clients[self._back.items[0].port].buffer)

    def _ask(self, client: _Client) -> None:
        if not client.requests.full:
            address = client.asked * self._description.request_bytes
            client.requests.items.append(Request(client.port, address, client.write))
            client.asked += 1

    def _complete(self, client: _Client, cycle: int) -> bool:
        """Return whether the burst under way is complete; if not, let a writer issue a request."""
        if client.since_cycle is None or client.since_cycle > cycle:
            return False
        size = self._description.request_bytes
        if not client.write:
            if not client.response.held or client.seen < client.needs(size):
                return False
        elif (client.asked + 1) * size < client.before_bytes + client.burst_bytes:
            self._ask(client)
            client.since_cycle = cycle + 1
            return False
        client.before_bytes += client.burst_bytes
        return True

    def _read(self, client: _Client, cycle: int) -> None:
        """Let a reader issue a request, drop the answer it has seen, and see the next one."""
        if client.asked < (client.end if client.begin_cycle <= cycle else client.first):
            self._ask(client)
        if client.response.held and client.seen < client.needs(self._description.request_bytes):
            client.response.items.popleft()
            client.seen += 1
        client.answers.pass_on(client.response)
        client.buffer.pass_on(client.answers)


def behind_arbiter(description: PortDescription) -> _Steady | _Channel:
    if isinstance(description, ArbitratedBanksDescription):
        return _Channel(description)
    assert isinstance(description, ArbitratedDescription)
    return _Steady(description)


class _Steady:
    """Starts requests at a fixed interval and answers reads in order, after a fixed latency."""

    def __init__(self, description: ArbitratedDescription) -> None:
        self._description: Final = description
        self._cycle = self._free_cycle = 0
        self._due: Final[deque[tuple[int, Request]]] = deque()

    def take(self, request: Request, cycle: int) -> bool:
        start = max(cycle, self._free_cycle)
        self._free_cycle = start + self._description.interval_cycles
        if not request.write:
            # The answer is available in the last of these cycles, and seen one cycle later.
            self._due.append((start + self._description.latency_cycles - 1, request))
        return True

    def step(self, cycle: int) -> Request | None:
        self._cycle = cycle + 1
        if self._due and self._due[0][0] <= cycle:
            return self._due.popleft()[1]
        return None

    @property
    def open_requests(self) -> int:
        """Number of taken requests that have not moved all data."""
        return max(0, -((self._cycle - self._free_cycle) // self._description.interval_cycles))


ACTIVATE, PRECHARGE, READ, WRITE = range(4)


@dataclass(eq=False, slots=True)
class _Bank:
    """A bank.

    Attributes:
        levels: four lists of first cycles by command: of the bank, group, pseudo channel, channel.
        activated: cycles of the latest three activations in the pseudo channel.
        row: the open row, if any.
        opening: whether the row was opened for a request that still waits.
    """

    levels: tuple[list[int], ...]
    activated: deque[int]
    row: int | None = None
    opening: bool = False


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request in a channel's window, the cycle in which it came, and its next command."""

    request: Request
    bank: _Bank
    row: int
    since_cycle: int
    command: int = ACTIVATE


class _Channel:
    """A channel that issues at most one command a cycle, for the oldest request that is ready.

    Requests that have opened their row come first. After them come the reads, or the writes.
    """

    def __init__(self, description: ArbitratedBanksDescription) -> None:
        self._description: Final = description
        self._delays: Final = _delays(description)
        self._banks: Final[list[_Bank]] = []
        self._opened: Final[list[_Waiting]] = []
        self._reads: Final[list[_Waiting]] = []
        self._writes: Final[list[_Waiting]] = []
        self._writing = False
        self._data: Final[deque[tuple[int, Request]]] = deque()
        self._written: Final[deque[int]] = deque()
        channel = [0] * 4
        for _ in range(description.pseudo_channels):
            pseudo_channel, activated = [0] * 4, deque[int]()
            for _ in range(description.bank_groups):
                above = [0] * 4, pseudo_channel, channel
                banks = (_Bank(([0] * 4, *above), activated) for _ in range(description.banks))
                self._banks.extend(banks)

    def take(self, request: Request, cycle: int) -> bool:
        window = self._writes if request.write else self._reads
        if len(window) == self._description.window_requests:
            return False
        made_of = self._description
        number, _ = divmod(request.address, made_of.row_bytes)
        number, pseudo_channel = divmod(number, made_of.pseudo_channels)
        number, group = divmod(number, made_of.bank_groups)
        number, bank = divmod(number, made_of.banks)
        place = (pseudo_channel * made_of.bank_groups + group) * made_of.banks + bank
        window.append(_Waiting(request, self._banks[place], number % made_of.rows, cycle))
        return True

    def step(self, cycle: int) -> Request | None:
        answered = None
        if self._data and self._data[0][0] <= cycle:
            answered = self._data.popleft()[1]
        if self._written and self._written[0] <= cycle:
            self._written.popleft()
        window = self._opened
        chosen = _first_ready(window, cycle)
        if chosen is None:
            self._turn()
            window = self._writes if self._writing else self._reads
            chosen = _first_ready(window, cycle)
        # A row that was opened for a request is not closed before the request is served.
        if chosen is not None and not (chosen.command == PRECHARGE and chosen.bank.opening):
            self._issue(chosen, window, cycle)
        return answered

    @property
    def open_requests(self) -> int:
        waiting = len(self._opened) + len(self._reads) + len(self._writes)
        return waiting + len(self._data) + len(self._written)

    def _turn(self) -> None:
        writes = len(self._writes)
        if not self._writing:
            self._writing = writes >= self._description.write_high_requests or not self._reads
        elif writes < self._description.write_low_requests and self._reads:
            self._writing = False

    def _issue(self, chosen: _Waiting, window: list[_Waiting], cycle: int) -> None:
        bank, command = chosen.bank, chosen.command
        for ready, delays in zip(bank.levels, self._delays, strict=True):
            for delayed, cycles in delays.get(command, {}).items():
                ready[delayed] = max(ready[delayed], cycle + cycles)
        if command == PRECHARGE:
            bank.row = None
            return
        window.remove(chosen)
        if command == ACTIVATE:
            bank.row = chosen.row
            bank.opening = True
            bisect.insort(self._opened, chosen, key=lambda waiting: waiting.since_cycle)
            self._limit_activations(bank, cycle)
            return
        if window is self._opened:
            bank.opening = False
        made_of = self._description
        if command == READ:
            self._data.append((cycle + made_of.cl_cycles + made_of.burst_cycles, chosen.request))
        else:
            self._written.append(cycle + made_of.cwl_cycles + made_of.burst_cycles)

    def _limit_activations(self, bank: _Bank, cycle: int) -> None:
        """Delay the next activation until ``faw_cycles`` after the oldest of the latest four."""
        bank.activated.append(cycle)
        if len(bank.activated) == 4:
            first_cycle = bank.activated.popleft()
            ready = bank.levels[2]
            ready[ACTIVATE] = max(ready[ACTIVATE], first_cycle + self._description.faw_cycles)


def _first_ready(window: list[_Waiting], cycle: int) -> _Waiting | None:
    for waiting in window:
        bank = waiting.bank
        if bank.row is None:
            command = ACTIVATE
        elif bank.row != waiting.row:
            command = PRECHARGE
        else:
            command = WRITE if waiting.request.write else READ
        if all(ready[command] <= cycle for ready in bank.levels):
            waiting.command = command
            return waiting
    return None


def _delays(made_of: ArbitratedBanksDescription) -> tuple[dict[int, dict[int, int]], ...]:
    """Return, by level and command, the delayed commands and the cycles of each delay."""
    written = made_of.cwl_cycles + made_of.burst_cycles
    turned = made_of.cl_cycles + made_of.burst_cycles + 2 - made_of.cwl_cycles
    of_bank = {
        ACTIVATE: {
            ACTIVATE: made_of.rc_cycles,
            READ: made_of.rcd_read_cycles,
            WRITE: made_of.rcd_write_cycles,
            PRECHARGE: made_of.ras_cycles,
        },
        PRECHARGE: {ACTIVATE: made_of.rp_cycles},
        READ: {PRECHARGE: made_of.rtp_cycles},
        WRITE: {PRECHARGE: written + made_of.wr_cycles},
    }
    of_group = {
        ACTIVATE: {ACTIVATE: made_of.rrd_l_cycles},
        READ: {READ: made_of.ccd_l_cycles},
        WRITE: {WRITE: made_of.ccd_l_cycles, READ: written + made_of.wtr_l_cycles},
    }
    of_pseudo_channel = {
        ACTIVATE: {ACTIVATE: made_of.rrd_s_cycles},
        READ: {READ: made_of.burst_cycles, WRITE: turned},
        WRITE: {WRITE: made_of.burst_cycles, READ: written + made_of.wtr_s_cycles},
    }
    of_channel = {ACTIVATE: {ACTIVATE: 2, PRECHARGE: 2}}
    return of_bank, of_group, of_pseudo_channel, of_channel
