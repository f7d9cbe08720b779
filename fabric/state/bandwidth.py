"""What became of a memory's bandwidth, and what its requests met, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.telling.bus import BusUse
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.engine.off_chip import BusCycles, MemoryCounters

__all__ = ["bus_shares", "row_outcomes", "uneven_channels"]

_UNEVEN: Final = 1.5
"""So many times the mean of all channels is worth a sentence."""

_FEW: Final = 100
"""Fewer requests than that are uneven by chance."""


def bus_shares(bus: BusCycles) -> Iterator[tuple[BusUse, float]]:
    """Yield what there was of the cycles of data buses, and its percentage of them."""
    for use in BusUse:
        cycles = getattr(bus, use)
        if cycles:
            yield use, 100 * cycles / bus.total


def row_outcomes(counters: MemoryCounters) -> str:
    """Return how many requests found which row in their bank."""
    channels = counters.channels
    counted = {
        "row hits": sum(each.row_hits for each in channels),
        "misses": sum(each.row_misses for each in channels),
        "conflicts": sum(each.row_conflicts for each in channels),
    }
    whole = sum(counted.values())
    return ", ".join(
        f"{name} {count:,} ({100 * count / whole if whole else 0:.1f} %)"
        for name, count in counted.items()
    )


def uneven_channels(counters: MemoryCounters) -> str | None:
    """Return which channel served most and which least, where one has much more than the mean."""
    served = [channel.requests for channel in counters.channels]
    most, mean = max(served, default=0), sum(served) / max(1, len(served))
    if most < max(_FEW, _UNEVEN * mean):
        return None
    least = min(served)
    return (
        f"channel {served.index(most)} served {counted(most, 'request')}, {most / mean:.1f} "
        f"times the mean; "
        f"channel {served.index(least)} the fewest, {least:,}"
    )
