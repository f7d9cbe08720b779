"""Bounded channels between units, with time stamps and credits.

For element n of a channel of depth K, with hops of F cycles forward and B backward, producer clock
p and consumer clock c:

* a credit: p = max(p, d[n-K] + B), where d[m] is the clock at which element m was dequeued;
* visible:  v[n] = max(requested, p + F);
* dequeue:  c = max(c, v[n]), d[n] = c. A peek moves c and frees nothing.

With an interval of I cycles a channel is one of wires, which take one element in I cycles and give
one: p is at least I later than when element n-1 was sent, element n is shown from d[n-1] + I on,
and the end of the stream goes forward as long as an element does.

Nobody who reads a stamp adds to it: that of an element is v, that of a credit is when it is usable,
d + B.

Where the element or the credit is there, an operation completes without suspending: units run
ahead in their own time, and the stamps are the same under every schedule.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fabric.engine.channel_counters import GRANT, NOTHING, ChannelCounters
from fabric.engine.discard import DONE
from fabric.values.value import Element, Empty, drop

if TYPE_CHECKING:
    from fabric.engine.strand import Switching

__all__ = ["Channel"]


class Channel(ChannelCounters):
    """A FIFO of ``depth`` elements from one unit to another."""

    __slots__ = ()

    def send(self, element: Element) -> Awaitable[None]:
        """Append ``element``, after a wait for a credit where the channel is full."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(self.send, element)
        usable = ready_credits.popleft()
        now = self.producer.now
        if self.interval_cycles:
            usable = max(usable, self.next_send_cycle)
            self.next_send_cycle = max(usable, now) + self.interval_cycles
        if usable > now:
            self._wait_for_credit(usable - now)
            now = usable
        self.queue.append((now + self.forward_cycles, element))
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
        """Like ``send``, visible no earlier than ``requested_cycle``.

        Where that counts from the unit's clock it is given as ``ports.now`` and so many cycles:
        then a record of the run knows that it moves with the clock under other depths.
        """
        await self.reserve()
        self._append_at(element, requested_cycle)

    def reserve(self) -> Awaitable[None]:
        """Wait for a credit and take it; ``put`` spends it."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(Channel.reserve, self)
        usable = max(ready_credits.popleft(), self.next_send_cycle)
        waited = usable - self.producer.now
        if waited > 0:
            self._wait_for_credit(waited)
        return DONE

    def _append_at(self, element: Element, requested_cycle: int) -> None:
        earliest = self.producer.now + self.forward_cycles
        self._note_sent()
        self.queue.append((max(requested_cycle, earliest), element))
        if self.reader is not None:
            self._wake_reader()

    def put(self, element: Element) -> None:
        """Append ``element`` at the producer's clock, on a credit reserved before."""
        if element[0].__class__ is Empty:
            self._bare_stops += 1
        self._note_sent()
        self.queue.append((self.producer.now + self.forward_cycles, element))
        if self.reader is not None:
            self._wake_reader()

    def _note_sent(self) -> None:
        """Let the next element wait until the wires are free again."""
        if self.interval_cycles:
            self.next_send_cycle = self.producer.now + self.interval_cycles

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """Send a bare stop: an empty tensor closes ``level`` dimensions."""
        if not self.credits:
            return self._with_more_credits(self.send_bare, level, empty_dimension)
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
        shown = max(visible, self.next_take_cycle) if self.interval_cycles else visible
        if shown > now:
            self.empty_cycles += shown - now
            unit.now = now = shown
        if self.interval_cycles:
            self.next_take_cycle = now + self.interval_cycles
        usable = now + self.backward_cycles
        recent = self._recent
        if not recent:
            self._last_usable_cycle = usable
        elif recent[0] + self.forward_cycles <= visible:
            recent.popleft()
            recent.append(usable)
        else:
            self._use_one_more(usable)
        self._returned.append(usable)
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
        if self.interval_cycles:
            visible = max(visible, self.next_take_cycle)
        unit = self.consumer
        if visible > unit.now:
            self.empty_cycles += visible - unit.now
            unit.now = visible
        return element

    def take(self) -> Element:
        """Dequeue the element that ``peek`` showed."""
        visible, element = self.queue.popleft()
        if self.interval_cycles:
            self.next_take_cycle = self.consumer.now + self.interval_cycles
        self._free(visible - self.forward_cycles)
        return element

    def _free(self, sent_cycle: int) -> None:
        """Give back the slot of an element that was sent then; ``receive`` has it written out."""
        usable = self.consumer.now + self.backward_cycles
        recent = self._recent
        if not recent:
            self._last_usable_cycle = usable
        elif recent[0] <= sent_cycle:
            recent.popleft()
            recent.append(usable)
        else:
            self._use_one_more(usable)
        self._returned.append(usable)
        if self.writer is not None:
            self._wake_writer()

    def _use_one_more(self, usable_cycle: int) -> None:
        """Know that more slots were in use at once than ever before."""
        self._peak_slots += 1
        if self._peak_slots < self.depth:
            self._recent.append(usable_cycle)
        else:
            self._recent.clear()
            self._last_usable_cycle = usable_cycle

    def close(self) -> None:
        """End the stream at the producer's clock."""
        self.closed_cycle = self.producer.now
        if self.interval_cycles:
            self.closed_cycle += self.forward_cycles
        if self.reader is not None:
            self._wake_reader()

    def hand_over(self, sent: Iterable[tuple[int, Element]], closed_cycle: int | None) -> None:
        """Append what the producer has sent elsewhere, visible in these cycles, and its end."""
        self.queue.extend(sent)
        self.closed_cycle = closed_cycle
        if self.reader is not None:
            self._wake_reader()

    def fetch(self) -> Sequence[tuple[int, Element]]:
        """Return what was sent and is dequeued elsewhere, and the cycles it is visible in."""
        fetched, self.queue = self.queue, deque()
        return fetched

    def give_back(self, usable_cycles: Iterable[int]) -> None:
        """Return the credits of elements that the consumer has dequeued elsewhere."""
        self._returned.extend(usable_cycles)
        if self.writer is not None:
            self._wake_writer()

    @property
    def returned_cycles(self) -> Iterable[int]:
        """When each credit is usable that the producer has not been given so far."""
        return self._returned

    def collect(self) -> None:
        """Know that the producer has been given them elsewhere."""
        self._spent += len(self._returned)
        self._returned = deque()

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
            self._returned.append(taken_cycle + self.backward_cycles)
            drop(element[0], taken_cycle)
            self.left_over += element[0].__class__ is not Empty
            if self.writer is not None:
                self._wake_writer()

    def stop(self) -> None:
        """Carry nothing more and wake nobody: the run is over."""
        self.reader = self.writer = None
        self._spent += len(self._returned)
        self._ungranted = 0
        self._returned = self.credits = NOTHING

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
            grant = min(self._ungranted, GRANT)
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
