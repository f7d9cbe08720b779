"""A channel whose elements go over links that others use too.

For element n, sent at the producer's clock p, and all of it through the links of its route at t:

* visible: v[n] = max(requested, t + F), where F is how long its head takes over the route.

All else is as in any channel: slots, credits, which come back without load, and dequeues. What is
under way holds its slot, and cannot be told from what has not been sent until it has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from typing_extensions import override

from fabric.graph.values.value import Empty, size_bytes
from fabric.timing.engine.channel import Channel
from fabric.timing.engine.channel_rule import closed_from, links_part, next_from, visible_from
from fabric.timing.engine.observed_channel import ObservedChannel

if TYPE_CHECKING:
    from fabric.graph.values.value import Element
    from fabric.timing.engine.clock import Way
    from fabric.timing.engine.observer import Sent, Stamp

__all__ = ["NetworkedChannel", "ObservedNetworkedChannel"]


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
        """Let the consumer have the oldest element, all of which is through at ``cycle``."""
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
        """Count for how long since ``before`` the consumer waited for links, not for the rest."""
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
        """Take over what the producer has sent elsewhere, ``sent`` as in ``Way``, and its end."""
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
    """One that is watched: who watches is told of an arrival as of a cycle that was requested."""

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
