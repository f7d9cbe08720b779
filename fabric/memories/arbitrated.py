"""The arbitrated memory, cycle by cycle: FIFOs whose guards see the start of a cycle.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from fabric.memories.behind_arbiter import Request, behind_arbiter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.engine.off_chip import Burst
    from fabric.engine.unit import Unit
    from fabric.hardware.arbitrated import PortDescription

__all__ = ["ArbitratedMemory"]

T = TypeVar("T")

REORDER_CYCLES: Final = 2
"""From an answer of the memory to the cycle in which it can leave the buffer that orders them."""


class _Fifo(Generic[T]):
    """A queue that takes and gives by what it held at the start of a cycle."""

    def __init__(self, every: list[_Fifo[object]], room: int = 2) -> None:
        self.items: Final[deque[T]] = deque()
        self.held = 0
        self._room: Final = room
        every.append(self)  # type: ignore[arg-type]  # its items are not looked at there

    @property
    def full(self) -> bool:
        """Whether it took nothing in this cycle, whatever it gives."""
        return self.held >= self._room


class _Client:
    """A port: what was asked for, what came, and the burst under way.

    Attributes:
        unit: whose it is.
        total_bytes: to ask for.
        last_bytes: of the last burst of these.
        asked_bytes: have been asked for.
        seen_bytes: have been answered, and are not looked at any more.
        before_bytes: of all bursts that are complete: the one under way begins there.
        since_cycle: from which the burst under way waits; None where there is none.
        burst_bytes: of the burst under way.
    """

    def __init__(self, unit: Unit, every: list[_Fifo[object]], answers: int) -> None:
        self.unit: Final = unit
        self.requests: Final[_Fifo[Request]] = _Fifo(every)
        self.buffer: Final[_Fifo[None]] = _Fifo(every, answers)
        self.answers: Final[_Fifo[None]] = _Fifo(every, answers)
        self.response: Final[_Fifo[None]] = _Fifo(every)
        self.total_bytes = self.last_bytes = 0
        self.asked_bytes = self.seen_bytes = self.before_bytes = 0
        self.since_cycle: int | None = None
        self.write = False
        self.burst_bytes = 0


class ArbitratedMemory:
    """Ports, an arbiter, and what is behind them.

    Attributes:
        final_cycle: it does not outlast its clients.
        bytes_moved: see ``OffChip``.
    """

    final_cycle: Final = None
    prefetches: Final = True

    def __init__(
        self, description: PortDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        """Serve ``readers`` and ``writers``, whose ports are in this order."""
        self._description: Final = description
        self._behind: Final = behind_arbiter(description)
        self._fifos: Final[list[_Fifo[object]]] = []
        self._clients: Final = [
            _Client(unit, self._fifos, description.answers) for unit in (*readers, *writers)
        ]
        self._of_unit: Final = {client.unit.index: client for client in self._clients}
        self._sent: Final[_Fifo[Request]] = _Fifo(self._fifos)
        self._into: Final[_Fifo[Request]] = _Fifo(self._fifos)
        self._last: Final[_Fifo[Request]] = _Fifo(self._fifos)
        self._flying: Final[_Fifo[Request]] = _Fifo(self._fifos, description.reads_in_flight)
        self._out: Final[_Fifo[Request]] = _Fifo(self._fifos)
        self._back: Final[_Fifo[Request]] = _Fifo(self._fifos)
        self._cycle = self._first = self._bursts = 0
        self.bytes_moved = 0

    @property
    def pending(self) -> bool:
        """Whether a burst is under way that was asked for."""
        return self._bursts > 0

    def announce(self, unit: Unit, bursts: Iterator[Burst]) -> None:
        """Ask for all ``bursts`` of a reader, from now on."""
        tag_bytes = self._description.tag_bytes
        client = self._of_unit[unit.index]
        for each in bursts:
            client.last_bytes = each.rows * each.row_bytes + tag_bytes
            client.total_bytes += client.last_bytes

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock."""
        client = self._of_unit[unit.index]
        client.since_cycle = unit.now
        client.write = burst.write
        client.burst_bytes = burst.rows * burst.row_bytes + self._description.tag_bytes
        if client.total_bytes <= client.before_bytes:
            client.last_bytes = client.burst_bytes  # what was not announced is asked for now
            client.total_bytes += client.burst_bytes
        self._bursts += 1

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way have been taken."""
        client = self._of_unit[unit.index]
        ahead_bytes = max(0, client.asked_bytes - client.before_bytes)
        return ahead_bytes // self._description.request_bytes

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Go on to the first completion, or up to ``horizon_cycle``."""
        done: list[_Client] = []
        while not done and self._cycle <= horizon_cycle:
            done = self._step(self._cycle)
            for fifo in self._fifos:
                fifo.held = len(fifo.items)
            self._cycle += 1
        self._bursts -= len(done)
        for client in done:
            client.since_cycle = None
            client.unit.answered(self._cycle - 1)
        return [client.unit for client in done]

    def _step(self, cycle: int) -> list[_Client]:
        """Do what one cycle does; return who has what was asked for."""
        self._choose()
        self._send(cycle)
        self._answer(cycle)
        return [client for client in self._clients if self._serve(client, cycle)]

    def _choose(self) -> None:
        """Let the next port with a request have its turn, which passes where it has no room."""
        count = len(self._clients)
        for step in range(count):
            number = (self._first + step) % count
            client = self._clients[number]
            if client.requests.held:
                self._first = (number + 1) % count
                if not self._sent.full and not client.answers.full:
                    self._sent.items.append(client.requests.items.popleft())
                return

    def _send(self, cycle: int) -> None:
        """Let requests go on to the memory."""
        if self._sent.held and not self._into.full:
            self._into.items.append(self._sent.items.popleft())
        if self._into.held and not self._last.full:
            request = self._into.items[0]
            if request.write or not self._flying.full:
                self._last.items.append(self._into.items.popleft())
                if not request.write:
                    self._flying.items.append(request)
        if self._last.held and self._behind.take(self._last.items[0], cycle):
            self._last.items.popleft()
            self.bytes_moved += self._description.request_bytes

    def _answer(self, cycle: int) -> None:
        """Let answers go back, in the order of sending."""
        answered = self._behind.step(cycle)
        if answered is not None:
            answered.back_cycle = cycle + REORDER_CYCLES
        if self._flying.held and not self._out.full:
            back_cycle = self._flying.items[0].back_cycle
            if back_cycle is not None and back_cycle <= cycle:
                self._out.items.append(self._flying.items.popleft())
        if self._out.held and not self._back.full:
            self._back.items.append(self._out.items.popleft())
        if self._back.held:
            client = self._clients[self._back.items[0].port]
            if not client.buffer.full:
                self._back.items.popleft()
                client.buffer.items.append(None)
        for client in self._clients:
            if client.buffer.held and not client.answers.full:
                client.answers.items.append(client.buffer.items.popleft())

    def _ask(self, client: _Client, *, write: bool) -> None:
        """Let a port ask for what is next, where there is room."""
        if not client.requests.full:
            port = self._clients.index(client)
            client.requests.items.append(Request(port, client.asked_bytes, write))
            client.asked_bytes += self._description.request_bytes

    def _serve(self, client: _Client, cycle: int) -> bool:
        """Let a port ask and be answered; return whether its burst is complete."""
        size = self._description.request_bytes
        waits = client.since_cycle is not None and client.since_cycle <= cycle
        if client.write:
            if not waits:
                return False
            if client.asked_bytes + size >= client.before_bytes + client.burst_bytes:
                client.before_bytes += client.burst_bytes
                return True
            self._ask(client, write=True)
            return False
        # The last request is left out where all bursts begin before it.
        if client.asked_bytes < client.total_bytes - min(size, client.last_bytes):
            self._ask(client, write=False)
        took = client.response.held > 0
        done = False
        if took:
            end = client.seen_bytes + size
            if end >= client.before_bytes and waits:
                done = True
                client.before_bytes += client.burst_bytes
            if end < client.before_bytes:
                client.response.items.popleft()
                client.seen_bytes += size
        if client.answers.held and not client.response.full:
            client.response.items.append(client.answers.items.popleft())
        return done
