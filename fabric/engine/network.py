"""What lies between units, as the engine knows it: who carries elements, and when it has to go on.

Whatever is under way shares links with what else is, so that when it arrives depends on all of
that. It is decided as the answers of the off-chip memory are: only while no unit can run.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from fabric.values.value import Element

__all__ = ["Arriving", "Flow", "Network", "Way"]


class Arriving(Protocol):
    """The end of a channel, as the network knows it."""

    def arrive(self, cycle: int) -> None:
        """Hand over the oldest element under way: all of it is through the links at ``cycle``."""
        ...


class Flow(Protocol):
    """What one unit sends along one route, or one tree of routes: one thing after the other."""

    @property
    def number(self) -> int:
        """Its place among all."""
        ...

    def begin(self, cycle: int, size_bytes: int) -> None:
        """Send so much on one of the channels, not before ``cycle``.

        What goes to several begins once it has been sent on all of them.
        """
        ...


class Network(Protocol):
    """Links that channels share.

    It is told to go on only when no unit can run, and then to its next event: what units send
    because of that has later stamps.
    """

    @property
    def next_cycle(self) -> int:
        """By when something begins or is through, unless more is sent; 1 << 63 if nothing.

        Nothing that comes of it has a stamp before that, and what arrives has a later one.
        """
        ...

    def advance(self, horizon_cycle: int) -> None:
        """Go on to the next event, and hand over what is through.

        It may do what comes of that itself, and go on to further events that are not later than
        ``horizon_cycle``, as long as that concerns nobody else.
        """
        ...


class Way:
    """What of a channel is on the network.

    Attributes:
        flow: takes what is sent.
        sent: the oldest first, of each element: the producer's clock, a cycle that was requested,
            and the element itself.
        arrived: of elements that have arrived and were not dequeued, when each was sent, and for
            how many of the last cycles before it is visible links held it up.
        links_cycles: for so many of such cycles the consumer waited.
        bytes_sent: so far.
        closed_cycle: the producer has ended; known to the consumer once all has arrived.
    """

    __slots__ = ("arrived", "bytes_sent", "closed_cycle", "flow", "links_cycles", "sent")

    def __init__(self, flow: Flow) -> None:
        self.flow: Final = flow
        self.sent: Final[deque[tuple[int, int, Element]]] = deque()
        self.arrived: Final[deque[tuple[int, int]]] = deque()
        self.links_cycles = 0
        self.bytes_sent = 0
        self.closed_cycle: int | None = None
