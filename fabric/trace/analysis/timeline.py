"""The timeline of each unit, rebuilt from its waits: what is no wait, up to its end, is work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.causes import WAITS, Cause
from fabric.trace.recording.options import TraceOptions

if TYPE_CHECKING:
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["Interval", "Timelines", "UnitStalls", "timelines"]


class Interval(NamedTuple):
    """A wait.

    Attributes:
        start, end: its first cycle and the first one after it.
        cause: one of ``WAITS``.
        channel: waited for; -1 for the memories.
        peer: the unit at the other end of the channel; -1 for the memories.
        until: when the peer did what ended the wait; the rest is the way here.
        late: the rest is longer than that way: the peer wanted the element to come later.
        links: the last cycles, in which shared links held it up; no part of that way.
        open: it had not ended when the run stopped, and ends with the run here.
    """

    start: int
    end: int
    cause: Cause
    channel: int
    peer: int
    until: int
    late: bool
    links: int
    open: bool


@dataclass(frozen=True)
class UnitStalls:
    """Where a unit's cycles went; all but ``links`` and ``worst`` sum to those accounted for.

    Attributes:
        unit: its number.
        busy, empty, full, hbm, capacity, idle: cycles.
        links: of empty, those in which shared links held an element up.
        worst: the channel waited for longest, with the cycles; None where none was.
    """

    unit: int
    busy: int
    empty: int
    full: int
    hbm: int
    capacity: int
    idle: int
    links: int
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
        final: each unit's last cycle, in which an open wait of it begins.
        finished: whether each unit's operator had ended; None where the trace does not say.
        traced: whether all of a unit's channels were traced.
    """

    names: list[str]
    first: int
    last: int
    waits: list[list[Interval]]
    final: list[int]
    finished: list[bool | None]
    traced: list[bool]

    def stalls(self, unit: int) -> UnitStalls:
        """Return where the cycles of ``unit`` went."""
        first, last = self.first, self.last
        cycles = dict.fromkeys(WAITS, 0)
        by_channel: dict[int, int] = {}
        links = 0
        for wait in self.waits[unit]:
            length = min(wait.end, last) - max(wait.start, first)
            if length > 0:
                cycles[wait.cause] += length
                links += max(0, min(wait.end, last) - max(wait.end - wait.links, first))
                if wait.channel >= 0:
                    by_channel[wait.channel] = by_channel.get(wait.channel, 0) + length
        ended = max(0, last - max(self.final[unit], first))
        stalled = sum(cycles.values())
        if self.still(unit) is not None:
            ended = 0
        worst = max(by_channel.items(), key=lambda item: (item[1], -item[0]), default=None)
        return UnitStalls(
            unit=unit,
            busy=last - first - ended - stalled,
            idle=ended,
            links=links,
            worst=worst,
            **cycles,
        )

    def still(self, unit: int) -> Interval | None:
        """Return the wait of ``unit`` that goes on to the end of the run, where there is one."""
        waits = self.waits[unit]
        return waits[-1] if waits and waits[-1].open else None


def timelines(trace: RecordedRun) -> Timelines:
    """Rebuild the timelines of ``trace``."""
    names = trace.unit_names()
    waits: list[list[Interval]] = [[] for _ in names]
    set_out = "set_out_at(end_cycle - links_cycles, forward_cycles)"
    rows = trace.rows(
        "SELECT unit, start_cycle, end_cycle, cause, coalesce(channel, -1), "
        "coalesce(CASE WHEN consumer = unit THEN producer ELSE consumer END, -1), until_cycle, "
        f"coalesce(cause = '{Cause.EMPTY}' AND until_cycle < {set_out}, false), links_cycles, "
        "open FROM waits LEFT JOIN channels USING (channel) ORDER BY unit, start_cycle, open"
    )
    causes = {str(cause): cause for cause in WAITS}
    for unit, start, end, cause, *rest in rows:
        waits[unit].append(Interval(start, end, causes[cause], *rest))
    final = [0] * len(names)
    for unit, cycle in trace.rows("SELECT unit, cycle FROM last_cycles"):
        final[unit] = cycle
    finished: list[bool | None] = [None] * len(names)
    for unit, ended in trace.rows("SELECT unit, finished FROM states"):
        finished[unit] = ended
    options = TraceOptions(nodes=trace.meta.get("nodes"))
    first, last = trace.window
    traced = [options.keeps(name) for name in names]
    return Timelines(names, first, last, waits, final, finished, traced)
