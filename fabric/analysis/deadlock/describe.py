"""Reports of deadlocks and livelocks from the state of a stopped run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final

from fabric.analysis.deadlock.cause import (
    Stuck,
    cause,
    channels_of,
    code,
    find_stuck,
    hint,
    needs,
    wait_of,
)
from fabric.analysis.deadlock.document import (
    INTERRUPTED,
    KINDS,
    SCHEMA,
    BlockedUnit,
    DeadlockReport,
    Event,
    Loop,
    LoopChannel,
    Remedy,
)
from fabric.analysis.deadlock.livelock import Livelock
from fabric.analysis.deadlock.remedy import find_remedy
from fabric.analysis.deadlock.text import with_summary
from fabric.graph.hardware.latency import Hop
from fabric.graph.wiring.elaborate import Plan
from fabric.messages.causes import Cause, Operation
from fabric.messages.place import Place
from fabric.messages.text import counted
from fabric.timing.state.run_state import (
    ChannelState,
    Expected,
    RunState,
    UnitState,
    WaitState,
    expected_of,
)

_EVENTS: Final = 8
_NAMES: Final = 4


def describe_deadlock(
    state: RunState, stuck: Stuck, expected: Mapping[int, Expected], why_no_remedy: str
) -> DeadlockReport:
    """Return the report of a deadlock with at least one ``stuck`` unit, without a remedy."""
    loops = [_loop(state, loop, stuck, expected) for loop in stuck.cores]
    return _report(state, loops, stuck.tail, stuck, why_no_remedy)


def with_remedy(
    report: DeadlockReport,
    plan: Plan,
    depths: Mapping[str, int],
    hops: Mapping[str, Hop],
    *,
    effort: int | None,
    takes_channel_depth: bool,
) -> DeadlockReport:
    if any(loop.code == "FAB-D005" for loop in report.loops):
        return with_summary(replace(report, remedy=Remedy(why_not="no depth helps")))
    names = frozenset(frozenset(unit.unit for unit in loop.units) for loop in report.loops)
    remedy = Remedy(why_not=INTERRUPTED)
    with suppress(KeyboardInterrupt):
        remedy = find_remedy(
            plan, depths, hops, names, effort=effort, takes_channel_depth=takes_channel_depth
        )
    return with_summary(replace(report, remedy=remedy))


def explain_livelock(state: RunState, plan: Plan, livelock: Livelock) -> DeadlockReport:
    """Return the report of the units of ``plan`` that move and make no progress.

    The cycle in which they were stopped differs from run to run, so clocks and counts are left out.
    """
    stuck = find_stuck(state)
    expected = expected_of(plan, state, channels_of(state, chain.from_iterable(stuck.cores)))
    readers: dict[int, list[ChannelState]] = {}
    for number in livelock.moving:
        readers.setdefault(state.channels[number].producer, []).append(state.channels[number])
    moving = [state.units[number] for number in sorted(readers)]
    loops = [
        _circling(state.units[unit], place, livelock.cycles)
        for unit, place in sorted(livelock.circling, key=lambda circling: circling.unit)
    ]
    names = " and ".join(unit.name for unit in moving[:_NAMES])
    more = f" and {len(moving) - _NAMES:,} more" if len(moving) > _NAMES else ""
    units = []
    for unit in moving:
        sent = readers[unit.number]
        peers = [state.units[channel.consumer].name for channel in sent]
        units.append(_unit(unit, "moving", sent, peers, "an end"))
    moving_loop = Loop(
        code="FAB-L001",
        units=units,
        channels=[],
        cause=(
            f"{names}{more} pass elements without end. For {counted(livelock.cycles, 'cycle')} no "
            "sink received, no unit charged work, and no burst of the HBM completed. This is a "
            "heuristic: --livelock-cycles sets how long it waits."
        ),
        hint="An element has to leave the loop, or the loop has to end",
    )
    # Stuck loops do not wait for the moving units, and stop in the same state in each run.
    loops += [moving_loop] if moving else []
    loops += [_loop(state, core, stuck, expected) for core in stuck.cores]
    at_rest = {*readers, *(unit.number for core in stuck.cores for unit in core)}
    behind = [
        unit for unit in state.units if unit.number in stuck.needs and unit.number not in at_rest
    ]
    why_not = "no depth was tried: the moving units do not wait for slots"
    return _report(state, loops, behind, stuck, why_not)


def _circling(unit: UnitState, place: Place | None, steps: int) -> Loop:
    where = "" if place is None else f" ({place})"
    alone = _unit(unit, "circling", [], [], "to send, receive or end")
    return Loop(
        code="FAB-L001",
        units=[alone],
        channels=[],
        cause=(
            f"{unit.name} repeats a loop in its code{where}. In {counted(steps, 'charge')} "
            "it sent and received nothing. A wait for a cycle counts as ten charges. This is a "
            "heuristic: --livelock-cycles sets the number."
        ),
        hint="The operator has to send, to receive or to end",
    )


def _report(
    state: RunState, loops: list[Loop], behind: list[UnitState], stuck: Stuck, why_no_remedy: str
) -> DeadlockReport:
    at_rest = [*behind, *(unit for core in stuck.cores for unit in core)]
    return with_summary(
        DeadlockReport(
            schema=SCHEMA,
            program=state.program,
            code=loops[0].code,
            kind=KINDS[loops[0].code],
            cycle=max((unit.cycle for unit in at_rest), default=0),
            loops=loops,
            behind=[_blocked_unit(state, unit, stuck) for unit in behind],
            finished=sum(unit.finished for unit in state.units),
            remedy=Remedy(why_not=why_no_remedy),
            last_events=_last_events(state, stuck),
            summary="",
        )
    )


def _loop(
    state: RunState, loop: list[UnitState], stuck: Stuck, expected: Mapping[int, Expected]
) -> Loop:
    return Loop(
        code=code(loop, state),
        units=[_blocked_unit(state, unit, stuck) for unit in loop],
        channels=[_loop_channel(c, expected[c.number]) for c in channels_of(state, loop)],
        cause=cause(loop, state, expected),
        hint=hint(loop, state, expected),
    )


def _loop_channel(channel: ChannelState, expected: Expected) -> LoopChannel:
    return LoopChannel(
        name=channel.name,
        option=channel.option,
        depth=channel.depth,
        held=channel.held,
        sent=channel.sent,
        taken=channel.taken,
        expected=str(expected.in_all),
        shape=expected.shape,
        ended_cycle=channel.closed_cycle,
    )


def _blocked_unit(state: RunState, unit: UnitState, stuck: Stuck) -> BlockedUnit:
    wait = wait_of(unit)
    peers = [state.units[peer].name for peer in stuck.needs[unit.number].peers]
    channels = [state.channels[number] for number in wait.channels]
    return _unit(unit, wait.operation, channels, peers, needs(unit, state), wait)


def _unit(
    unit: UnitState,
    operation: str,
    channels: Iterable[ChannelState],
    peers: list[str],
    needs: str,
    wait: WaitState | None = None,
) -> BlockedUnit:
    seen_stop, awaited_stop = (wait and wait.stops) or (None, None)
    return BlockedUnit(
        unit=unit.name,
        operator=unit.operator,
        operation=operation,
        any_of=wait is not None and wait.any_of,
        channels=[channel.name for channel in channels],
        waits_for=peers,
        since_cycle=wait and wait.since_cycle,
        file=unit.place.file,
        line=unit.place.line,
        needs=needs,
        seen_stop=seen_stop,
        awaited_stop=awaited_stop,
    )


def _last_events(state: RunState, stuck: Stuck) -> list[Event]:
    events: list[tuple[int, int, str]] = []
    for loop in stuck.cores:
        for channel in channels_of(state, loop):
            into = channel.option
            if channel.newest_sent_cycle is not None:
                events.append((channel.newest_sent_cycle, channel.producer, f"sends into {into}"))
            if channel.last_taken_cycle is not None:
                events.append((channel.last_taken_cycle, channel.consumer, f"takes from {into}"))
        for unit in loop:
            wait = wait_of(unit)
            what = " or ".join(state.channels[number].option for number in wait.channels)
            lacking = "has no free slot" if wait.operation is Operation.SEND else "is empty"
            wait_text = f"waits, {what} {lacking}" if what else f"waits for {Cause.CAPACITY.awaits}"
            events.append((wait.since_cycle, unit.number, wait_text))
    events.sort()
    return [Event(cycle, state.units[unit].name, what) for cycle, unit, what in events[-_EVENTS:]]
