"""The state of a recorded run at a cycle, like the engine's state of a machine.

A trace has the stamps of all events. Only the last recorded state has all channels of a wait, the
holders of on-chip memory and the counters of the HBM. If a stream ended without a waiting
reader, the cycle of its end is unknown. If only a window or some channels are recorded, a unit
counts as busy outside of its recorded waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from fabric.analysis.deadlock.cause import find_stuck
from fabric.analysis.deadlock.describe import describe_deadlock
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.text import with_summary
from fabric.analysis.trace.channel_rows import channels_table
from fabric.analysis.trace.reading.query_tables import CHANNELS
from fabric.analysis.trace.reading.reader import RecordedRun, refused
from fabric.analysis.trace.selection import TraceOptions
from fabric.display.parts import Rows, Sheet, Title
from fabric.display.result import Result
from fabric.graph.arguments.described import checked
from fabric.graph.hardware.description import Pages
from fabric.messages.causes import Cause, Operation
from fabric.messages.place import Place
from fabric.messages.text import close_to
from fabric.timing.engine.log import ALLOCATE
from fabric.timing.log.tally import Tally, UnitEnd, wait_state, waits_of
from fabric.timing.log.transfers import Transfers
from fabric.timing.state.run_state import (
    UNEVALUATED,
    ChannelFacts,
    ChannelState,
    Expected,
    OnChipState,
    OpenWait,
    RunState,
    UnitFacts,
    WaitState,
    open_waits,
)

_NEVER: Final = (1 << 63) - 1

_UNITS: Final = """
SELECT unit, name, operator, kind, file, line, flops_per_cycle, coalesce(last.cycle, 0),
    coalesce(finished, false), busy_cycles, coalesce(flops, 0)
FROM units LEFT JOIN last_cycles last USING (unit) LEFT JOIN states USING (unit) ORDER BY unit
"""

_LAST_WAITS: Final = """
SELECT unit, waits_for, coalesce(list(channel ORDER BY waiting.rowid)
    FILTER (channel IS NOT NULL), []), since_cycle, any_of,
    any_value(seen_stop), any_value(awaited_stop)
FROM states LEFT JOIN waiting USING (unit)
WHERE waits_for IS NOT NULL AND since_cycle <= $cut GROUP BY ALL
"""

_WAITED_FOR: Final = """
SELECT channel, any_value(elements), any_value(closed_cycle) FROM waiting GROUP BY channel
"""
"""For awaited channels, the last state also counts elements taken before a traced window."""

_HELD: Final = "SELECT unit, held_bytes FROM states WHERE held_bytes > 0 ORDER BY unit"

_WANTED: Final = f"""
SELECT unit, wanted_bytes FROM (
    SELECT unit, wanted_bytes, since_cycle FROM states
    WHERE wanted_bytes > 0 AND since_cycle <= $cut
    UNION ALL SELECT unit, amount, cycle - waited FROM entries
    WHERE operation = {ALLOCATE} AND cycle - waited <= $cut AND cycle > $cut
) ORDER BY since_cycle, unit
"""

_AFTER: Final = {
    True: f"{Cause.IDLE.label}, at its end",
    False: f"{Cause.IDLE.label}, stopped with the run",
    None: "not recorded any more",
}
"""The state after a unit's last cycle, by whether its operator had ended."""

_AROUND: Final = """
SELECT coalesce(max(end_cycle) FILTER (NOT open AND end_cycle <= $at), 0),
    coalesce(min(start_cycle) FILTER (start_cycle > $at), any_value(last.cycle), 0),
    max(end_cycle) FILTER (NOT open AND start_cycle <= $at AND end_cycle > $at),
    coalesce(any_value(last.cycle), 0)
FROM units LEFT JOIN last_cycles last USING (unit) LEFT JOIN waits USING (unit)
GROUP BY unit ORDER BY unit
"""

_WHY_NO_REMEDY: Final = "a trace cannot be run with other depths: `run` tries them"


def state_in(trace: RecordedRun, cycle: int | None = None) -> RunState:
    """Return the state of the run in ``cycle`` of the virtual time; None for the last state.

    All events with a stamp up to ``cycle`` have happened. The work of a busy unit counts up to
    ``cycle``. The clock of a waiting unit is the cycle in which the wait began. A wait counts in
    its unit and channel once it is over. So every clock is the sum of its counters.

    A burst has moved its bytes once the HBM has answered. Bytes of a burst without an answer count
    from the run's last cycle on. An element sent to an operator that has ended is dequeued when it
    would be visible, possibly after the run's last cycle.

    A wait that ended after ``cycle`` has only the channel that ended it, without ``stops``.
    """
    cut = _NEVER if cycle is None else cycle
    ((moved_bytes,),) = trace.rows(
        "SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts WHERE end_cycle <= $cut", cut=cut
    )
    units, ends = _units(trace, cut)
    tally, waits = _tally_until(trace, units, cut)
    closed, taken = {}, {}
    for number, elements, closed_cycle in trace.rows(_WAITED_FOR):
        if closed_cycle is not None and closed_cycle <= cut:
            closed[number] = closed_cycle
        if cut == _NEVER:
            taken[number] = elements
    return RunState(
        program=trace.head.name,
        cycles=min(cut, trace.cycles),
        units=tally.units(waits | _last_waits(trace, cut), ends, cut),
        channels=tally.channels(closed, taken),
        on_chip=_on_chip(trace, cut),
        hbm_bytes_moved=moved_bytes,
        hbm=trace.hbm if cut >= trace.cycles else None,
    )


def expected_in(trace: RecordedRun) -> Mapping[int, Expected]:
    """Return the expected elements of the last state by channel, for channels in loops."""
    expected = dict.fromkeys(
        (number for (number,) in trace.rows("SELECT channel FROM channels")), UNEVALUATED
    )
    for number, in_all, shape, per_output, feedback in trace.rows(
        "SELECT channel, in_all, shape, per_output, feedback FROM waiting WHERE in_all IS NOT NULL"
    ):
        file, _, line = (feedback or "").rpartition(":")
        expected[number] = Expected(
            int(in_all) if in_all.isdigit() else in_all,
            shape or "",
            per_output,
            None if feedback is None else Place(file, int(line)),
        )
    return expected


def _tally_until(
    trace: RecordedRun, units: list[UnitFacts], cut: int
) -> tuple[Tally, dict[int, WaitState]]:
    """Return the events up to a cycle, and the waits that ended later."""
    channels = [ChannelFacts(*row) for row in trace.rows(CHANNELS)]
    tally = Tally(units, channels, set(trace.shared_channels))
    entries, transfers = trace.entries(), Transfers(len(channels))
    transfers.add(entries)
    under_way = tally.count(transfers.rows, waits_of(entries), cut)
    return tally, {unit: wait_state(wait) for unit, wait in under_way.items()}


def _units(trace: RecordedRun, cut: int) -> tuple[list[UnitFacts], dict[int, UnitEnd]]:
    units, ends = [], {}
    for number, name, operator, kind, file, line, flops_per_cycle, *last in trace.rows(_UNITS):
        units.append(UnitFacts(number, name, operator, kind, Place(file, line), flops_per_cycle))
        end = UnitEnd(*last)
        if end.cycle <= cut:
            ends[number] = end
    return units, ends


def _last_waits(trace: RecordedRun, cut: int) -> dict[int, WaitState]:
    waits = {}
    rows = trace.rows(_LAST_WAITS, cut=cut)
    for unit, operation, channels, since_cycle, any_of, seen, awaited in rows:
        stops = None if awaited is None else (seen, awaited)
        wait = WaitState(Operation(operation), tuple(channels), since_cycle, bool(any_of), stops)
        waits[unit] = wait
    return waits


def _on_chip(trace: RecordedRun, cut: int) -> OnChipState:
    on_chip = trace.head.hardware.on_chip
    capacity_bytes, page_bytes = on_chip.capacity_bytes, on_chip.page_bytes
    pages = None if page_bytes is None else Pages(page_bytes, on_chip.unit_bytes)
    is_known = capacity_bytes is None or (trace.has_state and cut >= trace.cycles)
    held = tuple(trace.rows(_HELD)) if is_known else None
    return OnChipState(capacity_bytes, tuple(trace.rows(_WANTED, cut=cut)), held, pages)


@dataclass(frozen=True)
class UnitMoment:
    """The activity of a unit."""

    name: str
    operator: str
    file: str
    line: int
    cause: Cause | None  # of the activity; None if the unit was not traced
    awaits: str | None = None  # another unit or a memory; None if the unit does not wait
    since_cycle: int | None = None
    until_cycle: int | None = None  # after the activity; None if the run ends first
    ended: bool | None = None  # whether the operator of an idle unit had ended

    @property
    def doing(self) -> str:
        if self.cause is None:
            return "not traced"
        if self.cause is Cause.IDLE:
            return _AFTER[self.ended]
        if self.awaits is None:
            return self.cause.label
        waiting = f"{self.cause.label}, waits for {self.awaits}"
        return waiting if self.until_cycle is not None else f"{waiting}, to the end of the run"


@dataclass(frozen=True, repr=False)
class Moment(Result):
    """The units and channels of a traced run in one cycle, from ``Trace.at``."""

    cycle: int
    units: tuple[UnitMoment, ...] = field(repr=False)  # in node order
    channels: tuple[ChannelState, ...] = field(repr=False)  # in edge order
    state: RunState = field(repr=False)  # of the whole run in the cycle, with clocks and counters

    @checked
    def around(self, name: str) -> Moment:
        """Return the unit ``name`` with its neighbours and the channels to them.

        Raises:
            ConfigurationError: the unit is unknown.
        """
        names = [unit.name for unit in self.state.units]
        if name not in names:
            raise refused(f"unit {name}: expected {close_to(names, name)}")
        middle = names.index(name)
        channels = tuple(c for c in self.channels if middle in (c.producer, c.consumer))
        near = {middle}.union(*((c.producer, c.consumer) for c in channels))
        kept = {names[number] for number in near}
        units = tuple(unit for unit in self.units if unit.name in kept)
        return replace(self, units=units, channels=channels)

    def sheet(self) -> Sheet:
        yield Title(f"Cycle {self.cycle:,}")
        rows = []
        for unit in self.units:
            place = Place(unit.file, unit.line).brief
            rows.append((unit.name, unit.since_cycle, unit.until_cycle, place, unit.doing))
        yield Rows(("unit", "since", "until", "wired at", "is"), rows)
        yield Title("Channels")
        yield channels_table(self.channels)


def moment_of(trace: RecordedRun, cycle: int) -> Moment:
    first, last = trace.window
    if not first <= cycle <= last:
        raise refused(f"cycle {cycle}: expected a cycle from {first:,} to {last:,}")
    state = state_in(trace, cycle)
    options = TraceOptions(nodes=trace.head.nodes)
    units = []
    for unit, wait, around in zip(
        state.units, open_waits(state), trace.rows(_AROUND, at=cycle), strict=True
    ):
        works_since, works_until, waits_until, last_cycle = around
        wired = (unit.name, unit.operator, *unit.place)
        if not options.keeps(unit.name):
            moment = UnitMoment(*wired, None)
        elif wait is not None:
            awaited = _awaited(state, wait)
            moment = UnitMoment(*wired, wait.cause, awaited, wait.since_cycle, waits_until)
        elif state.cycles < last_cycle:
            moment = UnitMoment(*wired, Cause.BUSY, None, works_since, works_until)
        else:
            ended = unit.finished if trace.has_state else None
            moment = UnitMoment(*wired, Cause.IDLE, since_cycle=last_cycle, ended=ended)
        units.append(moment)
    return Moment(cycle, tuple(units), state.channels, state)


def _awaited(state: RunState, wait: OpenWait) -> str:
    if wait.channel is None:
        return wait.cause.awaits
    channel = state.channels[wait.channel]
    peer = channel.producer if wait.cause.peer == "producer" else channel.consumer
    return state.units[peer].name


def deadlock_of(trace: RecordedRun) -> DeadlockReport | None:
    """Return the report of the loops in the last recorded state; None without loops.

    A trace cannot run with other depths. So the remedy is read from the run's ``deadlock.json``, as
    are the report of a livelock and the report of a trace without its last state.
    """
    if trace.status == "completed":
        return None
    stored = _stored_report(trace)
    if not trace.has_state or (stored is not None and trace.status == "livelock"):
        return stored
    state = state_in(trace)
    stuck = find_stuck(state)
    if not stuck.cores:
        return None
    report = describe_deadlock(state, stuck, expected_in(trace), _WHY_NO_REMEDY)
    if stored is None or _waiting_units(stored) != _waiting_units(report):
        return report
    return with_summary(replace(report, remedy=stored.remedy))


def _stored_report(trace: RecordedRun) -> DeadlockReport | None:
    try:
        return msgspec.json.decode(trace.explained or b"", type=DeadlockReport)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _waiting_units(report: DeadlockReport) -> list[list[str]]:
    return [[unit.unit for unit in loop.units] for loop in report.loops]
