"""``trace show``: what everyone was doing in one cycle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.state.open_waits import open_waits
from fabric.telling.causes import Cause
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of
from fabric.terminal.tables import print_table, print_title
from fabric.trace.reading.state_in import state_in
from fabric.trace.recording.options import TraceOptions

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.state.open_waits import OpenWait
    from fabric.state.run_state import RunState, UnitState
    from fabric.trace.reading.reader import Trace

__all__ = ["print_moment"]

_AFTER: Final = {
    True: f"{Cause.IDLE.label}, at its end",
    False: f"{Cause.IDLE.label}, stopped with the run",
    None: "not recorded any more",
}
"""What a unit is after its last cycle, by whether its operator had ended."""

_AROUND: Final = """
SELECT coalesce(max(end_cycle) FILTER (NOT open AND end_cycle <= $at), 0),
    coalesce(min(start_cycle) FILTER (start_cycle > $at), any_value(last.cycle), 0),
    max(end_cycle) FILTER (NOT open AND start_cycle <= $at AND end_cycle > $at),
    coalesce(any_value(last.cycle), 0)
FROM units LEFT JOIN last_cycles last USING (unit) LEFT JOIN waits USING (unit)
GROUP BY unit ORDER BY unit
"""


class _Around(NamedTuple):
    """What a state does not tell: since when a unit works, and what becomes of it later.

    Attributes:
        works_since, works_until: if it works.
        waits_until: None where it does not wait, or to the end of the run.
        last_cycle: of the unit.
    """

    works_since: int
    works_until: int
    waits_until: int | None
    last_cycle: int


def print_moment(trace: Trace, console: Console, cycle: int, around: str | None) -> None:
    """Print the state of ``around`` and its neighbours, or of all units, and of their channels.

    Raises:
        ConfigurationError: no unit is called ``around``, or the cycle was not recorded.
    """
    first, last = trace.window
    if not first <= cycle <= last:
        raise ConfigurationError(f"--at {cycle}: expected a cycle from {first:,} to {last:,}")
    state = state_in(trace, cycle)
    units, channels = state.units, state.channels
    if around is not None:
        names = [unit.name for unit in units]
        if around not in names:
            raise ConfigurationError(f"--around {around}: expected {one_of(names, around)}")
        middle = names.index(around)
        channels = tuple(each for each in channels if middle in (each.producer, each.consumer))
        near = {middle}.union(*((each.producer, each.consumer) for each in channels))
        units = tuple(units[number] for number in sorted(near))
    print_title(console, f"Cycle {cycle:,}")
    rows = _units(trace, state, units, cycle)
    print_table(console, ("unit", "is", "since", "until", "wired at"), rows, len(rows))
    print_title(console, "Channels", ", held: sent and not dequeued")
    found = [
        (each.name, each.held, each.depth, sent, sent - each.held)
        for each, sent in ((each, each.sent + each.bare_stops) for each in channels)
    ]
    print_table(console, ("channel", "held", "depth", "sent", "dequeued"), found, len(found))


def _units(
    trace: Trace, state: RunState, units: tuple[UnitState, ...], cycle: int
) -> list[tuple[str, str, int | None, int | None, str]]:
    """Return the rows of ``units``."""
    options = TraceOptions(nodes=trace.meta.get("nodes"))
    waits = open_waits(state)
    arounds = [_Around(*row) for row in trace.rows(_AROUND, at=cycle)]
    rows = []
    for unit in units:
        wait, around = waits[unit.number], arounds[unit.number]
        doing: tuple[str, int | None, int | None]
        if not options.keeps(unit.name):
            doing = "not traced", None, None
        elif wait is not None:
            doing = _waiting(state, wait, around), wait.since_cycle, around.waits_until
        elif cycle >= around.last_cycle:
            after = unit.finished if trace.has_state else None
            doing = _AFTER[after], around.last_cycle, None
        else:
            doing = Cause.BUSY.label, around.works_since, around.works_until
        rows.append((unit.name, *doing, f"{Path(unit.place.file).name}:{unit.place.line}"))
    return rows


def _waiting(state: RunState, wait: OpenWait, around: _Around) -> str:
    """Return what a unit waits for, and whether for ever."""
    awaited = wait.cause.awaits
    if wait.channel is not None:
        channel = state.channels[wait.channel]
        peer = channel.producer if wait.cause.peer == "producer" else channel.consumer
        awaited = state.units[peer].name
    waiting = f"{wait.cause.label}, waits for {awaited}"
    return waiting if around.waits_until is not None else f"{waiting}, to the end of the run"
