"""Where to go in a run that is held: a cycle, an element, or what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from fabric.stepping.ledger import Ledger

__all__ = ["AtCycle", "AtElement", "AtNext", "Goal"]


class Goal(Protocol):
    """Where to go."""

    def cycle(self, ledger: Ledger, now: int) -> int | None:
        """Return the cycle it is in, by what is known; a later one than ``now``, or none so far."""
        ...


class AtCycle(NamedTuple):
    """A cycle.

    Attributes:
        at: it.
    """

    at: int

    def cycle(self, ledger: Ledger, now: int) -> int | None:  # noqa: ARG002 - others do
        """See ``Goal``."""
        return self.at


class AtElement(NamedTuple):
    """The cycle in which a value is dequeued by its operator, or sent.

    Attributes:
        channel: its number.
        element: the how many-th value, from 1 on.
        sent: when it is sent; else when it is dequeued.
    """

    channel: int
    element: int
    sent: bool

    def cycle(self, ledger: Ledger, now: int) -> int | None:  # noqa: ARG002 - others do
        """See ``Goal``."""
        found = ledger.sent_cycle if self.sent else ledger.taken_cycle
        return found(self.channel, self.element)


class AtNext(NamedTuple):
    """The next cycle in which an element is sent or dequeued, or the off-chip memory answers."""

    def cycle(self, ledger: Ledger, now: int) -> int | None:
        """See ``Goal``."""
        return ledger.next_cycle(now)
