"""A channel that is watched: the operations of any other, and afterwards who watches is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.timing.engine.channel import Channel
from fabric.timing.engine.channel_counters import NOTHING
from fabric.timing.engine.channel_rule import set_out_at
from fabric.timing.engine.observer import ELSEWHERE
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from fabric.graph.hardware.hop import Hop
    from fabric.graph.values.value import Element
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.observer import Observer, Sent, Stamp, Transferred
    from fabric.timing.engine.unit import Unit

__all__ = ["ObservedChannel"]


class ObservedChannel(Channel):
    """A channel that keeps how each of its elements was sent until it is dequeued.

    Its operations are those of ``Channel``, which they call.

    Attributes:
        number: its place in edge order.
        reserved: of the slots that were reserved and nothing has been put into.
    """

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
        """Join two units; operations get their numbers from ``next_order``."""
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
        """Tell ``observers`` from here on, and of transfers with ``transferred``."""
        self._observers = observers
        self._transferred = transferred

    @property
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        """What is sent and not dequeued, oldest first: elements, how they were sent and seen."""
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

    @override
    def resume_sending(
        self, unused_slots: int, usable_cycles: Sequence[int], reserved: int
    ) -> None:
        super().resume_sending(unused_slots, usable_cycles, reserved)
        self.reserved.extend([(ELSEWHERE, self.producer.now, 0)] * reserved)

    @override
    def resume_receiving(self, usable_cycles: Sequence[int]) -> None:
        super().resume_receiving(usable_cycles)
        held = len(self.queue) - len(self._sent)
        visible = [cycle for cycle, _ in islice(self.queue, held)]
        self._sent.extendleft(map(self._sent_elsewhere, reversed(visible)))

    def _sent_elsewhere(self, visible_cycle: int) -> Sent:
        return ELSEWHERE, set_out_at(visible_cycle, self.forward_cycles), 0

    @override
    def looked(self) -> None:
        self._seen = ELSEWHERE, self.consumer.now, 0

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
