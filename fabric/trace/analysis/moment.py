"""``trace show``: what everyone was doing in one cycle."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from fabric.telling.causes import Cause
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of
from fabric.terminal.tables import print_table, print_title
from fabric.trace.analysis.timeline import Interval, Timelines, timelines
from fabric.trace.reading.wording import Names

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reading.reader import Trace

__all__ = ["doing", "print_moment"]

_AFTER: Final = {
    True: f"{Cause.IDLE.label}, at its end",
    False: f"{Cause.IDLE.label}, stopped with the run",
    None: "not recorded any more",
}
"""What a unit is after its last cycle, by whether its operator had ended."""


def print_moment(trace: Trace, console: Console, cycle: int, around: str | None) -> None:
    """Print the state of ``around`` and its neighbours, or of all units, and of their channels.

    Raises:
        ConfigurationError: no unit is called ``around``, or the cycle was not recorded.
    """
    names = Names(trace)
    first, last = trace.window
    if not first <= cycle <= last:
        raise ConfigurationError(f"--at {cycle}: expected a cycle from {first:,} to {last:,}")
    units = list(range(len(names.units)))
    if around is not None:
        if around not in names.units:
            raise ConfigurationError(f"--around {around}: expected {one_of(names.units, around)}")
        middle = names.units.index(around)
        near = {unit for ends in names.ends if middle in ends for unit in ends}
        units = sorted(near | {middle})
    lines = timelines(trace)
    print_title(console, f"Cycle {cycle:,}")
    rows = [
        (names.units[unit], *doing(lines, names, unit, cycle), names.places[unit]) for unit in units
    ]
    print_table(console, ("unit", "is", "since", "until", "wired at"), rows, len(rows))
    channels = [
        channel
        for channel, ends in enumerate(names.ends)
        if around is None or names.units.index(around) in ends
    ]
    print_title(console, "Channels", ", held: sent and not dequeued")
    found = trace.rows(
        "SELECT c.name, coalesce(count(t.element) FILTER (t.sent_cycle <= $at AND "
        "coalesce(t.taken_cycle > $at, true)), 0) AS held, depth, "
        "count(t.element) FILTER (t.sent_cycle <= $at), "
        "count(t.element) FILTER (t.taken_cycle <= $at) "
        "FROM channels c LEFT JOIN transfers t USING (channel) "
        f"WHERE channel IN ({', '.join(map(str, channels)) or 'NULL'}) "
        "GROUP BY channel, c.name, depth ORDER BY channel".replace("$at", str(cycle))
    )
    print_table(console, ("channel", "held", "depth", "sent", "dequeued"), found, len(found))


def doing(
    lines: Timelines, names: Names, unit: int, cycle: int
) -> tuple[str, int | None, int | None]:
    """Return what ``unit`` does in ``cycle``, since when and until when."""
    waits = lines.waits[unit]
    number = bisect_right(waits, cycle, key=lambda wait: wait.start) - 1
    if not lines.traced[unit]:
        return "not traced", None, None
    if number >= 0 and waits[number].open:
        return f"{_waiting(names, waits[number])}, to the end of the run", waits[number].start, None
    if number >= 0 and cycle < waits[number].end:
        wait = waits[number]
        return _waiting(names, wait), wait.start, wait.end
    if cycle >= lines.final[unit]:
        return _AFTER[lines.finished[unit]], lines.final[unit], None
    start = waits[number].end if number >= 0 else 0
    end = waits[number + 1].start if number + 1 < len(waits) else lines.final[unit]
    return Cause.BUSY.label, start, end


def _waiting(names: Names, wait: Interval) -> str:
    awaited = wait.cause.awaits if wait.peer < 0 else names.units[wait.peer]
    return f"{wait.cause.label}, waits for {awaited}"
