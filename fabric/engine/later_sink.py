"""The end of a channel in a round of an operator that is not its first: cycles count on."""

from __future__ import annotations

from collections.abc import Awaitable
from operator import index
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fabric.engine.assumed_sink import AssumedSink
    from fabric.engine.channel import Channel
    from fabric.engine.checked_sink import CheckedSink
    from fabric.engine.discard import Discard
    from fabric.values.value import Element

__all__ = ["LaterSink"]


class LaterSink:
    """Stands before a sink; cycles that ``send_at`` asks for count from a later one than 0.

    Attributes:
        next_cycle: after the last one asked for, or the one they count from.
    """

    __slots__ = (
        "_since_cycle", "_sink", "close", "next_cycle", "put", "reserve", "send", "send_bare"
    )  # fmt: skip

    def __init__(
        self, sink: Channel | AssumedSink | CheckedSink | Discard, since_cycle: int
    ) -> None:
        """Stand before ``sink`` and count from ``since_cycle``."""
        self._sink: Final = sink
        self._since_cycle: Final = since_cycle
        self.next_cycle = since_cycle
        self.send: Final = sink.send
        self.send_bare: Final = sink.send_bare
        self.reserve: Final = sink.reserve
        self.put: Final = sink.put
        self.close: Final = sink.close

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        cycle = requested_cycle + self._since_cycle
        self.next_cycle = max(self.next_cycle, index(cycle) + 1)
        return self._sink.send_at(element, cycle)
