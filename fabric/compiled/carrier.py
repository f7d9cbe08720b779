"""Shared links, as the clock knows them where operators are in the compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fabric.network.columns import NEVER

if TYPE_CHECKING:
    from fabric.network.links import Links

__all__ = ["Carrier"]


class Carrier:
    """Lets the loop go on with the links: it does what comes of that, too.

    Attributes:
        links: they.
        horizon_cycle: up to which cycle the loop may go on with them while all its stages wait; -1
            where it may not.
    """

    def __init__(self, links: Links, wake: Callable[[], None]) -> None:
        """Carry over ``links``.

        Args:
            links: see above.
            wake: lets the loop go on.
        """
        self.links: Final = links
        self.horizon_cycle = -1
        self._wake: Final = wake

    @property
    def next_cycle(self) -> int:
        """See ``Network``."""
        return self.links.next_cycle

    def advance(self, horizon_cycle: int) -> None:
        """See ``Network``."""
        self.horizon_cycle = min(max(horizon_cycle, self.next_cycle), NEVER - 1)
        self._wake()

    def rest(self) -> int:
        """Know that nothing in the loop can go on; return the cycle up to which links have."""
        self.links.see()
        return self.links.cycle
