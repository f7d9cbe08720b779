"""Observers of a run, which receive transfers, bursts and allocations.

Observed channels and memories report events after they have happened, so observers change no cycle.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from fabric.timing.engine.channel_rule import set_out_at, visible_from
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.clock import Way
    from fabric.timing.engine.unit import Unit

Stamp: TypeAlias = tuple[int, int, int]
"""The stamp of an operation: its number, the unit's clock after it, the cycles it waited.

The numbers of one unit's operations increase, even if its clock does not. Numbers of different
units are unrelated.
"""

ELSEWHERE: Final = -3
"""Number of an operation of a unit without a task."""

Sent: TypeAlias = tuple[int, ...]
"""How an element was sent: the stamp of its sending.

For reserved slots or later requests, also the requested cycle (-1 for none), and number and cycle
of the reservation.
"""

Taken: TypeAlias = tuple[int, int]
"""Number and cycle of a dequeue; ``hear`` dequeues before the clock."""


Transferred: TypeAlias = "Callable[[Element, Sent, Stamp, Taken | None], object]"
"""Receives an element or bare stop that was dequeued.

Arguments are the element, how it was sent, how the consumer first saw it and, if that was an
earlier operation, how it was dequeued.
"""


class Watched:
    """A channel, as its observers see it. It keeps how each element was sent.

    Attributes:
        number: its place in edge order.
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        reserved: stamps of reserved slots without elements.
    """

    def __init__(
        self,
        number: int,
        name: str,
        producer: Unit,
        consumer: Unit,
        forward_cycles: int,
        way: Way | None,
        next_order: Callable[[], int],
    ) -> None:
        self.number: Final = number
        self.name: Final = name
        self.producer: Final = producer
        self.consumer: Final = consumer
        self.reserved: Final[deque[Stamp]] = deque()
        self._forward_cycles: Final = forward_cycles
        self._way: Final = way
        self._next_order: Final = next_order
        self._held: Final[deque[tuple[Element, Sent]]] = deque()
        self._seen: Stamp | None = None
        self._observers: Sequence[Observer] = ()
        self._transferred: Transferred

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
        return [(*each, None if place else self._seen) for place, each in enumerate(held)]

    def tell(self, observers: Sequence[Observer]) -> bool:
        """Report to the ``observers`` that watch this channel; return whether any does."""
        watching = [(each, each.watch(self)) for each in observers]
        told = [(each, transferred) for each, transferred in watching if transferred is not None]
        self._observers = [observer for observer, _ in told]
        self._transferred = _together([transferred for _, transferred in told])
        return bool(told)

    def sent(self, element: Element, waited: int) -> None:
        """``element`` was sent."""
        self._held.append((element, (self._next_order(), self.producer.now, waited)))

    def sent_at(self, element: Element, requested_cycle: int) -> None:
        """``element`` was sent in the latest reserved slot, visible from ``requested_cycle``."""
        order, now, waited = self.reserved.pop()
        self._held.append((element, (order, now, waited, int(requested_cycle), order, now)))
        since, cycles = None, requested_cycle
        if isinstance(requested_cycle, Reading):
            cycles = requested_cycle.later_cycles
            since = requested_cycle.order, int(requested_cycle) - cycles, 0
        for observer in self._observers:
            observer.requested(self, order, since, cycles)

    def sent_over_links(self, size_bytes: int) -> None:
        """An element is sent over shared links."""
        for observer in self._observers:
            observer.sent_over_links(self, size_bytes)

    def sent_elsewhere(self, sent: Iterable[tuple[int, Element]]) -> None:
        """A unit without a task has sent elements, with their visible cycles."""
        for visible_cycle, element in sent:
            sent_cycle = set_out_at(visible_cycle, self._forward_cycles)
            self._held.append((element, (ELSEWHERE, sent_cycle, 0)))

    def reserve(self, waited: int) -> None:
        """A slot was reserved."""
        self.reserved.append((self._next_order(), self.producer.now, waited))

    def put(self, element: Element) -> None:
        """``element`` is sent in the oldest reserved slot."""
        order, cycle, waited = self.reserved.popleft()
        sent = self._next_order(), self.producer.now, waited, -1, order, cycle
        self._held.append((element, sent))

    def arriving(self, cycle: int) -> None:
        """The oldest element on shared links has left them at ``cycle``."""
        assert self._way is not None
        place = len(self._held) - len(self._way.sent)
        element, sent = self._held[place]
        self._held[place] = element, self._left_links(sent, cycle)

    def received(self, waited: int) -> None:
        """An element was dequeued, directly or after a look."""
        if self._seen is not None:
            self.took()
            return
        element, sent = self._held.popleft()
        self._transferred(element, sent, (self._next_order(), self.consumer.now, waited), None)

    def peeked(self, waited: int) -> None:
        """The consumer sees the next element."""
        if self._seen is None:
            self._seen = self._next_order(), self.consumer.now, waited

    def took(self) -> None:
        """The element that the consumer saw was dequeued."""
        seen, self._seen = self._seen, None
        assert seen is not None
        element, sent = self._held.popleft()
        self._transferred(element, sent, seen, (self._next_order(), self.consumer.now))

    def heard(self, cycle: int) -> None:
        """An element was dequeued at ``cycle``; the consumer knows at its own clock."""
        seen = self._seen or (self._next_order(), self.consumer.now, 0)
        self._seen = None
        element, sent = self._held.popleft()
        self._transferred(element, sent, seen, (seen[0], cycle))

    def fetched(self, count: int) -> None:
        """A unit without a task has received ``count`` elements."""
        for _ in range(count):
            element, sent = self._held.popleft()
            for observer in self._observers:
                observer.fetched(self, element, sent)

    def left_over(self, cycle: int) -> None:
        """An element was discarded at ``cycle``."""
        element, sent = self._held.popleft()
        for observer in self._observers:
            observer.left_over(self, element, sent, self._seen, cycle)
        self._seen = None

    def idled(self, waited: int, until_cycle: int) -> None:
        """The consumer has waited for an element that it looks at later."""
        choice = self._next_order(), self.consumer.now, 0
        for observer in self._observers:
            observer.chose(self.consumer, choice)
        if waited:
            stamp = self._next_order(), self.consumer.now, waited
            for observer in self._observers:
                observer.idled(self, stamp, until_cycle)

    def ended(self, waited: int) -> None:
        """The consumer saw the end of the stream."""
        stamp = self._next_order(), self.consumer.now, waited
        for observer in self._observers:
            observer.ended(self, stamp)

    def waited_for_links(self, cycles: int) -> None:
        """The consumer's latest wait includes ``cycles`` for shared links."""
        for observer in self._observers:
            observer.waited_for_links(self, cycles)

    def _left_links(self, sent: Sent, cycle: int) -> Sent:
        """Return how an element was sent that leaves the links at ``cycle``, as if requested."""
        order, sent_cycle, waited, *rest = sent
        requested_cycle, reserved_order, reserved_cycle = rest or (-1, order, sent_cycle)
        visible_cycle = visible_from(cycle, self._forward_cycles, requested_cycle)
        return order, sent_cycle, waited, visible_cycle, reserved_order, reserved_cycle


def _together(told: Sequence[Transferred]) -> Transferred:
    if len(told) == 1:
        return told[0]

    def all_of_them(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
        for transferred in told:
            transferred(element, sent, seen, taken)

    return all_of_them


class Observer:
    """Watches one run, or several in turn. Methods that you do not override do nothing.

    Events of one unit arrive in its order. Events of several units arrive in the order in which the
    host ran them, which changes from run to run; cycles do not.

    Attributes:
        needs_tasks: run every unit as a task, as for all observers of users. Units without tasks
            report only their bursts, and their elements to tasks are sent ELSEWHERE.
    """

    needs_tasks: bool = True

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

    def fetched(self, channel: Watched, element: Element, sent: Sent) -> None:
        """An element was passed to a unit without a task."""

    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        """The consumer waited until ``until_cycle`` for an element that it looks at later."""

    def ended(self, channel: Watched, stamp: Stamp) -> None:
        """The consumer saw the end of the stream."""

    def requested(self, channel: Watched, order: int, since: Stamp | None, cycles: int) -> None:
        """The element sent by operation ``order`` is visible ``cycles`` after a reading, or later.

        ``since`` is the reading of the producer's clock, with number -1 for the start of the run;
        None if unknown.
        """

    def sent_over_links(self, channel: Watched, size_bytes: int) -> None:
        """An element or a bare stop of ``size_bytes`` was sent over shared links."""

    def waited_for_links(self, channel: Watched, cycles: int) -> None:
        """The consumer's latest wait includes ``cycles`` for shared links."""

    def arrived(self, channel: Watched, stamp: Stamp, element: int) -> None:
        """The consumer began a group with ``element`` as the first element."""

    def was_busy(self, unit: Unit, stamp: Stamp, cycles: int) -> None:
        """``unit`` was busy until ``cycles`` after the visible cycle of the group's first element.

        The stamp has the charged cycles in the place of the cycles waited.
        """

    def chose(self, unit: Unit, stamp: Stamp) -> None:
        """The next work of ``unit`` depends on which of its inputs came first."""

    def finished(self, unit: Unit, stamp: Stamp) -> None:
        """The operator of ``unit`` has done its work; later elements are discarded."""

    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        """The off-chip memory has answered a burst of ``unit``, numbered when it was submitted."""

    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        """Room on chip was given to ``unit``, in bytes of new pages if there are pages."""
