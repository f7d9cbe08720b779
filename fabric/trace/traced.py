"""Channels and memories that record what happens to them; made only where a run is traced.

Every operation of a unit gets the next number of one counter, so that the unit's own sequence
can be told even where its clock stands still. The order between units means nothing.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.channel import Channel
from fabric.hbm import Hbm
from fabric.memory import OnChipMemory
from fabric.trace.rows import ALLOCATE, BURST, END, ROW, Rows
from fabric.values import BareStop, Element

if TYPE_CHECKING:
    from fabric.clock import VirtualClock
    from fabric.hardware import HbmDescription
    from fabric.unit import Unit

__all__ = ["TracedChannel", "TracedHbm", "TracedOnChipMemory"]

_pack_row: Final = Struct(ROW).pack_into
_ROW_BYTES: Final = Struct(ROW).size

Sent = tuple[int, int, int, int, int, int]
"""Order and cycle of the reservation, cycles waited, order and cycle of the sending, the cycle
the producer asked the element to be visible at (0: at once)."""


class TracedChannel(Channel):
    """A channel that writes one row for each element, when it is dequeued.

    Attributes:
        number: its place in edge order.
    """

    __slots__ = ("_ended_seen", "_reserved", "_rows", "_seen", "_sent", "number")

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
        self._sent: deque[Sent] = deque()
        self._reserved: deque[tuple[int, int, int]] = deque()
        self._seen: tuple[int, int, int] | None = None
        self._ended_seen = False

    @override
    async def send(self, element: Element) -> None:
        unit = self.producer
        before = unit.now
        await Channel.send(self, element)
        now = unit.now
        order = self._rows.next_order()
        self._sent.append((order, now, now - before, order, now, 0))

    @override
    async def send_at(self, element: Element, requested_cycle: int) -> None:
        unit = self.producer
        before = unit.now
        reserved = len(self._reserved)
        await Channel.send_at(self, element, requested_cycle)
        if len(self._reserved) > reserved:
            self._reserved.pop()
        now = unit.now
        order = self._rows.next_order()
        self._sent.append((order, now, now - before, order, now, requested_cycle))

    @override
    async def reserve(self) -> None:
        unit = self.producer
        before = unit.now
        await Channel.reserve(self)
        now = unit.now
        self._reserved.append((self._rows.next_order(), now, now - before))

    @override
    def put(self, element: Element) -> None:
        Channel.put(self, element)
        reserved = self._reserved.popleft()
        self._sent.append((*reserved, self._rows.next_order(), self.producer.now, 0))

    @override
    async def receive(self) -> Element | None:
        unit = self.consumer
        before = unit.now
        element = await Channel.receive(self)
        now = unit.now
        if element is None:
            self._end(before)
            return None
        rows = self._rows
        order = rows.next_order()
        seen = self._seen
        if seen is None:
            seen = (order, now, now - before)
        else:
            self._seen = None
        value, stop = element
        if value.__class__ is BareStop:
            stop = ~stop
        offset = rows.offset
        sent = self._sent.popleft()
        number, element_number = self.number, self._taken - 1
        _pack_row(rows.buffer, offset, number, element_number, stop, order, now, *seen, *sent)
        rows.offset = offset = offset + _ROW_BYTES
        if offset == rows.limit:
            rows.flush()
        return element

    @override
    async def peek(self) -> Element | None:
        unit = self.consumer
        before = unit.now
        element = await Channel.peek(self)
        if element is None:
            self._end(before)
        elif self._seen is None:
            now = unit.now
            self._seen = (self._rows.next_order(), now, now - before)
        return element

    @override
    def take(self) -> Element:
        element = Channel.take(self)
        seen = self._seen
        assert seen is not None
        self._seen = None
        self._row(self._taken - 1, element, self.consumer.now, seen)
        return element

    @override
    async def drain(self) -> None:
        unit = self.consumer
        before = unit.now
        start = before
        try:
            await Channel.drain(self)
        finally:
            # The clock stood still until the end was seen, so the stamps can be told afterwards.
            while len(self._sent) > len(self.queue):
                _, _, _, _, sent, requested = self._sent[0]
                now = max(start, sent + 1, requested)
                order = self._rows.next_order()
                number = self._taken - len(self._sent) + len(self.queue)
                self._row(number, (None, 0), now, (order, now, 0))
        self._end(before)

    @property
    def dequeued(self) -> int:
        """Elements dequeued so far, bare stops included."""
        return self._taken

    @property
    def held(self) -> list[Sent]:
        """What was sent and is still in the channel, oldest first."""
        return list(self._sent)[len(self._sent) - len(self.queue) :]

    @property
    def seen(self) -> tuple[int, int, int] | None:
        """Order, cycle and cycles waited of a look at the oldest element held."""
        return self._seen

    def _row(
        self, element_number: int, element: Element, now: int, seen: tuple[int, int, int]
    ) -> None:
        rows = self._rows
        value, stop = element
        if value.__class__ is BareStop:
            stop = ~stop
        order, sent = rows.next_order(), self._sent.popleft()
        number, offset = self.number, rows.offset
        _pack_row(rows.buffer, offset, number, element_number, stop, order, now, *seen, *sent)
        rows.offset = offset = offset + _ROW_BYTES
        if offset == rows.limit:
            rows.flush()

    def _end(self, before: int) -> None:
        """Record, once, that the consumer has seen the end."""
        if not self._ended_seen:
            self._ended_seen = True
            now = self.consumer.now
            self._rows.operation(END, self.consumer.index, now, now - before, self.number, 0)


class TracedHbm(Hbm):
    """An HBM that records each burst when it is complete."""

    def __init__(
        self, description: HbmDescription, readers: list[Unit], writers: list[Unit], rows: Rows
    ) -> None:
        """See ``Hbm``; ``rows`` get the bursts."""
        super().__init__(description, readers, writers)
        self._rows = rows
        self._under_way: dict[int, tuple[int, int, int]] = {}

    @override
    def submit(self, unit: Unit, requests: int) -> None:
        self._under_way[unit.index] = (self._rows.next_order(), unit.now, requests)
        super().submit(unit, requests)

    @override
    def advance(self, horizon_cycle: int) -> list[tuple[Unit, int]]:
        done = super().advance(horizon_cycle)
        for unit, cycle in done:
            order, submitted, requests = self._under_way.pop(unit.index)
            self._rows.operation(
                BURST, unit.index, cycle, cycle - submitted, -1, requests, order=order
            )
        return done


class TracedOnChipMemory(OnChipMemory):
    """An on-chip memory that records each wait for room."""

    def __init__(self, capacity_bytes: int | None, clock: VirtualClock, rows: Rows) -> None:
        """See ``OnChipMemory``; ``rows`` get the waits."""
        super().__init__(capacity_bytes, clock)
        self._rows = rows

    @override
    async def allocate(self, unit: Unit, size_bytes: int, what: str) -> None:
        before = unit.now
        await super().allocate(unit, size_bytes, what)
        if unit.now > before:
            self._rows.operation(
                ALLOCATE, unit.index, unit.now, unit.now - before, -1, size_bytes
            )
