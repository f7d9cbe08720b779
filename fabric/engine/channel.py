"""Bounded channels between units, with time stamps and credits.

For element n of a channel of depth K, producer clock p and consumer clock c:

* a credit: p = max(p, d[n-K] + 1), where d[m] is the clock at which element m was dequeued;
* visible:  v[n] = max(requested, p + 1);
* dequeue:  c = max(c, v[n]), d[n] = c. A peek moves c and frees nothing.

Where the element or the credit is there, an operation completes without suspending: units run
ahead in their own time, and the stamps are the same under every schedule.
"""

from __future__ import annotations

import contextlib
import types
from collections import deque
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Final

from fabric.engine.unit import Unit, Wait
from fabric.telling.causes import Operation
from fabric.telling.errors import ConfigurationError
from fabric.values.value import Element, Empty, drop

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.strand import Switching

__all__ = ["DONE", "Channel", "Discard"]

_GRANT: Final = 256
"""Credits handed out at a time, so that a deep channel costs memory only when it fills, and a unit
that fills one lets trio run something else now and then."""


@types.coroutine
def _nothing() -> Generator[None, None, None]:
    """Wait for nothing: once it has ended it can be awaited again and again, and is at once."""
    yield from ()


DONE: Final = _nothing()
"""What ``send`` returns where it did not have to wait."""

with contextlib.suppress(StopIteration):
    DONE.send(None)


class Channel:
    """A FIFO of ``depth`` elements from one unit to another, one cycle long each way.

    Attributes:
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        queue: (the cycle before it becomes visible, element), oldest first.
        elements: values dequeued; bare stops are not counted.
        empty_cycles: cycles the consumer waited for an element or the end.
        full_cycles: cycles the producer waited for the consumer to take an element.
        credit_cycles: cycles it then waited for the credit on its way back.
        closed_cycle: the producer's final clock, once it has ended.
        ended: the consumer has seen the end.
        left_over: values that came after the consumer's operator had ended.
    """

    __slots__ = (
        "_bare_stops",
        "_receiving",
        "_recent",
        "_returned",
        "_sending",
        "_spent",
        "_ungranted",
        "clock",
        "closed_cycle",
        "consumer",
        "credit_cycles",
        "credits",
        "depth",
        "empty_cycles",
        "ended",
        "full_cycles",
        "left_over",
        "name",
        "producer",
        "queue",
        "reader",
        "writer",
    )

    def __init__(
        self, name: str, depth: int, producer: Unit, consumer: Unit, clock: VirtualClock
    ) -> None:
        """Join two units.

        Raises:
            ConfigurationError: the depth is below 1.
        """
        if depth < 1:
            raise ConfigurationError(f"channel {name}: depth is {depth}: expected at least 1")
        self.name: Final = name
        self.depth = depth
        self.producer: Final = producer
        self.consumer: Final = consumer
        self.clock: Final = clock
        self.queue: deque[tuple[int, Element]] = deque()
        self.credits: deque[int] = deque([-1] * min(depth, _GRANT))
        self._returned: deque[int] = deque()
        self._ungranted = depth - len(self.credits)
        # When the latest elements were dequeued, as many as ever shared the channel: while the
        # oldest of them was still there when a new one was sent, one more is kept.
        self._recent: deque[int] = deque((-1,))
        self._spent = 0
        self._bare_stops = 0
        self.left_over = 0
        self.empty_cycles = 0
        self.full_cycles = 0
        self.credit_cycles = 0
        self._receiving: Final = Wait(Operation.RECEIVE, (self,), 0)
        self._sending: Final = Wait(Operation.SEND, (self,), 0)
        self.reader: Unit | None = None
        self.writer: Unit | None = None
        self.closed_cycle: int | None = None
        self.ended = False

    @property
    def elements(self) -> int:
        """Values dequeued so far."""
        queue = self.queue
        bare = self._bare_stops - (len(queue) - self.held_values) if queue else self._bare_stops
        return self.taken - bare

    @property
    def held_values(self) -> int:
        """Values sent and not dequeued."""
        return sum(
            element.__class__ is not tuple or element[0].__class__ is not Empty
            for _, element in self.queue
        )

    @property
    def taken(self) -> int:
        """Elements dequeued so far, bare stops included."""
        return self._spent + len(self._returned)

    @property
    def sent(self) -> int:
        """Elements sent so far, bare stops included."""
        return self.taken + len(self.queue)

    @property
    def head_cycle(self) -> int:
        """When the element that ``peek`` showed became visible."""
        return self.queue[0][0] + 1

    @property
    def last_taken_cycle(self) -> int | None:
        """The consumer's clock at its last dequeue; None where it made none."""
        cycle = self._recent[-1]
        return cycle if cycle >= 0 else None

    @property
    def peak_occupancy(self) -> int:
        """The most slots in use at once, a slot whose credit is on its way back among them.

        A channel of this depth would not have changed a clock. Elements that were never dequeued
        count at the end.
        """
        return max(len(self._recent) if self.taken else 0, len(self.queue))

    def send(self, element: Element) -> Awaitable[None]:
        """Append ``element``, after a wait for a credit where the channel is full."""
        ready_credits = self.credits
        if not ready_credits:
            return self._send_later(element)
        returned = ready_credits.popleft()
        unit = self.producer
        now = unit.now
        if returned >= now:
            self.full_cycles += returned - now
            self.credit_cycles += 1
            unit.now = now = returned + 1
        self.queue.append((now, element))
        if self.reader is not None:
            self._wake_reader()
        return DONE

    @types.coroutine
    def _send_later(self, element: Element) -> Switching[None]:
        yield from self._more_credits()
        self.send(element)

    async def send_at(self, element: Element, requested_cycle: int) -> None:
        """Like ``send``, visible no earlier than ``requested_cycle``."""
        await self.reserve()
        self._append_at(element, requested_cycle)

    def reserve(self) -> Awaitable[None]:
        """Wait for a credit and take it; ``put`` spends it."""
        ready_credits = self.credits
        if not ready_credits:
            return self._reserve_later()
        returned = ready_credits.popleft()
        unit = self.producer
        if returned >= unit.now:
            self.full_cycles += returned - unit.now
            self.credit_cycles += 1
            unit.now = returned + 1
        return DONE

    @types.coroutine
    def _reserve_later(self) -> Switching[None]:
        yield from self._more_credits()
        Channel.reserve(self)

    def _append_at(self, element: Element, requested_cycle: int) -> None:
        self.queue.append((max(requested_cycle - 1, self.producer.now), element))
        if self.reader is not None:
            self._wake_reader()

    def put(self, element: Element) -> None:
        """Append ``element`` at the producer's clock, on a credit reserved before."""
        if element[0].__class__ is Empty:
            self._bare_stops += 1
        self.queue.append((self.producer.now, element))
        if self.reader is not None:
            self._wake_reader()

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """Send a bare stop: an empty tensor closes ``level`` dimensions."""
        self._bare_stops += 1
        return self.send((Empty(empty_dimension), level))

    async def receive(self) -> Element | None:
        """Dequeue the next element; None at the end of the stream."""
        queue = self.queue
        if not queue:
            await self._arrival()
            if not queue:
                self.see_end()
                return None
        sent, element = queue.popleft()
        unit = self.consumer
        now = unit.now
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
        return element

    async def peek(self) -> Element | None:
        """Wait for the next element and leave it where it is; None at the end of the stream."""
        queue = self.queue
        if not queue:
            await self._arrival()
            if not queue:
                self.see_end()
                return None
        sent, element = queue[0]
        unit = self.consumer
        if sent >= unit.now:
            self.empty_cycles += sent + 1 - unit.now
            unit.now = sent + 1
        return element

    def take(self) -> Element:
        """Dequeue the element that ``peek`` showed."""
        sent, element = self.queue.popleft()
        now = self.consumer.now
        recent = self._recent
        if recent[0] < sent:
            recent.popleft()
        recent.append(now)
        self._returned.append(now)
        if self.writer is not None:
            self._wake_writer()
        return element

    def close(self) -> None:
        """End the stream at the producer's clock."""
        self.closed_cycle = self.producer.now
        if self.reader is not None:
            self._wake_reader()

    def grow(self, slots: int) -> None:
        """Add ``slots``, also while the producer waits for one."""
        self.depth += slots
        self._returned.extend([-1] * slots)
        self._spent -= slots
        if self.writer is not None:
            self._wake_writer()

    def discard(self, cycle: int) -> None:
        """Dequeue what is there: the consumer's operator has ended at ``cycle``.

        The producer is not held up by a reader that has gone: each element is dequeued as soon
        as it is visible.
        """
        while self.queue:
            sent, element = self.queue.popleft()
            taken_cycle = max(sent + 1, cycle)
            self._returned.append(taken_cycle)
            drop(element[0], taken_cycle)
            self.left_over += element[0].__class__ is not Empty
            if self.writer is not None:
                self._wake_writer()

    def stop(self) -> None:
        """Carry nothing more and wake nobody: the run is over."""
        self.reader = self.writer = None
        self._spent += len(self._returned)
        self._ungranted = 0
        self._returned = deque()
        self.credits = deque()

    def see_end(self) -> None:
        """Let the consumer's clock move to the end of the stream, which is there."""
        assert self.closed_cycle is not None
        unit = self.consumer
        if not self.ended:
            self.ended = True
            if self.closed_cycle > unit.now:
                self.empty_cycles += self.closed_cycle - unit.now
                unit.now = self.closed_cycle

    def idle(self, cycle: int) -> None:
        """Let the consumer's clock come to ``cycle``, waiting for an element."""
        unit = self.consumer
        if cycle > unit.now:
            self.empty_cycles += cycle - unit.now
            unit.now = cycle

    def _arrival(self) -> Awaitable[None]:
        """Wait until there is an element, or the stream has ended."""
        if self.closed_cycle is not None:
            return DONE
        unit = self.consumer
        self.reader = unit
        wait = self._receiving
        wait.since_cycle = unit.now
        return self.clock.park(unit, wait)

    @types.coroutine
    def _more_credits(self) -> Switching[deque[int]]:
        unit, clock = self.producer, self.clock
        if unit.now >= clock.pace_cycle:
            yield from clock.keep_pace(unit)
        if self._ungranted:
            grant = min(self._ungranted, _GRANT)
            self._ungranted -= grant
            self.credits.extend([-1] * grant)
            yield from clock.conductor.give_way(unit.strand)
            return self.credits
        if not self._returned:
            self.writer = unit
            wait = self._sending
            wait.since_cycle = unit.now
            yield from clock.park(unit, wait)
        batch = self._returned
        self._spent += len(batch)
        self._returned = self.credits
        self.credits = batch
        return batch

    def _wake_reader(self) -> None:
        self.reader = None
        self.clock.wake(self.consumer)

    def _wake_writer(self) -> None:
        self.writer = None
        self.clock.wake(self.producer)


class Discard:
    """Stands where nobody reads a secondary output: what is sent there is not produced."""

    def send(self, *_: object) -> Awaitable[None]:
        """Do nothing."""
        return DONE

    send_at = reserve = send_bare = send

    def put(self, element: Element) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
