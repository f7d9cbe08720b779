"""What everyone was doing in one cycle of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.arguments.described import checked
from fabric.state.run_state import ChannelState, RunState, open_waits
from fabric.telling.causes import Cause
from fabric.telling.sheet import ShownAsTables
from fabric.telling.wording import close_to
from fabric.trace.reading.refusals import refused
from fabric.trace.reading.state_in import state_in
from fabric.trace.recording.options import TraceOptions

if TYPE_CHECKING:
    from fabric.state.run_state import OpenWait, UnitState
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["Moment", "UnitMoment", "moment_of"]

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


@dataclass(frozen=True)
class UnitMoment:
    """What a unit was doing.

    Attributes:
        name, operator, file, line: which unit, and where it was wired.
        cause: under which the cycle counts; None where the unit was not traced.
        awaits: what it waits for, another unit or a memory; None where it does not wait.
        since_cycle: when it began to; None where it was not traced.
        until_cycle: the first cycle after it; None to the end of the run.
        ended: of an idle one, whether its operator had ended or was stopped with the run; None
            where the trace does not say, and of all others.
    """

    name: str
    operator: str
    file: str
    line: int
    cause: Cause | None
    awaits: str | None = None
    since_cycle: int | None = None
    until_cycle: int | None = None
    ended: bool | None = None

    @property
    def doing(self) -> str:
        """The same in a few words."""
        if self.cause is None:
            return "not traced"
        if self.cause is Cause.IDLE:
            return _AFTER[self.ended]
        if self.awaits is None:
            return self.cause.label
        waiting = f"{self.cause.label}, waits for {self.awaits}"
        return waiting if self.until_cycle is not None else f"{waiting}, to the end of the run"


@dataclass(frozen=True, repr=False)
class Moment(ShownAsTables):
    """A cycle of a run.

    Attributes:
        cycle: of the virtual time.
        units: what they were doing, in node order.
        channels: what they held, in edge order.
        state: of the whole run in that cycle, with clocks and counters.
    """

    cycle: int
    units: tuple[UnitMoment, ...] = field(repr=False)
    channels: tuple[ChannelState, ...] = field(repr=False)
    state: RunState = field(repr=False)

    @checked
    def around(self, name: str) -> Moment:
        """Return the unit ``name`` with its neighbours and the channels to them.

        Raises:
            ConfigurationError: there is no such unit.
        """
        names = [unit.name for unit in self.state.units]
        if name not in names:
            raise refused(f"unit {name}: expected {close_to(names, name)}")
        middle = names.index(name)
        channels = tuple(each for each in self.channels if middle in (each.producer, each.consumer))
        near = {middle}.union(*((each.producer, each.consumer) for each in channels))
        kept = {names[number] for number in near}
        units = tuple(unit for unit in self.units if unit.name in kept)
        return replace(self, units=units, channels=channels)


def moment_of(trace: RecordedRun, cycle: int) -> Moment:
    """Return what everyone was doing in ``cycle``.

    Raises:
        ConfigurationError: the cycle was not recorded.
    """
    first, last = trace.window
    if not first <= cycle <= last:
        raise refused(f"cycle {cycle}: expected a cycle from {first:,} to {last:,}")
    state = state_in(trace, cycle)
    options = TraceOptions(nodes=trace.meta.get("nodes"))
    arounds = (_Around(*row) for row in trace.rows(_AROUND, at=cycle))
    units = []
    for unit, wait, around in zip(state.units, open_waits(state), arounds, strict=True):
        still = UnitMoment(unit.name, unit.operator, *unit.place, None)
        if options.keeps(unit.name):
            still = _doing(still, trace, state, unit, wait, around)
        units.append(still)
    return Moment(cycle, tuple(units), state.channels, state)


def _doing(
    still: UnitMoment,
    trace: RecordedRun,
    state: RunState,
    unit: UnitState,
    wait: OpenWait | None,
    around: _Around,
) -> UnitMoment:
    """Return what ``unit`` does."""
    if wait is not None:
        return replace(
            still,
            cause=wait.cause,
            awaits=_awaited(state, wait),
            since_cycle=wait.since_cycle,
            until_cycle=around.waits_until,
        )
    if state.cycles >= around.last_cycle:
        ended = unit.finished if trace.has_state else None
        return replace(still, cause=Cause.IDLE, since_cycle=around.last_cycle, ended=ended)
    return replace(
        still,
        cause=Cause.BUSY,
        since_cycle=around.works_since,
        until_cycle=around.works_until,
    )


def _awaited(state: RunState, wait: OpenWait) -> str:
    """Return the unit at the other end, or the memory."""
    if wait.channel is None:
        return wait.cause.awaits
    channel = state.channels[wait.channel]
    peer = channel.producer if wait.cause.peer == "producer" else channel.consumer
    return state.units[peer].name
