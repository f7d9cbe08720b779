"""Channels and memories that record what happens to them; made only where a run is traced.

Every operation of a unit gets the next number of one counter, so that the unit's own sequence
can be told even where its clock stands still. The order between units means nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from struct import Struct, calcsize
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.engine.channel import DONE, Channel
from fabric.engine.on_chip import OnChipMemory
from fabric.trace.recording.rows import (
    ALLOCATE,
    BURST,
    END,
    IDLE,
    LEFT_OVER,
    LONG_COLUMNS,
    RESERVE,
    SHORT_COLUMNS,
    Rows,
)
from fabric.values.value import Element, Empty

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.off_chip import Burst, OffChip
    from fabric.engine.unit import Unit

__all__ = ["TracedChannel", "TracedOffChip", "TracedOnChipMemory"]

_pack_short: Final = Struct(f"={len(SHORT_COLUMNS)}q").pack_into
_pack_long: Final = Struct(f"={len(LONG_COLUMNS)}q").pack_into
_SHORT_BYTES: Final = calcsize(f"={len(SHORT_COLUMNS)}q")
_LONG_BYTES: Final = calcsize(f"={len(LONG_COLUMNS)}q")

Sent = tuple[int, ...]
"""Order and cycle of the sending, cycles waited; and, where that is not all: the cycle at which
the producer wanted the element to be visible (-1: at once), order and cycle of the reservation."""


class TracedChannel(Channel):
    """A channel that writes one row for each element, when it is dequeued.

    ``send`` and ``receive`` repeat those of ``Channel``, because a call more would cost more than
    the recording; the others call them.

    Attributes:
        number: its place in edge order.
    """

    __slots__ = ("_last", "_long", "_next_order", "_reserved", "_rows", "_seen", "_sent", "_short",
                 "number")  # fmt: skip

    def __init__(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        number: int,
        rows: Rows,
    ) -> None:
        """Join two units; ``rows`` get what happens, under this ``number``."""
        super().__init__(name, depth, producer, consumer, clock)
        self.number: Final = number
        self._rows: Final = rows
        self._short: Final = rows.short
        self._long: Final = rows.long
        self._next_order: Final = rows.next_order
        self._sent: deque[Sent] = deque()
        self._reserved: deque[tuple[int, int, int]] = deque()
        self._seen: tuple[int, int, int] | None = None
        self._last = -1

    @override
    def send(self, element: Element) -> Awaitable[None]:
        ready_credits = self.credits
        if not ready_credits:
            return self._send_later(element)
        returned = ready_credits.popleft()
        unit = self.producer
        now = unit.now
        waited = 0
        if returned >= now:
            waited = returned + 1 - now
            self.full_cycles += waited - 1
            self.credit_cycles += 1
            unit.now = now = returned + 1
        self._sent.append((self._next_order(), now, waited))
        self.queue.append((now, element))
        if self.reader is not None:
            self._wake_reader()
        return DONE

    @override
    async def send_at(self, element: Element, requested_cycle: int) -> None:
        await self.reserve()
        order, now, waited = self._reserved.pop()
        self._sent.append((order, now, waited, requested_cycle, order, now))
        self._append_at(element, requested_cycle)

    @override
    async def reserve(self) -> None:
        unit = self.producer
        before = unit.now
        await Channel.reserve(self)
        now = unit.now
        self._reserved.append((self._next_order(), now, now - before))

    @override
    def put(self, element: Element) -> None:
        order, cycle, waited = self._reserved.popleft()
        now = self.producer.now
        self._sent.append((self._next_order(), now, waited, -1, order, cycle))
        Channel.put(self, element)

    @override
    async def receive(self) -> Element | None:
        if self._seen is not None:
            return self.take()
        unit = self.consumer
        before = unit.now
        queue = self.queue
        if not queue:
            await self._arrival()
            if not queue:
                self.see_end()
                return None
        sent, element = queue.popleft()
        now = before
        recent = self._recent
        if recent[0] < sent:
            recent.popleft()
        if sent >= now:
            self.empty_cycles += sent + 1 - now
            unit.now = now = sent + 1
        recent.append(now)
        self._returned.append(now)
        if self.writer is not None:
            self._wake_writer()
        stamps = self._sent.popleft()
        if len(stamps) > 3:
            self._write_long(element, now, (self._next_order(), now, now - before), stamps)
            return element
        value, stop = element
        if value.__class__ is Empty:
            stop = ~stop
        self._last = count = self._last + 1
        rows = self._short
        offset = rows.offset
        order, number = self._next_order(), self.number
        _pack_short(rows.buffer, offset, number, count, stop, order, now, now - before, *stamps)
        rows.offset = offset = offset + _SHORT_BYTES
        if offset == rows.limit:
            self._rows.flush()
        return element

    @override
    async def peek(self) -> Element | None:
        queue = self.queue
        if self._seen is not None:
            return queue[0][1]
        unit = self.consumer
        before = unit.now
        if not queue:
            await self._arrival()
            if not queue:
                self.see_end()
                return None
        sent, element = queue[0]
        now = before
        if sent >= now:
            self.empty_cycles += sent + 1 - now
            unit.now = now = sent + 1
        self._seen = (self._next_order(), now, now - before)
        return element

    @override
    def take(self) -> Element:
        seen = self._seen
        assert seen is not None
        self._seen = None
        element = Channel.take(self)
        self._write_long(element, self.consumer.now, seen, self._sent.popleft())
        return element

    @override
    def idle(self, cycle: int) -> None:
        waited = cycle - self.consumer.now
        Channel.idle(self, cycle)
        if waited > 0:
            until = min(self.queue[0][0], cycle) if self.queue else cycle
            unit = self.consumer.index
            self._rows.operation(IDLE, unit, cycle, waited, self.number, until)

    @override
    def discard(self, cycle: int) -> None:
        Channel.discard(self, cycle)
        while len(self._sent) > len(self.queue):
            stamps = self._sent.popleft()
            requested = stamps[3] if len(stamps) > 3 else 0
            now = max(cycle, stamps[1] + 1, requested)
            seen = self._seen or (LEFT_OVER, now, 0)
            self._seen = None
            self._write_long((True, 0), now, seen, stamps, LEFT_OVER)

    @override
    def see_end(self) -> None:
        if self.ended:
            return
        unit = self.consumer
        before = unit.now
        Channel.see_end(self)
        self._rows.operation(END, unit.index, unit.now, unit.now - before, self.number)

    def give_up(self) -> None:
        """Record the reservations that nothing was put into when the run stopped."""
        for order, cycle, waited in self._reserved:
            unit = self.producer.index
            self._rows.operation(RESERVE, unit, cycle, waited, self.number, order=order)
        self._reserved.clear()

    @property
    def pending(self) -> list[tuple[int, ...]]:
        """A long row for each element that is held; -1 for what has not happened."""
        rows = []
        seen = self._seen or (-1, -1, 0)
        # An element whose dequeue is being recorded just now is not in the queue any more.
        sent = list(self._sent)[len(self._sent) - len(self.queue) :]
        for number, (stamps, (_, element)) in enumerate(zip(sent, self.queue, strict=True)):
            # A user's operator may have sent something else.
            value, stop = element if element.__class__ is tuple else (element, 0)
            level = ~stop if isinstance(value, Empty) else stop
            key = (self.number, self._last + number + 1, level)
            rows.append((*key, -1, -1, seen[2], *_complete(stamps), *seen[:2]))
            seen = (-1, -1, 0)
        return rows

    def _write_long(
        self,
        element: Element,
        now: int,
        seen: tuple[int, int, int],
        stamps: Sent,
        order: int | None = None,
    ) -> None:
        value, stop = element
        if value.__class__ is Empty:
            stop = ~stop
        if len(stamps) == 3:
            stamps = _complete(stamps)
        if order is None:
            order = self._next_order()
        self._last = count = self._last + 1
        rows = self._long
        offset, number = rows.offset, self.number
        seen_order, seen_cycle, waited = seen
        _pack_long(
            rows.buffer, offset, number, count, stop, order, now, waited, *stamps, seen_order,
            seen_cycle,
        )  # fmt: skip
        rows.offset = offset = offset + _LONG_BYTES
        if offset == rows.limit:
            self._rows.flush()


def _complete(stamps: Sent) -> Sent:
    """Return all six stamps of an element."""
    return stamps if len(stamps) > 3 else (*stamps, -1, stamps[0], stamps[1])


class TracedOffChip:
    """Any off-chip memory, of which each burst is recorded when it is complete."""

    def __init__(self, memory: OffChip, request_bytes: int, rows: Rows) -> None:
        """Stand for ``memory``; ``rows`` get the bursts."""
        self._memory: Final = memory
        self._request_bytes: Final = request_bytes
        self._rows: Final = rows
        self._under_way: dict[int, tuple[Unit, int, int, int]] = {}

    @property
    def pending(self) -> bool:
        """See ``OffChip``, as all others."""
        return self._memory.pending

    @property
    def bytes_moved(self) -> int:
        """See ``OffChip``."""
        return self._memory.bytes_moved

    @property
    def final_cycle(self) -> int | None:
        """See ``OffChip``."""
        return self._memory.final_cycle

    def served(self, unit: Unit) -> int:
        """See ``OffChip``."""
        return self._memory.served(unit)

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Hand ``burst`` on and remember when."""
        self._memory.submit(unit, burst)
        requests = burst.requests(self._request_bytes)
        self._under_way[unit.index] = (unit, self._rows.next_order(), unit.now, requests)

    def under_way(self, unit: int) -> int:
        """Return how many requests of the burst that the unit waits for have been served."""
        return self._memory.served(self._under_way[unit][0])

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Let the memory advance and record what is complete."""
        done = self._memory.advance(horizon_cycle)
        for unit in done:
            _, order, submitted, requests = self._under_way.pop(unit.index)
            self._rows.operation(
                BURST, unit.index, unit.now, unit.now - submitted, amount=requests, order=order
            )
        return done


class TracedOnChipMemory(OnChipMemory):
    """An on-chip memory that records each wait for room."""

    def __init__(self, capacity_bytes: int | None, clock: VirtualClock, rows: Rows) -> None:
        """See ``OnChipMemory``; ``rows`` get the waits."""
        super().__init__(capacity_bytes, clock)
        self._rows = rows

    @override
    async def _wait_for_room(self, unit: Unit, size_bytes: int) -> None:
        before = unit.now
        await super()._wait_for_room(unit, size_bytes)
        waited = unit.now - before
        if waited:
            self._rows.operation(ALLOCATE, unit.index, unit.now, waited, amount=size_bytes)
