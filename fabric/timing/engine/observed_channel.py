"""Observed channels, and channels over shared links.

For element n, sent at the producer's clock p, which leaves the links of its route at t:

* visible: v[n] = max(requested, t + F), where F is the latency of the route.

Slots, credits and dequeues are those of any channel; credits return without load. An element under
way holds its slot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.graph.values.value import Empty, size_bytes
from fabric.timing.engine.channel import Channel
from fabric.timing.engine.channel_counters import NOTHING
from fabric.timing.engine.channel_rule import (
    closed_from,
    links_part,
    next_from,
    set_out_at,
    visible_from,
)
from fabric.timing.engine.observer import ELSEWHERE
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from fabric.graph.hardware.latency import Hop
    from fabric.graph.values.value import Element
    from fabric.timing.engine.clock import VirtualClock, Way
    from fabric.timing.engine.observer import Observer, Sent, Stamp, Transferred
    from fabric.timing.engine.unit import Unit


class ObservedChannel(Channel):
    """A channel that keeps how each element was sent until it is dequeued."""

    __slots__ = (
        "_next_order", "_observers", "_seen", "_sent", "_transferred", "number", "reserved"
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        hop: Hop,
        number: int,
        next_order: Callable[[], int],
        *,
        opened: bool = True,
    ) -> None:
        self.reserved: deque[Stamp] = NOTHING
        self._sent: deque[Sent] = NOTHING
        super().__init__(name, depth, producer, consumer, clock, hop, opened=opened)
        self.number: Final = number
        self._next_order: Final = next_order
        self._seen: Stamp | None = None
        self._observers: Sequence[Observer] = ()
        self._transferred: Transferred

    @override
    def open(self) -> None:
        super().open()
        self.reserved, self._sent = deque(), deque()

    def tell(self, observers: Sequence[Observer], transferred: Transferred) -> None:
        """Report to ``observers`` from now on, transfers to ``transferred``."""
        self._observers = observers
        self._transferred = transferred

    @property
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        """Elements sent and not dequeued, oldest first, with how each was sent and seen."""
        # An element that is just being sent or dequeued may be here or there only; of those that
        # a unit without a task has fetched nothing is known any more.
        count = min(len(self._sent), len(self.queue))
        queue = islice(self.queue, len(self.queue) - count, None)
        sent = islice(self._sent, len(self._sent) - count, None)
        return [
            (element, stamps, None if place else self._seen)
            for place, ((_, element), stamps) in enumerate(zip(queue, sent, strict=True))
        ]

    @override
    def send(self, element: Element) -> Awaitable[None]:
        if not self.credits:
            return self._with_more_credits(self.send, element)
        unit = self.producer
        before = unit.now
        done = super().send(element)
        now = unit.now
        self._sent.append((self._next_order(), now, now - before))
        return done

    @override
    async def send_at(self, element: Element, requested_cycle: int) -> None:
        # The reading itself would go on into the consumer's clock, and be added to others there.
        await super().send_at(element, int(requested_cycle))
        order, now, waited = self.reserved.pop()
        self._sent.append((order, now, waited, int(requested_cycle), order, now))
        since, cycles = None, requested_cycle
        if isinstance(requested_cycle, Reading):
            cycles = requested_cycle.later_cycles
            since = requested_cycle.order, int(requested_cycle) - cycles, 0
        for observer in self._observers:
            observer.requested(self, order, since, cycles)

    @override
    async def reserve(self) -> None:
        unit = self.producer
        before = unit.now
        await super().reserve()
        now = unit.now
        self.reserved.append((self._next_order(), now, now - before))

    @override
    def put(self, element: Element) -> None:
        order, cycle, waited = self.reserved.popleft()
        self._sent.append((self._next_order(), self.producer.now, waited, -1, order, cycle))
        super().put(element)

    @override
    async def receive(self) -> Element | None:
        if self._seen is not None:
            return self.take()
        unit = self.consumer
        before = unit.now
        element = await super().receive()
        if element is not None:
            now = unit.now
            seen = self._next_order(), now, now - before
            self._transferred(element, self._sent.popleft(), seen, None)
        return element

    @override
    async def peek(self) -> Element | None:
        if self._seen is not None:
            return self.queue[0][1]
        unit = self.consumer
        before = unit.now
        element = await super().peek()
        if element is not None:
            now = unit.now
            self._seen = self._next_order(), now, now - before
        return element

    @override
    def take(self) -> Element:
        seen = self._seen
        assert seen is not None
        self._seen = None
        element = super().take()
        taken = self._next_order(), self.consumer.now
        self._transferred(element, self._sent.popleft(), seen, taken)
        return element

    @override
    def hear(self) -> Element:
        cycle = self.head_cycle
        # The unit knows of it at its own clock, which does not move.
        seen = self._seen or (self._next_order(), self.consumer.now, 0)
        self._seen = None
        element = super().hear()
        self._transferred(element, self._sent.popleft(), seen, (seen[0], cycle))
        return element

    @override
    def hand_over(self, sent: Iterable[tuple[int, Element]], closed_cycle: int | None) -> None:
        sent = tuple(sent)
        self._sent.extend(self._sent_elsewhere(visible) for visible, _ in sent)
        super().hand_over(sent, closed_cycle)

    def _sent_elsewhere(self, visible_cycle: int) -> Sent:
        return ELSEWHERE, set_out_at(visible_cycle, self.forward_cycles), 0

    @override
    def fetch(self) -> Sequence[tuple[int, Element]]:
        fetched = super().fetch()
        for _, element in fetched:
            sent = self._sent.popleft()
            for observer in self._observers:
                observer.fetched(self, element, sent)
        return fetched

    @override
    def idle(self, cycle: int) -> None:
        unit = self.consumer
        waited = cycle - unit.now
        super().idle(cycle)
        choice = self._next_order(), unit.now, 0
        for observer in self._observers:
            observer.chose(unit, choice)
        if waited > 0:
            until = min(self.head_sent_cycle, cycle) if self.queue else cycle
            stamp = self._next_order(), cycle, waited
            for observer in self._observers:
                observer.idled(self, stamp, until)

    @override
    def discard(self, cycle: int) -> None:
        left_over = tuple(self.queue)
        super().discard(cycle)
        for visible, element in left_over:
            sent = self._sent.popleft()
            for observer in self._observers:
                observer.left_over(self, element, sent, self._seen, max(visible, cycle))
            self._seen = None

    @override
    def see_end(self) -> None:
        if self.ended:
            return
        unit = self.consumer
        before = unit.now
        super().see_end()
        stamp = self._next_order(), unit.now, unit.now - before
        for observer in self._observers:
            observer.ended(self, stamp)


class NetworkedChannel(Channel):
    """A FIFO from one unit to another on another site."""

    __slots__ = ()

    way: Way

    @override
    def _append(self, element: Element, requested_cycle: int = 0) -> None:
        way, now = self.way, self.producer.now
        way.sent.append((now, requested_cycle, element))
        carried_bytes = size_bytes(element[0])
        way.bytes_sent += carried_bytes
        if self.interval_cycles:
            self.next_send_cycle = next_from(now, self.interval_cycles)
        way.flow.begin(now, carried_bytes)

    def arrive(self, cycle: int) -> None:
        """Show the consumer the oldest element, which left the links at ``cycle``."""
        way = self.way
        sent_cycle, requested_cycle, element = way.sent.popleft()
        visible = visible_from(cycle, self.forward_cycles, requested_cycle)
        unhindered = visible_from(sent_cycle, self.forward_cycles, requested_cycle)
        way.arrived.append((sent_cycle, visible - unhindered))
        self.queue.append((visible, element))
        if not way.sent:
            self.closed_cycle = way.closed_cycle
        if self.reader is not None:
            self._wake_reader()

    @override
    def close(self) -> None:
        if self.way.sent:
            self.way.closed_cycle = closed_from(
                self.producer.now, self.forward_cycles, self.interval_cycles
            )
        else:
            super().close()

    @override
    async def receive(self) -> Element | None:
        if await NetworkedChannel.peek(self) is None:
            return None
        return NetworkedChannel.take(self)

    @override
    async def peek(self) -> Element | None:
        before = self.consumer.now
        element = await Channel.peek(self)
        if element is not None:
            self._count_late(before)
        return element

    @override
    def idle(self, cycle: int) -> None:
        before = self.consumer.now
        super().idle(cycle)
        if self.queue:
            self._count_late(before)

    def _count_late(self, before: int) -> None:
        """Count the cycles since ``before`` that the consumer waited for links."""
        visible, late_cycles = self.queue[0][0], self.way.arrived[0][1]
        self.way.links_cycles += links_part(before, self.consumer.now, visible, late_cycles)

    @override
    def take(self) -> Element:
        return self._dequeued(self.consumer.now)

    @override
    def hear(self) -> Element:
        return self._dequeued(self.head_cycle)

    def _dequeued(self, cycle: int) -> Element:
        _, element = self.queue.popleft()
        sent_cycle, _ = self.way.arrived.popleft()
        self._free(visible_from(sent_cycle, self.forward_cycles, 0), cycle)
        return element

    @override
    def discard(self, cycle: int) -> None:
        self.way.arrived.clear()
        super().discard(cycle)

    def send_elsewhere(
        self, bytes_sent: int, sent: Iterable[tuple[int, int, Element]], closed_cycle: int | None
    ) -> None:
        """Adopt the elements that the producer has sent elsewhere, as in ``Way``, and its end."""
        way = self.way
        way.bytes_sent = bytes_sent
        way.sent.clear()
        way.sent.extend(sent)
        if way.sent:
            way.closed_cycle = closed_cycle
        elif closed_cycle is not None:
            self.closed_cycle = closed_cycle

    @property
    @override
    def under_way(self) -> int:
        return len(self.way.sent)

    @property
    @override
    def held_values(self) -> int:
        return super().held_values + sum(
            element[0].__class__ is not Empty for _, _, element in self.way.sent
        )

    @property
    @override
    def last_sent_cycle(self) -> int | None:
        way = self.way
        if way.sent:
            return way.sent[-1][0]
        return way.arrived[-1][0] if way.arrived else None


class ObservedNetworkedChannel(ObservedChannel, NetworkedChannel):
    """An observed channel over links; an arrival is reported like a requested cycle."""

    __slots__ = ()

    @override
    def _append(self, element: Element, requested_cycle: int = 0) -> None:
        before = self.way.bytes_sent
        super()._append(element, requested_cycle)
        for observer in self._observers:
            observer.sent_over_links(self, self.way.bytes_sent - before)

    @override
    def _count_late(self, before: int) -> None:
        counted = self.way.links_cycles
        super()._count_late(before)
        cycles = self.way.links_cycles - counted
        if cycles:
            for observer in self._observers:
                observer.waited_for_links(self, cycles)

    @property
    @override
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        # What is under way arrives in the network's next event or later, and is seen a hop after
        # that: no more is known of it.
        network = self.clock.network
        assert network is not None
        under_way = len(self.way.sent)
        arrived = len(self._sent) - under_way
        sent = [
            stamps if place < arrived else self._arriving(stamps, network.next_cycle)
            for place, stamps in enumerate(self._sent)
        ]
        elements = [
            *(element for _, element in self.queue),
            *(element for _, _, element in self.way.sent),
        ]
        # An element that is just being sent or dequeued may be here or there only.
        count = min(len(sent), len(elements))
        return [
            (element, stamps, None if place else self._seen)
            for place, (element, stamps) in enumerate(
                zip(elements[len(elements) - count :], sent[len(sent) - count :], strict=True)
            )
        ]

    @override
    def arrive(self, cycle: int) -> None:
        # Of elements that have arrived there are as many before this one as are in the queue.
        place = len(self.queue)
        self._sent[place] = self._arriving(self._sent[place], cycle)
        super().arrive(cycle)

    def _arriving(self, sent: Sent, cycle: int) -> Sent:
        """Return how an element was sent, with the cycle from which on it is visible."""
        order, sent_cycle, waited, *rest = sent
        requested_cycle, reserved_order, reserved_cycle = rest or (-1, order, sent_cycle)
        visible_cycle = visible_from(cycle, self.forward_cycles, requested_cycle)
        return order, sent_cycle, waited, visible_cycle, reserved_order, reserved_cycle
