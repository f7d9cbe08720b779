"""Bounded channels between units, with time stamps and credits.

For element n of a channel of depth K, with hops of F cycles forward and B backward, producer clock
p and consumer clock c:

* a credit: p = max(p, d[n-K] + B), where d[m] is the clock at which element m was dequeued;
* visible:  v[n] = max(requested, p + F);
* dequeue:  c = max(c, v[n]), d[n] = c. A peek moves c and frees nothing.

Nobody who reads a stamp adds to it. That of an element is v; that of a credit is when an element
sent on it is visible at the earliest, d + B + F: so it is compared with what ``send`` works out
anyway, and one addition for each element is left at either end.

Where the element or the credit is there, an operation completes without suspending: units run
ahead in their own time, and the stamps are the same under every schedule.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from fabric.engine.discard import DONE
from fabric.engine.hop import ONE_CYCLE, Hop
from fabric.engine.unit import Unit, Wait
from fabric.telling.causes import Operation
from fabric.telling.errors import ConfigurationError
from fabric.values.value import Element, Empty, drop

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.strand import Switching

__all__ = ["Channel"]

_GRANT: Final = 256
"""Credits handed out at a time, so that a deep channel costs memory only when it fills, and a unit
that fills one lets trio run something else now and then."""


class Channel:
    """A FIFO of ``depth`` elements from one unit to another.

    Attributes:
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        forward_cycles: from the sending of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which its credit is usable.
        queue: (the cycle in which it becomes visible, element), oldest first.
        credits: for each, when an element sent on it is visible at the earliest; oldest first.
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
        "_round_trip_cycles",
        "_sending",
        "_spent",
        "_ungranted",
        "backward_cycles",
        "clock",
        "closed_cycle",
        "consumer",
        "credit_cycles",
        "credits",
        "depth",
        "empty_cycles",
        "ended",
        "forward_cycles",
        "full_cycles",
        "left_over",
        "name",
        "producer",
        "queue",
        "reader",
        "writer",
    )

    def __init__(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        hop: Hop = ONE_CYCLE,
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
        self.forward_cycles: Final = hop.forward_cycles
        self.backward_cycles: Final = hop.backward_cycles
        self._round_trip_cycles: Final = hop.forward_cycles + hop.backward_cycles
        self.queue: deque[tuple[int, Element]] = deque()
        self.credits: deque[int] = deque([0] * min(depth, _GRANT))
        self._returned: deque[int] = deque()
        self._ungranted = depth - len(self.credits)
        # Credits of the latest dequeues, for as many slots as were ever in use at once: while the
        # oldest of them was not yet back when a new element was sent, one more is kept.
        self._recent: deque[int] = deque((0,))
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
        """When the next element becomes visible."""
        return self.queue[0][0]

    @property
    def head_sent_cycle(self) -> int:
        """When the next element set out; where it was requested for later, not before that hop."""
        return self.queue[0][0] - self.forward_cycles

    @property
    def last_sent_cycle(self) -> int | None:
        """When the latest of the elements that wait here set out; None where none does."""
        return self.queue[-1][0] - self.forward_cycles if self.queue else None

    @property
    def last_taken_cycle(self) -> int | None:
        """The consumer's clock at its last dequeue; None where it made none."""
        credit = self._recent[-1]
        return credit - self._round_trip_cycles if credit else None

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
            return self._with_more_credits(self.send, element)
        earliest = ready_credits.popleft()
        unit = self.producer
        visible = unit.now + self.forward_cycles
        if earliest > visible:
            self._wait_for_credit(earliest - visible)
            visible = earliest
        self.queue.append((visible, element))
        if self.reader is not None:
            self._wake_reader()
        return DONE

    def _wait_for_credit(self, cycles: int) -> None:
        """Let the producer's clock come to a credit: its way back is the last part of the wait."""
        returning = min(cycles, self.backward_cycles)
        self.full_cycles += cycles - returning
        self.credit_cycles += returning
        self.producer.now += cycles

    async def send_at(self, element: Element, requested_cycle: int) -> None:
        """Like ``send``, visible no earlier than ``requested_cycle``."""
        await self.reserve()
        self._append_at(element, requested_cycle)

    def reserve(self) -> Awaitable[None]:
        """Wait for a credit and take it; ``put`` spends it."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(Channel.reserve, self)
        waited = ready_credits.popleft() - self.forward_cycles - self.producer.now
        if waited > 0:
            self._wait_for_credit(waited)
        return DONE

    def _append_at(self, element: Element, requested_cycle: int) -> None:
        earliest = self.producer.now + self.forward_cycles
        self.queue.append((max(requested_cycle, earliest), element))
        if self.reader is not None:
            self._wake_reader()

    def put(self, element: Element) -> None:
        """Append ``element`` at the producer's clock, on a credit reserved before."""
        if element[0].__class__ is Empty:
            self._bare_stops += 1
        self.queue.append((self.producer.now + self.forward_cycles, element))
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
        visible, element = queue.popleft()
        unit = self.consumer
        now = unit.now
        if visible > now:
            self.empty_cycles += visible - now
            unit.now = now = visible
        earliest = now + self._round_trip_cycles
        recent = self._recent
        if recent[0] <= visible:
            recent.popleft()
        recent.append(earliest)
        self._returned.append(earliest)
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
        visible, element = queue[0]
        unit = self.consumer
        if visible > unit.now:
            self.empty_cycles += visible - unit.now
            unit.now = visible
        return element

    def take(self) -> Element:
        """Dequeue the element that ``peek`` showed."""
        visible, element = self.queue.popleft()
        earliest = self.consumer.now + self._round_trip_cycles
        recent = self._recent
        if recent[0] <= visible:
            recent.popleft()
        recent.append(earliest)
        self._returned.append(earliest)
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
        self._returned.extend([0] * slots)
        self._spent -= slots
        if self.writer is not None:
            self._wake_writer()

    def discard(self, cycle: int) -> None:
        """Dequeue what is there: the consumer's operator has ended at ``cycle``.

        The producer is not held up by a reader that has gone: each element is dequeued as soon
        as it is visible.
        """
        while self.queue:
            visible, element = self.queue.popleft()
            taken_cycle = max(visible, cycle)
            self._returned.append(taken_cycle + self._round_trip_cycles)
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
    def _with_more_credits(
        self, go_on: Callable[..., object], *arguments: object
    ) -> Switching[None]:
        """Wait until there are credits, and then ``go_on``."""
        unit, clock = self.producer, self.clock
        if unit.now >= clock.pace_cycle:
            yield from clock.keep_pace(unit)
        if self._ungranted:
            grant = min(self._ungranted, _GRANT)
            self._ungranted -= grant
            self.credits.extend([0] * grant)
            yield from clock.conductor.give_way(unit.strand)
        else:
            if not self._returned:
                self.writer = unit
                wait = self._sending
                wait.since_cycle = unit.now
                yield from clock.park(unit, wait)
            batch = self._returned
            self._spent += len(batch)
            self._returned = self.credits
            self.credits = batch
        go_on(*arguments)

    def _wake_reader(self) -> None:
        self.reader = None
        self.clock.wake(self.consumer)

    def _wake_writer(self) -> None:
        self.writer = None
        self.clock.wake(self.producer)
