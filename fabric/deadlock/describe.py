"""From a machine that has come to rest to the report of its deadlock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fabric.deadlock.cause import cause, code, hint, needs
from fabric.deadlock.document import (
    KINDS,
    SCHEMA,
    BlockedUnit,
    DeadlockReport,
    Event,
    Loop,
    Remedy,
)
from fabric.deadlock.remedy import find_remedy
from fabric.deadlock.text import one_line
from fabric.deadlock.tokens import Tokens
from fabric.deadlock.waits import Stuck, find_stuck
from fabric.telling.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fabric.deadlock.livelock import LivelockWatch
    from fabric.engine.channel import Channel
    from fabric.engine.unit import Unit
    from fabric.machine.machine import Machine
    from fabric.telling.place import Place
    from fabric.wiring.elaborate import Plan

__all__ = ["cured", "describe_deadlock", "explain_livelock"]

_EVENTS: Final = 8
"""How many of the last events are reported."""

_NAMES: Final = 4
"""How many units of a livelock its cause names."""


def describe_deadlock(
    machine: Machine, stuck: Stuck, tokens: Tokens, why_no_remedy: str
) -> DeadlockReport:
    """Describe why the units of ``machine`` that are ``stuck``, at least one, can never go on."""
    loops = [_loop(machine, loop, stuck, tokens) for loop in stuck.cores]
    return _report(machine, loops, stuck.tail, stuck, tokens, _no_remedy(why_no_remedy))


def cured(
    report: DeadlockReport,
    plan: Plan,
    depths: Mapping[str, int],
    *,
    effort: int | None,
    takes_channel_depth: bool,
) -> DeadlockReport:
    """Return ``report`` with a remedy that was tried.

    Args:
        report: of a deadlock.
        plan: the program.
        depths: of single channels, by option, with which it got stuck.
        effort: see ``find_remedy``.
        takes_channel_depth: see ``find_remedy``.
    """
    names = frozenset(frozenset(unit.unit for unit in loop.units) for loop in report.loops)
    remedy = _no_remedy("the search for a remedy was interrupted")
    try:
        remedy = find_remedy(
            plan, depths, names, effort=effort, takes_channel_depth=takes_channel_depth
        )
    except* KeyboardInterrupt:
        pass
    return one_line(replace(report, remedy=remedy))


def explain_livelock(machine: Machine, watch: LivelockWatch) -> DeadlockReport:
    """Name the units of ``machine`` that move and get nothing done.

    Where they were when they were stopped differs from run to run, so their clocks and counts
    are left out.
    """
    stuck = find_stuck(machine)
    tokens = Tokens(machine)
    moving = sorted({channel.producer for channel in watch.moving}, key=lambda unit: unit.index)
    readers = {unit: [c for c in watch.moving if c.producer is unit] for unit in moving}
    circling = sorted(machine.circling, key=lambda found: found[0].index)
    loops = [_circling(machine, unit, place, watch.cycles) for unit, place in circling]
    names = " and ".join(unit.name for unit in moving[:_NAMES])
    more = f" and {len(moving) - _NAMES:,} more" if len(moving) > _NAMES else ""
    round_and_round = Loop(
        code="FAB-L001",
        units=[
            _blocked_as(
                machine,
                unit,
                operation="moving",
                channels=readers[unit],
                peers=[channel.consumer.name for channel in readers[unit]],
                needs="an end",
            )
            for unit in moving
        ],
        channels=[],
        cause=(
            f"{names}{more} pass elements on and on. For {watch.cycles:,} cycles no sink received, "
            "no unit charged work, and no burst of the HBM completed. This is a "
            "heuristic: --livelock-cycles sets how long it waits."
        ),
        hint="An element has to leave the loop, or the loop has to end",
    )
    # Loops that do not move at all are not behind it, and where they rest is the same in each run.
    loops += [round_and_round] if moving else []
    loops += [_loop(machine, core, stuck, tokens) for core in stuck.cores]
    told = {*moving, *(unit for core in stuck.cores for unit in core)}
    behind = [unit for unit in machine.units if unit.index in stuck.needs and unit not in told]
    why_not = "no depth was tried: what moves does not wait for room"
    return _report(machine, loops, behind, stuck, tokens, _no_remedy(why_not))


def _circling(machine: Machine, unit: Unit, place: Place | None, steps: int) -> Loop:
    """Describe a unit that works, or waits for cycles, on and on, and moves nothing."""
    where = "" if place is None else f" ({place})"
    alone = _blocked_as(
        machine, unit, operation="circling", channels=[], peers=[], needs="to send, receive or end"
    )
    return Loop(
        code="FAB-L001",
        units=[alone],
        channels=[],
        cause=(
            f"{unit.name} goes round in a loop of its own{where}. In {steps:,} charges, or a tenth "
            "as many waits for a cycle, it sent and received nothing. This is a heuristic: "
            "--livelock-cycles sets how many."
        ),
        hint="The operator has to send, to receive or to end",
    )


def _no_remedy(why_not: str) -> Remedy:
    return Remedy([], None, None, False, 0, why_not)


def _report(
    machine: Machine,
    loops: list[Loop],
    behind: list[Unit],
    stuck: Stuck,
    tokens: Tokens,
    remedy: Remedy,
) -> DeadlockReport:
    at_rest = [*behind, *(unit for core in stuck.cores for unit in core)]
    return one_line(
        DeadlockReport(
            schema=SCHEMA,
            program=machine.plan.program.name,
            code=loops[0].code,
            kind=KINDS[loops[0].code],
            cycle=max((unit.now for unit in at_rest), default=0),
            loops=loops,
            behind=[_blocked(machine, unit, stuck, tokens) for unit in behind],
            finished=sum(unit.finished for unit in machine.units),
            remedy=remedy,
            last_events=_last_events(stuck),
            summary="",
        )
    )


def _loop(machine: Machine, loop: list[Unit], stuck: Stuck, tokens: Tokens) -> Loop:
    return Loop(
        code=code(loop, tokens),
        units=[_blocked(machine, unit, stuck, tokens) for unit in loop],
        channels=[tokens.state(channel) for channel in _channels(loop)],
        cause=cause(loop, tokens),
        hint=hint(loop, tokens),
    )


def _blocked(machine: Machine, unit: Unit, stuck: Stuck, tokens: Tokens) -> BlockedUnit:
    wait = unit.wait
    assert wait is not None
    return _blocked_as(
        machine,
        unit,
        operation=wait.operation,
        channels=wait.channels,
        peers=[machine.units[peer].name for peer in stuck.needs[unit.index].peers],
        needs=needs(unit, tokens),
        since_cycle=wait.since_cycle,
        any_of=wait.any_of,
        stops=wait.stops,
    )


def _blocked_as(
    machine: Machine,
    unit: Unit,
    *,
    operation: str,
    channels: Iterable[Channel],
    peers: list[str],
    needs: str,
    since_cycle: int | None = None,
    any_of: bool = False,
    stops: tuple[int, int] | None = None,
) -> BlockedUnit:
    seen_stop, awaited_stop = stops or (None, None)
    return BlockedUnit(
        unit=unit.name,
        operator=type(machine.plan.nodes[unit.index].operator).__name__,
        operation=operation,
        any_of=any_of,
        channels=[channel.name for channel in channels],
        waits_for=peers,
        since_cycle=since_cycle,
        file=unit.place.file,
        line=unit.place.line,
        needs=needs,
        seen_stop=seen_stop,
        awaited_stop=awaited_stop,
    )


def _channels(loop: Iterable[Unit]) -> list[Channel]:
    waits = (unit.wait for unit in loop)
    return list(dict.fromkeys(channel for wait in waits if wait for channel in wait.channels))


def _last_events(stuck: Stuck) -> list[Event]:
    """Return what the channels of the loops still have stamps of, and the waits themselves."""
    events: list[tuple[int, int, str, Unit]] = []
    for loop in stuck.cores:
        for channel in _channels(loop):
            into = channel.name.rpartition(" ")[2]
            producer, consumer = channel.producer, channel.consumer
            if channel.queue:
                cycle = channel.queue[-1][0]
                events.append((cycle, producer.index, f"sends into {into}", producer))
            if channel.last_taken_cycle is not None:
                cycle = channel.last_taken_cycle
                events.append((cycle, consumer.index, f"takes from {into}", consumer))
        for unit in loop:
            wait = unit.wait
            assert wait is not None
            state = "has no free slot" if wait.operation == "send" else "is empty"
            what = " or ".join(channel.name.rpartition(" ")[2] for channel in wait.channels)
            said = f"waits, {what} {state}" if what else f"waits for {Cause.CAPACITY.awaits}"
            events.append((wait.since_cycle, unit.index, said, unit))
    events.sort(key=lambda event: event[:3])
    return [Event(cycle, unit.name, what) for cycle, _, what, unit in events[-_EVENTS:]]
