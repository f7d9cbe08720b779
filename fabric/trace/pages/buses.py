"""What a page shows of a memory that counts: where its bandwidth went, over time and by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from fabric.state.resource_use import row_outcomes
from fabric.telling.causes import BusUse
from fabric.telling.wording import counted
from fabric.trace.analysis.slow_memory import slow_memory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.engine.off_chip import BusCycles, ChannelTraffic
    from fabric.telling.plain import JsonObject
    from fabric.trace.analysis.stalls import Accounts
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["buses"]

_STRETCHES: Final = 2_000
_BARS: Final = 128

Item = TypeVar("Item")


def buses(trace: RecordedRun, accounts: Accounts) -> JsonObject | None:
    """Return shares of the cycles of data buses; None where the model counts none.

    Uses that there were none of are left out. Of many channels or periods, neighbours are one.
    """
    counters = trace.hbm
    if counters is None or not counters.bus.total or not counters.periods:
        return None
    uses = [use for use in BusUse if getattr(counters.bus, use)]
    slow = slow_memory_of(counters, accounts)
    together = -(-len(counters.periods) // _STRETCHES)
    width = together * counters.period_cycles
    stretches = _grouped(counters.periods, together)
    last = max(trace.cycles, (len(stretches) - 1) * width + 1)
    a_bar = -(-len(counters.channels) // _BARS)
    return {
        "uses": [
            {"label": use.label, "colour": use.colour, "meaning": use.meaning} for use in uses
        ],
        "edges": [*range(0, len(stretches) * width, width), last],
        "shares": _shares(stretches, uses),
        "channels": [
            _channel(number * a_bar, channels, uses)
            for number, channels in enumerate(_grouped(counters.channels, a_bar))
        ],
        "note": f"Percent of the cycles of its data buses, in stretches of "
        f"{counted(width, 'cycle')}.",
        "findings": [row_outcomes(counters)] if slow is None else list(slow.findings),
    }


def _grouped(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def _shares(groups: Sequence[Sequence[BusCycles]], uses: Sequence[BusUse]) -> list[list[float]]:
    """Return the percentage of each use, in each group."""
    totals = [sum(bus.total for bus in group) for group in groups]
    return [
        [
            round(100 * sum(getattr(bus, use) for bus in group) / total, 2) if total else 0.0
            for group, total in zip(groups, totals, strict=True)
        ]
        for use in uses
    ]


def _channel(first: int, channels: Sequence[ChannelTraffic], uses: Sequence[BusUse]) -> JsonObject:
    last = first + len(channels) - 1
    shares = _shares([[channel.bus for channel in channels]], uses)
    return {
        "name": str(first) if first == last else f"{first} to {last}",
        "requests": sum(channel.requests for channel in channels),
        "rows": [
            sum(getattr(channel, name) for channel in channels)
            for name in ("row_hits", "row_misses", "row_conflicts")
        ],
        "shares": [share for (share,) in shares],
    }
