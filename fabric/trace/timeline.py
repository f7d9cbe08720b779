"""The timeline of each unit, rebuilt from its waits: what is no wait, up to its end, is work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.trace.options import TraceOptions

if TYPE_CHECKING:
    from fabric.trace.reader import Trace

__all__ = ["CAUSES", "Interval", "Timelines", "UnitStalls", "timelines"]

CAUSES: Final = ("empty", "full", "hbm", "capacity")


class Interval(NamedTuple):
    """A wait.

    Attributes:
        start, end: its first cycle and the first one after it.
        cause: one of ``CAUSES``.
        channel: waited for; -1 for the memories.
        peer: the unit at the other end of the channel; -1 for the memories.
        until: when the peer did what ended the wait; the rest is the way here.
    """

    start: int
    end: int
    cause: str
    channel: int
    peer: int
    until: int


@dataclass(frozen=True)
class UnitStalls:
    """Where a unit's cycles went; all but ``worst`` sum to the cycles accounted for.

    Attributes:
        unit: its number.
        busy, empty, full, hbm, capacity, idle: cycles.
        worst: the channel waited for longest, with the cycles; None where none was.
    """

    unit: int
    busy: int
    empty: int
    full: int
    hbm: int
    capacity: int
    idle: int
    worst: tuple[int, int] | None

    @property
    def stalled(self) -> int:
        """Cycles of all waits."""
        return self.empty + self.full + self.hbm + self.capacity


@dataclass(frozen=True)
class Timelines:
    """All timelines of a run.

    Attributes:
        names: of units, by number.
        first, last: the cycles accounted for, ``last`` not included.
        waits: of each unit, in order.
        final: each unit's last cycle.
        traced: whether all of a unit's channels were traced.
    """

    names: list[str]
    first: int
    last: int
    waits: list[list[Interval]]
    final: list[int]
    traced: list[bool]

    def stalls(self, unit: int) -> UnitStalls:
        """Return where the cycles of ``unit`` went."""
        first, last = self.first, self.last
        cycles = dict.fromkeys(CAUSES, 0)
        by_channel: dict[int, int] = {}
        for wait in self.waits[unit]:
            length = min(wait.end, last) - max(wait.start, first)
            if length > 0:
                cycles[wait.cause] += length
                if wait.channel >= 0:
                    by_channel[wait.channel] = by_channel.get(wait.channel, 0) + length
        active = max(0, min(self.final[unit], last) - first)
        worst = max(by_channel.items(), key=lambda item: (item[1], -item[0]), default=None)
        return UnitStalls(
            unit=unit,
            busy=active - sum(cycles.values()),
            idle=last - first - active,
            worst=worst,
            **cycles,
        )


def timelines(trace: Trace) -> Timelines:
    """Rebuild the timelines of ``trace``."""
    names = trace.unit_names()
    waits: list[list[Interval]] = [[] for _ in names]
    rows = trace.rows(
        "SELECT unit, start_cycle, end_cycle, cause, coalesce(channel, -1), "
        "coalesce(CASE WHEN consumer = unit THEN producer ELSE consumer END, -1), until_cycle "
        "FROM waits LEFT JOIN channels USING (channel) ORDER BY unit, start_cycle"
    )
    for unit, *interval in rows:
        waits[unit].append(Interval(*interval))
    final = [0] * len(names)
    for unit, cycle in trace.rows(
        "SELECT unit, max(cycle) FROM (SELECT unit, cycle FROM states UNION ALL "
        "SELECT unit, cycle FROM every_operation) GROUP BY unit"
    ):
        final[unit] = cycle
    options = TraceOptions(nodes=trace.meta.get("nodes"))
    first, last = trace.window
    traced = [options.keeps(name) for name in names]
    return Timelines(names, first, last, waits, final, traced)
