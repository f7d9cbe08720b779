"""The channels of a state as a table."""

from __future__ import annotations

from collections.abc import Sequence

from fabric.display.parts import Rows
from fabric.messages.text import visible
from fabric.timing.state.run_state import ChannelState


def channels_table(channels: Sequence[ChannelState], shown: int | None = None) -> Rows:
    """Return the held slots and the passed values of at most ``shown`` channels.

    A bare stop takes a slot and is not a value.
    """
    rows = [
        (visible(c.name), f"{c.held}/{c.depth}", c.sent, c.taken, c.bare_stops) for c in channels
    ]
    return Rows(("channel", "held", "sent", "taken", "bare stops"), rows, shown)
