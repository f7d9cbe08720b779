"""``trace show``: what everyone was doing in one cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.telling.place import Place
from fabric.telling.wording import visible
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.state.run_state import ChannelState
    from fabric.trace.analysis.moment import Moment

__all__ = ["print_channels", "print_moment"]


def print_moment(moment: Moment, console: Console) -> None:
    """Print what units were doing, and what channels held."""
    print_title(console, f"Cycle {moment.cycle:,}")
    rows = [
        (
            unit.name,
            unit.since_cycle,
            unit.until_cycle,
            Place(unit.file, unit.line).brief,
            unit.doing,
        )
        for unit in moment.units
    ]
    print_table(console, ("unit", "since", "until", "wired at", "is"), rows, len(rows))
    print_title(console, "Channels")
    print_channels(moment.channels, len(moment.channels), console)


def print_channels(channels: Sequence[ChannelState], shown: int, console: Console) -> None:
    """Print what at most ``shown`` channels hold of their slots, and the values that went through.

    A bare stop takes a slot and is no value.
    """
    rows = [
        (visible(each.name), f"{each.held}/{each.depth}", each.sent, each.taken, each.bare_stops)
        for each in channels
    ]
    print_table(console, ("channel", "held", "sent", "taken", "bare stops"), rows, shown)
