"""Bounded channels with time stamps and credits, and their sinks.

The cycle rules are in ``channel_rule``. An operation whose element or credit is available completes
without suspending: units run ahead in their own time, and every schedule gives the same stamps.
"""

from __future__ import annotations

import contextlib
import types
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Final

from fabric.graph.values.dims import Claim
from fabric.graph.values.value import Element, Empty, drop
from fabric.timing.engine.channel_counters import GRANT, NOTHING, ChannelCounters
from fabric.timing.engine.channel_rule import (
    closed_from,
    credit_part,
    dropped_at,
    next_from,
    set_out_at,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)

if TYPE_CHECKING:
    from fabric.timing.engine.conductor import Switching


class Channel(ChannelCounters):
    """A FIFO of ``depth`` elements from one unit to another."""

    __slots__ = ()

    def send(self, element: Element) -> Awaitable[None]:
        """Append ``element``; wait for a credit if the channel is full."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(self.send, element)
        self._spend(ready_credits.popleft())
        self._append(element)
        return DONE

    def _spend(self, usable_cycle: int) -> None:
        """Spend a credit; the producer's clock becomes at least its cycle."""
        unit = self.producer
        spent_cycle = spent_at(unit.now, usable_cycle, self.next_send_cycle)
        waited = spent_cycle - unit.now
        if waited:
            returning = credit_part(waited, self.backward_cycles)
            self.full_cycles += waited - returning
            self.credit_cycles += returning
            unit.now = spent_cycle

    def _append(self, element: Element, requested_cycle: int = 0) -> None:
        """Append ``element`` at the producer's clock, on a credit that was spent before."""
        now = self.producer.now
        self.queue.append((visible_from(now, self.forward_cycles, requested_cycle), element))
        if self.interval_cycles:
            self.next_send_cycle = next_from(now, self.interval_cycles)
        if self.reader is not None:
            self._wake_reader()

    async def send_at(self, element: Element, requested_cycle: int) -> None:
        """Like ``send``, visible no earlier than ``requested_cycle``.

        Cycles after the unit's clock are ``ports.now`` plus a number: then a record of the run
        moves them with the clock under other depths.
        """
        await self.reserve()
        self._append(element, requested_cycle)

    def reserve(self) -> Awaitable[None]:
        """Wait for a credit and take it; ``put`` spends it."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(Channel.reserve, self)
        self._spend(ready_credits.popleft())
        return DONE

    def put(self, element: Element) -> None:
        """Append ``element`` at the producer's clock, on a credit reserved before."""
        if element[0].__class__ is Empty:
            self._bare_stops += 1
        self._append(element)

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
        shown = shown_from(visible, self.next_take_cycle)
        if shown > unit.now:
            self.empty_cycles += shown - unit.now
            unit.now = shown
        self._free(visible, unit.now)
        return element

    async def peek(self) -> Element | None:
        """Wait for the next element without dequeuing it; None at the end of the stream."""
        queue = self.queue
        if not queue:
            await self._arrival()
            if not queue:
                self.see_end()
                return None
        visible, element = queue[0]
        shown = shown_from(visible, self.next_take_cycle)
        unit = self.consumer
        if shown > unit.now:
            self.empty_cycles += shown - unit.now
            unit.now = shown
        return element

    def take(self) -> Element:
        """Dequeue the element that ``peek`` showed."""
        visible, element = self.queue.popleft()
        self._free(visible, self.consumer.now)
        return element

    def hear(self) -> Element:
        """Dequeue an element in the cycle in which it is shown, behind the consumer's clock.

        For elements that arrive while the unit does something else; all earlier ones have been
        dequeued.
        """
        cycle = self.head_cycle
        visible, element = self.queue.popleft()
        self._free(visible, cycle)
        return element

    def _free(self, visible_cycle: int, now: int) -> None:
        """Free at ``now`` the slot of an element that was visible at ``visible_cycle``."""
        if self.interval_cycles:
            self.next_take_cycle = next_from(now, self.interval_cycles)
        usable = usable_from(now, self.backward_cycles)
        recent = self._recent
        if not recent:
            self._last_usable_cycle = usable
        elif recent[0] <= set_out_at(visible_cycle, self.forward_cycles):
            recent.popleft()
            recent.append(usable)
        else:
            self._use_one_more(usable)
        self._returned.append(usable)
        if self.writer is not None:
            self._wake_writer()

    def _use_one_more(self, usable_cycle: int) -> None:
        """Raise the peak of used slots."""
        self._peak_slots += 1
        if self._peak_slots < self.depth:
            self._recent.append(usable_cycle)
        else:
            self._recent.clear()
            self._last_usable_cycle = usable_cycle

    def close(self) -> None:
        """End the stream at the producer's clock."""
        self.closed_cycle = closed_from(
            self.producer.now, self.forward_cycles, self.interval_cycles
        )
        if self.reader is not None:
            self._wake_reader()

    def hand_over(self, sent: Iterable[tuple[int, Element]], closed_cycle: int | None) -> None:
        """Append elements that the producer sent elsewhere, with visible cycles, and the end."""
        self.queue.extend(sent)
        self.closed_cycle = closed_cycle
        if self.reader is not None:
            self._wake_reader()

    def fetch(self) -> Sequence[tuple[int, Element]]:
        """Return elements and visible cycles for a consumer that dequeues elsewhere."""
        fetched, self.queue = self.queue, deque()
        return fetched

    def give_back(self, usable_cycles: Iterable[int]) -> None:
        """Return the credits of elements that the consumer has dequeued elsewhere."""
        self._returned.extend(usable_cycles)
        if self.writer is not None:
            self._wake_writer()

    @property
    def returned_cycles(self) -> Iterable[int]:
        """Cycles of credits that the producer has not received yet."""
        return self._returned

    def collect(self) -> None:
        """Note that the producer has received these credits elsewhere."""
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
        """Dequeue queued elements after the consumer's operator has ended at ``cycle``."""
        while self.queue:
            visible, element = self.queue.popleft()
            taken_cycle = dropped_at(visible, cycle)
            self._returned.append(usable_from(taken_cycle, self.backward_cycles))
            drop(element[0], taken_cycle)
            self.left_over += element[0].__class__ is not Empty
            if self.writer is not None:
                self._wake_writer()

    def stop(self) -> None:
        """Carry nothing more: the run is over."""
        self.reader = self.writer = None
        self._spent += len(self._returned)
        self._ungranted = 0
        self._returned = self.credits = NOTHING

    def see_end(self) -> None:
        """Move the consumer's clock to the end of the stream, which has arrived."""
        assert self.closed_cycle is not None
        unit = self.consumer
        if not self.ended:
            self.ended = True
            if self.closed_cycle > unit.now:
                self.empty_cycles += self.closed_cycle - unit.now
                unit.now = self.closed_cycle

    def idle(self, cycle: int) -> None:
        """Let the consumer wait for an element until ``cycle``."""
        unit = self.consumer
        if cycle > unit.now:
            self.empty_cycles += cycle - unit.now
            unit.now = cycle

    def _arrival(self) -> Awaitable[None]:
        """Wait for an element or the end of the stream."""
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
        """Wait for credits, then call ``go_on``."""
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


@types.coroutine
def _nothing() -> Generator[None, None, None]:
    yield from ()


DONE: Final = _nothing()
"""Awaitable of a ``send`` that did not wait."""


with contextlib.suppress(StopIteration):
    DONE.send(None)


class Discard:
    """The sink of an unread output; its values are not computed."""

    def send(self, *_: object) -> Awaitable[None]:
        """Do nothing."""
        return DONE

    send_at = reserve = send_bare = send

    def put(self, element: Element) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class AssumedSink:
    """Wraps a channel and compares sizes of groups with the shape that the program states.

    A number is compared when its group closes. ``sizes`` has, by dimension, the smallest and the
    largest closed group, for sizes that depend on other streams.
    """

    __slots__ = ("_counts", "_groups", "_numbers", "channel", "claims", "sizes")

    def __init__(self, channel: Channel, claims: tuple[Claim, ...], rank: int) -> None:
        self.channel: Final = channel
        self.claims: Final = claims
        self.sizes: dict[int, tuple[int, int]] = {}
        self._counts = [0] * (rank + 1)
        self._groups = [0] * (rank + 1)
        self._numbers = {
            claim.dimension: claim for claim in claims if isinstance(claim.assumed, int)
        }

    def send(self, element: Element) -> Awaitable[None]:
        """See ``Channel.send``."""
        self._count(element)
        return self.channel.send(element)

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        self._count(element)
        return self.channel.send_at(element, requested_cycle)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """See ``Channel.send_bare``."""
        self._count((Empty(empty_dimension), level))
        return self.channel.send_bare(level, empty_dimension)

    def reserve(self) -> Awaitable[None]:
        """See ``Channel.reserve``."""
        return self.channel.reserve()

    def put(self, element: Element) -> None:
        """See ``Channel.put``."""
        self._count(element)
        self.channel.put(element)

    def close(self) -> None:
        """See ``Channel.close``."""
        self.channel.close()

    def finish(self) -> None:
        """Close the outermost dimension, which no stop closes.

        Raises:
            ProgramError: its size differs from the stated one.
        """
        self._close(len(self._counts) - 1)

    def count_sent(
        self, counts: list[int], groups: list[int], sizes: list[tuple[int, int]]
    ) -> None:
        """Adopt counts of elements sent elsewhere, by dimension."""
        self._counts, self._groups = counts, groups
        self.sizes = {dimension: size for dimension, size in enumerate(sizes) if groups[dimension]}

    @property
    def expected(self) -> list[int | None]:
        """By dimension, the required size of each group; None if it is not a number."""
        claims = [self._numbers.get(dimension) for dimension in range(len(self._counts))]
        return [
            each.assumed if each is not None and isinstance(each.assumed, int) else None
            for each in claims
        ]

    def _count(self, element: Element) -> None:
        value, stop = element
        counts = self._counts
        empty = 0
        if value.__class__ is Empty:
            empty = value.dimension
        else:
            counts[0] += 1
        for dimension in range(min(stop, len(counts) - 1)):
            # Inside an empty dimension there are no groups to close.
            if dimension >= empty or counts[dimension]:
                self._close(dimension)
                counts[dimension + 1] += 1

    def _close(self, dimension: int) -> None:
        size = self._counts[dimension]
        self._counts[dimension] = 0
        self._groups[dimension] += 1
        low, high = self.sizes.get(dimension, (size, size))
        self.sizes[dimension] = min(low, size), max(high, size)
        claim = self._numbers.get(dimension)
        if claim is not None and size != claim.assumed:
            outermost = dimension == len(self._counts) - 1
            assert isinstance(claim.assumed, int)
            raise claim.refuted_by(
                size, claim.assumed, None if outermost else self._groups[dimension]
            )


class LaterSink:
    """Wraps a sink; cycles of ``send_at`` count from a later one than 0.

    Attributes:
        next_cycle: one after the latest requested cycle, or the first cycle.
    """

    __slots__ = (
        "_since_cycle", "_sink", "close", "next_cycle", "put", "reserve", "send", "send_bare"
    )  # fmt: skip

    def __init__(self, sink: Channel | AssumedSink | Discard, since_cycle: int) -> None:
        self._sink: Final = sink
        self._since_cycle: Final = since_cycle
        self.next_cycle = since_cycle
        self.send: Final = sink.send
        self.send_bare: Final = sink.send_bare
        self.reserve: Final = sink.reserve
        self.put: Final = sink.put
        self.close: Final = sink.close

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        cycle = requested_cycle + self._since_cycle
        self.next_cycle = max(self.next_cycle, index(cycle) + 1)
        return self._sink.send_at(element, cycle)
