"""Bounded channels with time stamps and credits, and their sinks.

The cycle rules are in ``channel_rule``. An operation completes without suspending if its element or
credit is available: units run ahead in their own time, and every schedule gives the same stamps.

On shared links (``way``), an element leaves the links of its route at a cycle t. It is visible at
max(requested, t + F), where F is the latency of the route. An element on links holds its slot.
Credits take no bandwidth of links.
"""

from __future__ import annotations

import contextlib
import types
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final

from fabric.graph.hardware.latency import Hop
from fabric.graph.values.dims import Claim
from fabric.graph.values.value import Element, Empty, drop, size_bytes
from fabric.messages.causes import Operation
from fabric.messages.errors import ConfigurationError
from fabric.timing.engine.channel_rule import (
    closed_from,
    credit_part,
    dropped_at,
    links_part,
    next_from,
    seen_at,
    set_out_at,
    shown_from,
    spent_at,
    taken_at,
    usable_from,
    visible_from,
)
from fabric.timing.engine.unit import Unit, Wait

if TYPE_CHECKING:
    from fabric.timing.engine.clock import VirtualClock, Way
    from fabric.timing.engine.conductor import Switching
    from fabric.timing.engine.log import ChannelLog

_NOTHING: Final[deque[Any]] = deque(maxlen=0)
"""Shared by channels that are closed or not opened."""

_GRANT: Final = 256
"""Credits granted at a time.

So deep channels use memory only when they fill, and other tasks run after each grant.
"""


class Channel:
    """A FIFO of ``depth`` elements from one unit to another.

    Attributes:
        forward_cycles: from the send of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which its credit is usable.
        interval_cycles: least cycles between two elements at one end; 0 or 1.
        next_send_cycle, next_take_cycle: first cycle of the next send and of the next dequeue;
            0 without an interval.
        queue: (visible cycle, element), oldest first.
        credits: usable cycles, oldest first.
        empty_cycles: cycles the consumer waited for an element or the end.
        full_cycles: cycles the producer waited for the consumer to take an element.
        credit_cycles: cycles the producer waited for a credit that was on its way back.
        closed_cycle: the producer's final clock; one hop later with an interval.
        seen: whether the consumer has looked at the next element.
        left_over: number of values that came after the consumer's operator had ended.
        log: receives the operations of tasks; None if the run has no log.
        way: the elements on shared links; None without shared links.
    """

    __slots__ = (
        "_bare_stops",
        "_last_usable_cycle",
        "_peak_slots",
        "_receiving",
        "_recent",
        "_returned",
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
        "interval_cycles",
        "left_over",
        "log",
        "name",
        "next_send_cycle",
        "next_take_cycle",
        "producer",
        "queue",
        "reader",
        "seen",
        "way",
        "writer",
    )

    def __init__(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        hop: Hop,
        interval_cycles: int,
        way: Way | None,
    ) -> None:
        if depth < 1:
            raise ConfigurationError(f"channel {name}: depth is {depth}: expected at least 1")
        self.name: Final = name
        self.depth = depth
        self.producer: Final = producer
        self.consumer: Final = consumer
        self.clock: Final = clock
        self.forward_cycles: Final = hop.forward_cycles
        self.backward_cycles: Final = hop.backward_cycles
        self.interval_cycles: Final = interval_cycles
        self.way: Final = way
        self.log: ChannelLog | None = None
        self.next_send_cycle = self.next_take_cycle = 0
        self.queue: deque[tuple[int, Element]] = _NOTHING
        self.credits: deque[int] = _NOTHING
        self._returned: deque[int] = _NOTHING
        self._ungranted = 0
        self._recent: deque[int] = _NOTHING
        self._peak_slots = 1
        self._last_usable_cycle = 0
        self._spent = 0
        self._bare_stops = 0
        self.seen = False
        self.left_over = 0
        self.empty_cycles = 0
        self.full_cycles = 0
        self.credit_cycles = 0
        self.reader: Unit | None = None
        self.writer: Unit | None = None
        self.closed_cycle: int | None = None
        self.ended = False

    def open(self) -> None:
        self.queue = deque()
        self.credits = deque([0] * min(self.depth, _GRANT))
        self._returned = deque()
        self._ungranted = self.depth - len(self.credits)
        # Credits of the latest dequeues, one for each slot that has been in use. If the oldest
        # credit is not yet usable when an element is sent, the element took one more slot, and one
        # more credit is kept. Empty once all slots have been in use.
        self._recent = deque((0,) if self.depth > 1 else ())
        self._receiving = Wait(Operation.RECEIVE, (self,), 0)
        self._sending = Wait(Operation.SEND, (self,), 0)

    def send(self, element: Element) -> Awaitable[None]:
        """Append ``element`` once there is a credit."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(self.send, element)
        waited = self._spend(ready_credits.popleft())
        self._append(element)
        if self.log is not None:
            self.log.sent(element, waited)
        return DONE

    def _spend(self, usable_cycle: int) -> int:
        """Spend a credit and return the cycles that the producer waited for it."""
        unit = self.producer
        spent_cycle = spent_at(unit.now, usable_cycle, self.next_send_cycle)
        waited = spent_cycle - unit.now
        if waited:
            returning = credit_part(waited, self.backward_cycles)
            self.full_cycles += waited - returning
            self.credit_cycles += returning
            unit.now = spent_cycle
            unit.next_look_cycle = next_from(spent_cycle, unit.registers.wait_cycles)
        return waited

    def _append(self, element: Element, requested_cycle: int = 0) -> None:
        now = self.producer.now
        if self.interval_cycles:
            self.next_send_cycle = next_from(now, self.interval_cycles)
            if self.producer.registers.end_cycles:
                self.producer.next_end_cycle = self.next_send_cycle
        if self.way is not None:
            self._send_over_links(self.way, element, requested_cycle)
            return
        self.queue.append((visible_from(now, self.forward_cycles, requested_cycle), element))
        if self.reader is not None:
            self._wake_reader()

    def _send_over_links(self, way: Way, element: Element, requested_cycle: int) -> None:
        now, carried_bytes = self.producer.now, size_bytes(element[0])
        way.sent.append((now, requested_cycle, element))
        way.bytes_sent += carried_bytes
        way.links.begin(way.flow, now, carried_bytes)
        if self.log is not None:
            self.log.sent_over_links(carried_bytes)

    def arrive(self, cycle: int) -> None:
        """Show the consumer the oldest element on links, which left them at ``cycle``."""
        way = self.way
        assert way is not None
        sent_cycle, requested_cycle, element = way.sent.popleft()
        visible = visible_from(cycle, self.forward_cycles, requested_cycle)
        unhindered = visible_from(sent_cycle, self.forward_cycles, requested_cycle)
        way.arrived.append((sent_cycle, visible - unhindered))
        self.queue.append((visible, element))
        if self.log is not None:
            self.log.crossed(cycle, visible)
        if not way.sent:
            self.closed_cycle = way.closed_cycle
        if self.reader is not None:
            self._wake_reader()

    async def send_at(self, element: Element, requested_cycle: int) -> None:
        """Send ``element``, visible in ``requested_cycle`` or later.

        Write a cycle that depends on the unit's clock as ``ports.now`` plus a number. A record of
        the run can move such a cycle with the clock under other depths.
        """
        before_cycle = self.producer.now
        await self.reserve(put_later=False)
        # ``int``, because the consumer's clock must not become a ``Reading``.
        self._append(element, int(requested_cycle))
        if self.log is not None:
            self.log.sent_at(element, requested_cycle, self.producer.now - before_cycle)

    def reserve(self, put_later: bool = True) -> Awaitable[None]:
        """Wait for a credit and keep it for ``put``."""
        ready_credits = self.credits
        if not ready_credits:
            return self._with_more_credits(self.reserve, put_later)
        waited = self._spend(ready_credits.popleft())
        if self.log is not None and put_later:
            self.log.reserve(waited)
        return DONE

    def put(self, element: Element) -> None:
        """Append ``element`` at the producer's clock, with a credit of ``reserve``."""
        if element[0].__class__ is Empty:
            self._bare_stops += 1
        if self.log is not None:
            self.log.put(element)
        self._append(element)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """Send a bare stop, with which an empty tensor closes ``level`` dimensions."""
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
        waited = self._look(visible)
        self._free(visible, self.consumer.now)
        if self.log is not None:
            self.log.took(waited)
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
        if self.seen:
            return element
        waited = self._look(visible)
        self.seen = True
        if self.log is not None:
            self.log.peeked(waited)
        return element

    def take(self) -> Element:
        """Dequeue the element that ``peek`` showed."""
        visible, element = self.queue.popleft()
        self._free(visible, self.consumer.now)
        if self.log is not None:
            self.log.took()
        return element

    def hear(self) -> Element:
        """Dequeue the next element in the cycle that shows it, which is before the clock.

        For elements that arrive while the unit does something else.
        """
        cycle = self.head_cycle
        visible, element = self.queue.popleft()
        self._free(visible, cycle)
        if self.log is not None:
            self.log.heard(cycle)
        return element

    def _look(self, visible_cycle: int) -> int:
        """Let the consumer see the next element; return the cycles that it waited."""
        unit = self.consumer
        shown = shown_from(visible_cycle, self.next_take_cycle)
        waited = seen_at(unit.now, shown, 0 if self.seen else unit.next_look_cycle) - unit.now
        if waited:
            self._starve(waited, visible_cycle)
        return waited

    def _starve(self, waited: int, visible_cycle: int) -> None:
        """Let the consumer wait ``waited`` cycles for an element with this visible cycle."""
        way, before_cycle = self.way, self.consumer.now
        self.empty_cycles += waited
        self.consumer.now = now = before_cycle + waited
        if way is not None and way.arrived:
            links_cycles = links_part(before_cycle, now, visible_cycle, way.arrived[0][1])
            way.links_cycles += links_cycles
            if links_cycles and self.log is not None:
                self.log.waited_for_links(links_cycles)

    def _free(self, visible_cycle: int, now: int) -> None:
        """Free at ``now`` the slot of an element that was visible at ``visible_cycle``."""
        self.seen = False
        if self.way is not None:
            # On shared links, the slot is in use from the sending on.
            visible_cycle = visible_from(self.way.arrived.popleft()[0], self.forward_cycles, 0)
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
        self._peak_slots += 1
        if self._peak_slots < self.depth:
            self._recent.append(usable_cycle)
        else:
            self._recent.clear()
            self._last_usable_cycle = usable_cycle

    def close(self) -> None:
        """End the stream at the producer's clock."""
        unit = self.producer
        ended_cycle = max(unit.now, unit.next_end_cycle)
        closed_cycle = closed_from(ended_cycle, self.forward_cycles, self.interval_cycles)
        if self.way is not None and self.way.sent:
            self.way.closed_cycle = closed_cycle
            return
        self.closed_cycle = closed_cycle
        if self.reader is not None:
            self._wake_reader()

    def see_end(self) -> None:
        """Move the consumer's clock to the end of the stream, which has arrived."""
        assert self.closed_cycle is not None
        if self.ended:
            return
        self.ended = True
        unit = self.consumer
        shown = self.closed_cycle
        if unit.registers.end_cycles:
            shown = shown_from(shown, self.next_take_cycle)
        waited = seen_at(unit.now, shown, unit.next_look_cycle) - unit.now
        self.empty_cycles += waited
        unit.now += waited
        if self.log is not None:
            self.log.ended(waited)

    def idle(self, cycle: int) -> None:
        """Let the consumer wait until ``cycle`` for an element."""
        unit = self.consumer
        waited = seen_at(unit.now, cycle, unit.next_look_cycle) - unit.now
        if waited:
            self._starve(waited, self.queue[0][0] if self.queue else cycle)
        if self.log is not None:
            until = min(self.head_sent_cycle, cycle) if self.queue else cycle
            self.log.idled(waited, until)

    def discard(self, cycle: int) -> None:
        """Dequeue queued elements after the consumer's operator has ended at ``cycle``."""
        while self.queue:
            visible, element = self.queue.popleft()
            if self.way is not None:
                self.way.arrived.popleft()
            taken_cycle = dropped_at(visible, cycle)
            self._returned.append(usable_from(taken_cycle, self.backward_cycles))
            drop(element[0], taken_cycle)
            self.left_over += element[0].__class__ is not Empty
            if self.log is not None:
                self.log.left_over(taken_cycle)
            if self.writer is not None:
                self._wake_writer()

    def stop(self) -> None:
        """Carry no more elements and credits: the run is over."""
        self.reader = self.writer = None
        self._spent += len(self._returned)
        self._ungranted = 0
        self._returned = self.credits = _NOTHING

    def _arrival(self) -> Awaitable[None]:
        """Wait for an element or the end of the stream."""
        if self.closed_cycle is not None:
            return DONE
        self.reader = unit = self.consumer
        wait = self._receiving
        wait.since_cycle = unit.now
        return self.clock.park(unit, wait)

    @types.coroutine
    def _with_more_credits(
        self, operation: Callable[..., object], *arguments: object
    ) -> Switching[None]:
        """Wait for credits, then repeat ``operation``."""
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
        operation(*arguments)

    def _wake_reader(self) -> None:
        self.reader = None
        self.clock.wake(self.consumer)

    def _wake_writer(self) -> None:
        self.writer = None
        self.clock.wake(self.producer)

    @property
    def elements(self) -> int:
        """Values dequeued so far."""
        held = self.held_elements
        bare = self._bare_stops - (held - self.held_values) if held else self._bare_stops
        return self.taken - bare

    @property
    def under_way(self) -> int:
        """Elements sent that are still on shared links."""
        return 0 if self.way is None else len(self.way.sent)

    @property
    def held_elements(self) -> int:
        """Elements sent and not dequeued, bare stops included."""
        return len(self.queue) + self.under_way

    @property
    def held_values(self) -> int:
        """Values sent and not dequeued."""
        held = [element for _, element in self.queue]
        if self.way is not None:
            held += [element for _, _, element in self.way.sent]
        return sum(
            element.__class__ is not tuple or element[0].__class__ is not Empty for element in held
        )

    @property
    def taken(self) -> int:
        """Elements dequeued so far, bare stops included."""
        return self._spent + len(self._returned)

    @property
    def sent(self) -> int:
        """Elements sent so far, bare stops included."""
        return self.taken + self.held_elements

    @property
    def head_cycle(self) -> int:
        """The first cycle in which the consumer can dequeue the next element."""
        return shown_from(self.queue[0][0], self.next_take_cycle)

    @property
    def head_sent_cycle(self) -> int:
        """One hop before ``head_cycle``: the next element counts as sent in this cycle."""
        return set_out_at(self.head_cycle, self.forward_cycles)

    @property
    def last_sent_cycle(self) -> int | None:
        """The cycle in which the latest held element was sent; None if nothing is held."""
        if self.way is not None:
            latest = self.way.sent or self.way.arrived
            return latest[-1][0] if latest else None
        return set_out_at(self.queue[-1][0], self.forward_cycles) if self.queue else None

    @property
    def last_taken_cycle(self) -> int | None:
        """The consumer's clock at its last dequeue; None before the first."""
        usable = self._recent[-1] if self._recent else self._last_usable_cycle
        return taken_at(usable, self.backward_cycles) if usable else None

    @property
    def peak_occupancy(self) -> int:
        """The most slots in use in one cycle, including slots with a credit on its way back.

        A slot counts from one hop before its element is visible. Elements that were never dequeued
        count. Elements that came after the consumer's operator had ended do not.
        """
        return max(self._peak_slots if self.taken else 0, self.held_elements)

    # The compiled loop calls the rest, to copy its progress to channels.

    def hand_over(self, sent: Sequence[tuple[int, Element]], closed_cycle: int | None) -> None:
        """Append elements that the producer sent in the loop, with visible cycles, and the end."""
        self.queue.extend(sent)
        self.closed_cycle = closed_cycle
        if self.reader is not None:
            self._wake_reader()

    def fetch(self) -> None:
        """Empty the queue after the loop has copied its elements."""
        self.queue = deque()

    def give_back(self, usable_cycles: Iterable[int]) -> None:
        """Return the credits of elements that the consumer has dequeued in the loop."""
        self._returned.extend(usable_cycles)
        if self.writer is not None:
            self._wake_writer()

    def collect(self) -> list[int]:
        """Return and remove the returned credits: the cycles from which they are usable."""
        usable_cycles = [*self._returned]
        self._spent += len(usable_cycles)
        self._returned = deque()
        return usable_cycles

    def hold(self, queue: Iterable[tuple[int, Element]]) -> None:
        """Fill the queue with elements and their visible cycles."""
        self.queue = deque(queue) or _NOTHING

    def count_sent(self, bare_stops: int, full_cycles: int, credit_cycles: int) -> None:
        """Set the producer's counts."""
        self._bare_stops = bare_stops
        self.full_cycles = full_cycles
        self.credit_cycles = credit_cycles

    def count_taken(
        self,
        taken: int,
        empty_cycles: int,
        left_over: int,
        peak_slots: int,
        last_usable_cycle: int,
        *,
        ended: bool,
    ) -> None:
        """Set the consumer's counts."""
        self._spent = taken - len(self._returned)
        self.empty_cycles = empty_cycles
        self.left_over = left_over
        self._recent = _NOTHING
        self._peak_slots = peak_slots
        self._last_usable_cycle = last_usable_cycle
        self.ended = ended

    def set_way(
        self, bytes_sent: int, sent: Iterable[tuple[int, int, Element]], closed_cycle: int | None
    ) -> None:
        """Set the elements on links, as in ``Way``, and the end of the stream."""
        way = self.way
        assert way is not None
        way.bytes_sent = bytes_sent
        way.sent.clear()
        way.sent.extend(sent)
        if way.sent:
            way.closed_cycle = closed_cycle
        elif closed_cycle is not None:
            self.closed_cycle = closed_cycle


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
        return DONE

    send_at = reserve = send_bare = send

    def put(self, element: Element) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class AssumedSink:
    """Wraps a channel and compares sizes of groups with the shape that the program states.

    If the stated size is a number, each group is compared with it when the group closes.

    Attributes:
        sizes: by dimension, the smallest and the largest closed group, to be compared after the run
            with sizes that depend on other streams.
    """

    __slots__ = ("_counts", "_groups", "_stated", "channel", "claims", "sizes")

    def __init__(self, channel: Channel, claims: tuple[Claim, ...], rank: int) -> None:
        self.channel: Final = channel
        self.claims: Final = claims
        self.sizes: dict[int, tuple[int, int]] = {}
        self._counts = [0] * (rank + 1)
        self._groups = [0] * (rank + 1)
        self._stated = {
            claim.dimension: claim.assumed for claim in claims if isinstance(claim.assumed, int)
        }

    def send(self, element: Element) -> Awaitable[None]:
        self._count(element)
        return self.channel.send(element)

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        self._count(element)
        return self.channel.send_at(element, requested_cycle)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        self._count((Empty(empty_dimension), level))
        return self.channel.send_bare(level, empty_dimension)

    def reserve(self) -> Awaitable[None]:
        return self.channel.reserve()

    def put(self, element: Element) -> None:
        self._count(element)
        self.channel.put(element)

    def close(self) -> None:
        self.channel.close()

    def finish(self) -> None:
        """Close the outermost dimension, which no stop closes; refuse another size than stated."""
        self._close(len(self._counts) - 1)

    def count_sent(
        self, counts: list[int], groups: list[int], sizes: list[tuple[int, int]]
    ) -> None:
        """Set the counts by dimension, of elements sent in the compiled loop."""
        self._counts, self._groups = counts, groups
        self.sizes = {dimension: size for dimension, size in enumerate(sizes) if groups[dimension]}

    @property
    def expected(self) -> list[int | None]:
        """By dimension, the stated size of each group; None if it is not a number."""
        return [self._stated.get(dimension) for dimension in range(len(self._counts))]

    def _count(self, element: Element) -> None:
        value, stop = element
        counts = self._counts
        empty = 0
        if value.__class__ is Empty:
            empty = value.dimension
        else:
            counts[0] += 1
        for dimension in range(min(stop, len(counts) - 1)):
            # An empty dimension has no groups to close.
            if dimension >= empty or counts[dimension]:
                self._close(dimension)
                counts[dimension + 1] += 1

    def _close(self, dimension: int) -> None:
        size = self._counts[dimension]
        self._counts[dimension] = 0
        self._groups[dimension] += 1
        low, high = self.sizes.get(dimension, (size, size))
        self.sizes[dimension] = min(low, size), max(high, size)
        stated = self._stated.get(dimension)
        if stated is not None and size != stated:
            outermost = dimension == len(self._counts) - 1
            group = None if outermost else self._groups[dimension]
            # The latest assumption of a dimension holds.
            latest = reversed(self.claims)
            claim = next(c for c in latest if (c.dimension, c.assumed) == (dimension, stated))
            claim.refuse(size, stated, group)


class LaterSink:
    """Wraps a sink, and adds ``since_cycle`` to the cycles of ``send_at``.

    Attributes:
        next_cycle: the cycle after the latest requested one; ``since_cycle`` without requests.
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
        cycle = requested_cycle + self._since_cycle
        self.next_cycle = max(self.next_cycle, index(cycle) + 1)
        return self._sink.send_at(element, cycle)
