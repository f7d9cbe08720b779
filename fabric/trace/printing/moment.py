"""``trace show``: what everyone was doing in one cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.telling.place import Place
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.analysis.moment import Moment

__all__ = ["print_moment"]


def print_moment(moment: Moment, console: Console) -> None:
    """Print what units were doing, and what channels held."""
    print_title(console, f"Cycle {moment.cycle:,}")
    rows = [
        (
            unit.name,
            unit.doing,
            unit.since_cycle,
            unit.until_cycle,
            Place(unit.file, unit.line).brief,
        )
        for unit in moment.units
    ]
    print_table(console, ("unit", "is", "since", "until", "wired at"), rows, len(rows))
    print_title(console, "Channels", ", held: sent and not dequeued")
    found = [
        (each.name, each.held, each.depth, sent, sent - each.held)
        for each, sent in ((each, each.sent + each.bare_stops) for each in moment.channels)
    ]
    print_table(console, ("channel", "held", "depth", "sent", "dequeued"), found, len(found))
