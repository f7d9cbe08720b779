"""Observers of a run, which receive transfers, bursts and allocations.

Observed channels and memories report events after they have happened, so observers change no cycle.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import override

from fabric.timing.engine.channel_rule import visible_from
from fabric.timing.engine.log import SEND, ChannelLog, Log
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.log import Keeper
    from fabric.timing.engine.unit import Unit

Stamp: TypeAlias = tuple[int, int, int]
"""The stamp of an operation: its number, the unit's clock after it, the cycles it waited.

The numbers of one unit's operations increase, even if its clock does not. Numbers of different
units are unrelated.
"""

Sent: TypeAlias = tuple[int, ...]
"""How an element was sent: the stamp of its sending.

If a slot was reserved or a cycle was requested, three integers follow: the requested cycle or -1,
and the number and the cycle of the reservation. An element that has left shared links has its
visible cycle as the requested cycle.
"""

Taken: TypeAlias = tuple[int, int]
"""Number and cycle of a dequeue. The cycle of ``hear`` is before the unit's clock."""

Transferred: TypeAlias = "Callable[[Element, Sent, Stamp, Taken | None], object]"
"""Receives an element or bare stop that was dequeued.

The arguments are the element, how it was sent, the stamp of the operation that first saw it, and
the dequeue, which is None if that operation was the dequeue.
"""


class Watched(ChannelLog):
    """The log of an observed channel, which keeps how each held element was sent.

    Attributes:
        number: its place in edge order.
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        reserved: stamps of reserved slots without elements.
    """

    def __init__(self, number: int, channel: Channel, observation: Observation) -> None:
        super().__init__(number, channel.producer, channel.consumer, observation)
        self.name: Final = channel.name
        self._forward_cycles: Final = channel.forward_cycles
        self._way: Final = channel.way
        self._next_order: Final = observation.next_order
        self.reserved: Final[deque[Stamp]] = deque()
        self._held: Final[deque[tuple[Element, Sent]]] = deque()
        self._seen: Stamp | None = None
        calls = [(observer, observer.watch(self)) for observer in observation.observers]
        self._observers: Final = [observer for observer, call in calls if call is not None]
        self._transferred: Final = _together([call for _, call in calls if call is not None])

    @property
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        """Elements that were sent and not dequeued, oldest first, with how each was sent and seen.

        Elements on shared links count as if they left the links in the network's next event.
        """
        held, way = [*self._held], self._way
        if way is not None and way.sent:
            cycle = way.links.next_cycle
            for place in range(len(held) - len(way.sent), len(held)):
                element, sent = held[place]
                held[place] = element, self._left_links(sent, cycle)
        return [(*sending, None if place else self._seen) for place, sending in enumerate(held)]

    def _stamp(self, unit: Unit, waited: int = 0) -> Stamp:
        return self._next_order(), unit.now, waited

    @override
    def sent(self, element: Element, waited: int, operation: int = SEND) -> None:
        super().sent(element, waited, operation)
        if operation == SEND:
            self._held.append((element, self._stamp(self.producer, waited)))

    @override
    def sent_at(self, element: Element, requested_cycle: int, waited: int) -> None:
        super().sent_at(element, requested_cycle, waited)
        order, now, _ = stamp = self._held.pop()[1][:3]
        self._held.append((element, (*stamp, int(requested_cycle), order, now)))
        since, cycles = None, requested_cycle
        if isinstance(requested_cycle, Reading):
            cycles = requested_cycle.later_cycles
            since = requested_cycle.order, int(requested_cycle) - cycles, 0
        for observer in self._observers:
            observer.requested(self, order, since, cycles)

    @override
    def sent_over_links(self, size_bytes: int) -> None:
        for observer in self._observers:
            observer.sent_over_links(self, size_bytes)

    @override
    def reserve(self, waited: int) -> None:
        super().reserve(waited)
        self.reserved.append(self._stamp(self.producer, waited))

    @override
    def put(self, element: Element) -> None:
        super().put(element)
        order, cycle, waited = self.reserved.popleft()
        sent = self._next_order(), self.producer.now, waited, -1, order, cycle
        self._held.append((element, sent))

    @override
    def crossed(self, cycle: int, visible_cycle: int) -> None:
        super().crossed(cycle, visible_cycle)
        assert self._way is not None
        place = len(self._held) - len(self._way.sent) - 1
        element, sent = self._held[place]
        self._held[place] = element, self._left_links(sent, cycle)

    @override
    def peeked(self, waited: int) -> None:
        super().peeked(waited)
        if self._seen is None:
            self._seen = self._stamp(self.consumer, waited)

    @override
    def took(self, waited: int = 0) -> None:
        super().took(waited)
        seen, self._seen = self._seen, None
        element, sent = self._held.popleft()
        stamp = self._stamp(self.consumer, waited)
        self._transferred(element, sent, seen or stamp, seen and stamp[:2])

    @override
    def heard(self, cycle: int) -> None:
        super().heard(cycle)
        seen = self._seen or self._stamp(self.consumer)
        self._seen = None
        element, sent = self._held.popleft()
        self._transferred(element, sent, seen, (seen[0], cycle))

    @override
    def left_over(self, cycle: int) -> None:
        super().left_over(cycle)
        element, sent = self._held.popleft()
        for observer in self._observers:
            observer.left_over(self, element, sent, self._seen, cycle)
        self._seen = None

    @override
    def idled(self, waited: int, until_cycle: int) -> None:
        super().idled(waited, until_cycle)
        if waited:
            stamp = self._stamp(self.consumer, waited)
            for observer in self._observers:
                observer.idled(self, stamp, until_cycle)

    @override
    def ended(self, waited: int) -> None:
        super().ended(waited)
        stamp = self._stamp(self.consumer, waited)
        for observer in self._observers:
            observer.ended(self, stamp)

    @override
    def waited_for_links(self, cycles: int) -> None:
        super().waited_for_links(cycles)
        for observer in self._observers:
            observer.waited_for_links(self, cycles)

    def _left_links(self, sent: Sent, cycle: int) -> Sent:
        """Return ``sent`` with the visible cycle of an element that leaves links at ``cycle``."""
        order, sent_cycle, waited, *rest = sent
        requested_cycle, reserved_order, reserved_cycle = rest or (-1, order, sent_cycle)
        visible_cycle = visible_from(cycle, self._forward_cycles, requested_cycle)
        return order, sent_cycle, waited, visible_cycle, reserved_order, reserved_cycle


class Observation(Log):
    """A log that also calls the methods of observers."""

    def __init__(
        self, observers: Sequence[Observer], keepers: Sequence[Keeper], units: Sequence[Unit]
    ) -> None:
        super().__init__(keepers, units)
        self.observers: Final = observers
        for observer in observers:
            observer.begin(units, self.next_order)

    @override
    def arrived(self, channel: ChannelLog, element: int) -> None:
        super().arrived(channel, element)
        assert isinstance(channel, Watched)
        stamp = self._stamp(channel.consumer)
        for observer in self.observers:
            observer.arrived(channel, stamp, element)

    @override
    def was_busy(self, unit: Unit, charged_cycles: int, cycles: int) -> None:
        super().was_busy(unit, charged_cycles, cycles)
        stamp = self._stamp(unit, charged_cycles)
        for observer in self.observers:
            observer.was_busy(unit, stamp, cycles)

    @override
    def chose(self, unit: Unit) -> None:
        super().chose(unit)
        stamp = self._stamp(unit)
        for observer in self.observers:
            observer.chose(unit, stamp)

    @override
    def finished(self, unit: Unit) -> None:
        super().finished(unit)
        stamp = self._stamp(unit)
        for observer in self.observers:
            observer.finished(unit, stamp)

    @override
    def allocated(self, unit: Unit, room_bytes: int, waited: int) -> None:
        super().allocated(unit, room_bytes, waited)
        stamp = self._stamp(unit, waited)
        for observer in self.observers:
            observer.allocated(unit, room_bytes, stamp)

    @override
    def burst(self, unit: Unit, requests: int, waited: int) -> None:
        super().burst(unit, requests, waited)
        stamp = self._stamp(unit, waited)
        for observer in self.observers:
            observer.burst(unit, requests, stamp)

    def _stamp(self, unit: Unit, cycles: int = 0) -> Stamp:
        return self.next_order(), unit.now, cycles


def _together(functions: Sequence[Transferred]) -> Transferred:
    if len(functions) == 1:
        return functions[0]

    def call_all(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
        for transferred in functions:
            transferred(element, sent, seen, taken)

    return call_all


class Observer:
    """Watches one run, or several in turn. Methods that you do not override do nothing.

    Events of one unit arrive in its order. The order of events of several units changes from run to
    run, but cycles do not. Every unit of an observed run is a task.
    """

    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        """A machine is being built.

        Args:
            units: in node order.
            next_order: draws the next number for an operation.
        """

    def watch(self, channel: Watched) -> Transferred | None:  # noqa: ARG002 - for subclasses
        """Return a function that receives each element dequeued from ``channel``.

        None to ignore the channel. Called once per channel, in edge order.
        """
        return None

    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        """An element was discarded at ``cycle``: the consumer's operator had ended.

        ``seen`` is the stamp of the consumer's earlier look, if any.
        """

    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        """The consumer waited for an element sent in ``until_cycle``, which it looks at later."""

    def ended(self, channel: Watched, stamp: Stamp) -> None:
        """The consumer saw the end of the stream."""

    def requested(self, channel: Watched, order: int, since: Stamp | None, cycles: int) -> None:
        """A cycle was requested for the element that operation ``order`` sent.

        The cycle is ``cycles`` after ``since``, a reading of the producer's clock with number -1
        for the start of the run. If the reading is unknown, ``since`` is None.
        """

    def sent_over_links(self, channel: Watched, size_bytes: int) -> None:
        """An element or a bare stop of ``size_bytes`` was sent over shared links."""

    def waited_for_links(self, channel: Watched, cycles: int) -> None:
        """The consumer's latest wait includes ``cycles`` for shared links."""

    def arrived(self, channel: Watched, stamp: Stamp, element: int) -> None:
        """The consumer began a group, whose first element is number ``element`` of the channel."""

    def was_busy(self, unit: Unit, stamp: Stamp, cycles: int) -> None:
        """``unit`` was busy until ``cycles`` after the visible cycle of the group's first element.

        The stamp has the charged cycles instead of the cycles waited.
        """

    def chose(self, unit: Unit, stamp: Stamp) -> None:
        """The next work of ``unit`` depends on which of its inputs came first."""

    def finished(self, unit: Unit, stamp: Stamp) -> None:
        """The operator of ``unit`` has ended; later elements are discarded."""

    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        """The off-chip memory has answered a burst of ``unit``."""

    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        """``unit`` received room on chip. With pages, ``size_bytes`` counts whole new pages."""
