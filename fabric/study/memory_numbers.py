"""What a memory with banks counts, as numbers of a point: ``hbm.NAME``."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from fabric.engine.off_chip import BusCycles, MemoryCounters

__all__ = ["MEMORY_METRICS", "memory_numbers"]

_ROWS: Final = ("row_hits", "row_misses", "row_conflicts")
_BUS: Final = tuple(each.name for each in fields(BusCycles))

MEMORY_METRICS: Final = tuple(
    f"hbm.{name}" for name in (*_ROWS, *(f"{each}_bus_cycles" for each in _BUS))
)
"""Requests by what became of their row, and cycles of data buses, each pseudo channel's counted."""


def memory_numbers(counters: MemoryCounters | None) -> dict[str, int]:
    """Return the numbers of all channels together; none where the memory counts nothing."""
    if counters is None:
        return {}
    rows = (sum(getattr(each, name) for each in counters.channels) for name in _ROWS)
    bus = counters.bus
    cycles = (getattr(bus, name) for name in _BUS)
    return dict(zip(MEMORY_METRICS, (*rows, *cycles), strict=True))
