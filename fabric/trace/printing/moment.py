"""``trace show``: what everyone was doing in one cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.telling.place import Place
from fabric.telling.sheet import Rows, Sheet, Title
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.state.run_state import ChannelState
    from fabric.trace.analysis.moment import Moment

__all__ = ["channels_table", "moment_sheet"]


def moment_sheet(moment: Moment) -> Sheet:
    """Yield what units were doing, and what channels held."""
    yield Title(f"Cycle {moment.cycle:,}")
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
    yield Rows(("unit", "since", "until", "wired at", "is"), rows)
    yield Title("Channels")
    yield channels_table(moment.channels)


def channels_table(channels: Sequence[ChannelState], shown: int | None = None) -> Rows:
    """Return what at most ``shown`` channels hold of their slots, and the values that went through.

    A bare stop takes a slot and is no value.
    """
    rows = [
        (visible(each.name), f"{each.held}/{each.depth}", each.sent, each.taken, each.bare_stops)
        for each in channels
    ]
    return Rows(("channel", "held", "sent", "taken", "bare stops"), rows, shown)
