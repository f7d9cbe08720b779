"""Observers of a run, which receive transfers, bursts and allocations.

Observed channels and memories report events after they have happened, so observers change no cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.unit import Unit

Stamp: TypeAlias = tuple[int, int, int]
"""Of a unit's operation: its number, the unit's clock after it, the cycles waited for it.

Numbers of one unit's operations increase, even if its clock does not. Numbers of different units
are unrelated.
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


class Watched(Protocol):
    """A channel, as its observers see it.

    Attributes:
        number: its place in edge order.
        name: ``producer.output -> consumer.input``.
        producer, consumer: the units at its ends.
        reserved: stamps of reserved slots without elements.
        held: elements that were sent and not dequeued, oldest first, with how each was sent and
            seen.
    """

    @property
    def number(self) -> int:
        """Number of the channel in edge order."""
        ...

    @property
    def name(self) -> str:
        """Name of the channel."""
        ...

    @property
    def producer(self) -> Unit:
        """The unit that sends."""
        ...

    @property
    def consumer(self) -> Unit:
        """The unit that receives."""
        ...

    @property
    def reserved(self) -> Sequence[Stamp]:
        """Stamps of reserved slots without elements."""
        ...

    @property
    def held(self) -> list[tuple[Element, Sent, Stamp | None]]:
        """Elements that were sent and not dequeued, oldest first."""
        ...


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

    def watch(self, channel: Watched) -> Transferred | None:  # noqa: ARG002 - for who cares
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
        """The consumer began a group whose first element is ``element``."""

    def was_busy(self, unit: Unit, stamp: Stamp, cycles: int) -> None:
        """``unit`` was busy until ``cycles`` after the visible cycle of the group's first element.

        The stamp has the charged cycles in the place of the cycles waited.
        """

    def chose(self, unit: Unit, stamp: Stamp) -> None:
        """What ``unit`` does next depends on which of its inputs came first."""

    def finished(self, unit: Unit, stamp: Stamp) -> None:
        """The operator of ``unit`` has done its work; later elements are discarded."""

    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        """The off-chip memory has answered a burst of ``unit``, numbered when it was submitted."""

    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        """Room on chip was given to ``unit``, in bytes of new pages if there are pages."""
