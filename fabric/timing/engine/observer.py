"""Who watches a run, and what a run tells them: transfers, bursts, allocations.

The channels and memories of a run that is watched are made from those of one that is not, and say
what has happened after it has: nobody who watches changes a cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.unit import Unit

Stamp: TypeAlias = tuple[int, int, int]
"""Of a unit's operation: its number, the unit's clock after it, the cycles waited for it.

The numbers of one unit's operations grow, where its clock may stand still; between units they mean
nothing.
"""

ELSEWHERE: Final = -3
"""In the place of a number: an operation of a unit that has no task."""

Sent: TypeAlias = tuple[int, ...]
"""How an element was sent: the stamp of its sending; where its slot was reserved before, or it was
requested for later, also the cycle asked for (-1 for none), number and cycle of the reservation."""

Taken: TypeAlias = tuple[int, int]
"""Number and cycle of a dequeue: of what was heard of, one before the clock that has seen it."""


Transferred: TypeAlias = "Callable[[Element, Sent, Stamp, Taken | None], object]"
"""Told of an element, or a bare stop, that was dequeued: what it is, how it was sent, how the
consumer first saw it and, where that was a later operation, how it was dequeued."""


class Watched(Protocol):
    """A channel, as those who watch it see it.

    Attributes:
        number: its place in edge order.
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        reserved: how slots were reserved that nothing has been put into.
        held: what was sent and not dequeued, oldest first: elements, how each was sent and, where
            it was, seen.
    """

    @property
    def number(self) -> int:
        """See above."""
        ...

    @property
    def name(self) -> str:
        """See above."""
        ...

    @property
    def producer(self) -> Unit:
        """See above."""
        ...

    @property
    def consumer(self) -> Unit:
        """See above."""
        ...

    @property
    def reserved(self) -> Sequence[Stamp]:
        """See above."""
        ...

    @property
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        """See above."""
        ...


class Observer:
    """Watches one run, or several in turn. Methods that you do not override do nothing.

    What one unit does is told in its order. What several do is told in the order in which the host
    ran them, which changes from run to run; cycles do not.

    Attributes:
        needs_tasks: every unit is to be a task, so that what it does is told. Of one that is none,
            nothing is told but its bursts; on a channel to a task, its sendings are ELSEWHERE.
    """

    needs_tasks: bool = True

    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        """A machine is being built.

        Args:
            units: of it, in node order.
            next_order: draws the next number for an operation.
        """

    def watch(self, channel: Watched) -> Transferred | None:  # noqa: ARG002 - for who cares
        """Return what to call with each element that is dequeued from ``channel``.

        None, and nothing is told of this channel. Asked once, in edge order.
        """
        return None

    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        """An element was dequeued at ``cycle`` by nobody: the consumer's operator had ended.

        ``seen`` is how the consumer had looked at it before, where it had.
        """

    def fetched(self, channel: Watched, element: Element, sent: Sent) -> None:
        """An element goes on to a unit that has no task."""

    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        """The consumer waited for an element that it looks at later; it set out at the cycle."""

    def ended(self, channel: Watched, stamp: Stamp) -> None:
        """The consumer saw the end of the stream."""

    def requested(self, channel: Watched, order: int, since: Stamp | None, cycles: int) -> None:
        """The element sent by operation ``order`` is visible ``cycles`` after a reading, or later.

        ``since`` is the reading of the producer's clock, of number -1 where the cycles count from
        the start of the run; None where nothing is known of that.
        """

    def sent_over_links(self, channel: Watched, size_bytes: int) -> None:
        """An element, or a bare stop, was sent that shared links carry: so many bytes."""

    def waited_for_links(self, channel: Watched, cycles: int) -> None:
        """So many of the cycles for which the consumer has just waited were for shared links."""

    def arrived(self, channel: Watched, stamp: Stamp, element: int) -> None:
        """The consumer took up a group, the first element of which is ``element``."""

    def was_busy(self, unit: Unit, stamp: Stamp, cycles: int) -> None:
        """``unit`` was busy until ``cycles`` after the visible cycle of the group's first element.

        What it was charged for that stands where else the cycles waited do.
        """

    def chose(self, unit: Unit, stamp: Stamp) -> None:
        """What ``unit`` does next depends on which of its inputs came first."""

    def finished(self, unit: Unit, stamp: Stamp) -> None:
        """The operator of ``unit`` has done its work; what still comes is dequeued by nobody."""

    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        """The off-chip memory has answered a burst of ``unit``; it was numbered when submitted."""

    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        """Room on chip was given to ``unit``: the bytes of new pages, where there are pages."""
