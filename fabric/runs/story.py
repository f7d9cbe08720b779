"""What is said of a run's waits and of its end, as events with fields.

A collector of logs sees the facts that the report has: who waits, on what, since when, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from fabric.runs import accounting
from fabric.runs.runlog import HEARTBEAT_CYCLES, RunLog

if TYPE_CHECKING:
    from fabric.deadlock.document import BlockedUnit, DeadlockReport
    from fabric.runs.report import Report
    from fabric.state.run_state import RunState

__all__ = ["tell_blocked", "tell_deadlock", "tell_end", "tell_waits"]


def tell_waits(log: RunLog, state: RunState, cycle: int, told: set[tuple[int, ...]]) -> None:
    """Tell who will never go on although others do, and who has waited for long.

    Args:
        log: is told.
        state: of the run, while no unit of it runs.
        cycle: of the clock.
        told: loops, and waits of single units, that are known; new ones are added.
    """
    # Most runs are over before the first heartbeat.
    from fabric.deadlock.cause import channels_of, find_stuck, wait_of

    stuck = find_stuck(state)
    for loop in stuck.cores:
        numbers = tuple(sorted(unit.number for unit in loop))
        if numbers not in told:
            told.add(numbers)
            log.event(
                "partial_deadlock",
                cycle,
                loop=[unit.name for unit in loop],
                on=[channel.name for channel in channels_of(state, loop)],
                since_cycle=max(wait_of(unit).since_cycle for unit in loop),
            )
    in_loops = {unit.number for loop in stuck.cores for unit in loop}
    for unit in state.units:
        wait = unit.wait
        if unit.number not in stuck.needs or unit.number in in_loops or wait is None:
            continue
        known = (-1, unit.number, wait.since_cycle)
        stalled_cycles = cycle - wait.since_cycle
        if stalled_cycles >= HEARTBEAT_CYCLES and known not in told:
            told.add(known)
            log.event(
                "long_stall",
                cycle,
                unit=unit.name,
                waits_for=wait.operation.value,
                on=[state.channels[number].name for number in wait.channels],
                peers=[state.units[number].name for number in stuck.needs[unit.number].peers],
                since_cycle=wait.since_cycle,
                cycles=stalled_cycles,
            )


def tell_blocked(
    log: RunLog, found: DeadlockReport, status: str, waiting: int, cycle: int | None
) -> None:
    """Tell that a run has stopped, who cannot go on, and why; before a remedy is looked for.

    Args:
        log: is told.
        found: what is known.
        status: of the run.
        waiting: how many units wait.
        cycle: the run's last; None where units went on when they were stopped.
    """
    since_cycle = None if cycle is None else found.cycle
    log.event("stopped", cycle, status=status, waiting=waiting, since_cycle=since_cycle)
    for loop in found.loops:
        names = [unit.unit for unit in loop.units]
        log.event("stuck_loop", cycle, code=loop.code, loop=names, root=loop.cause, hint=loop.hint)
        for unit in loop.units:
            _tell_unit(log, "blocked", cycle, unit)
    for unit in found.behind:
        _tell_unit(log, "blocked_behind", cycle, unit)


def tell_deadlock(
    log: RunLog,
    found: DeadlockReport,
    status: Literal["deadlock", "livelock"],
    cycle: int | None,
) -> None:
    """Tell what became of a run that has stopped in ``cycle``, and with what it would complete."""
    remedy = asdict(found.remedy)
    log.event(status, cycle, code=found.code, summary=found.summary, remedy=remedy)


def _tell_unit(log: RunLog, event: str, cycle: int | None, unit: BlockedUnit) -> None:
    log.event(
        event,
        cycle,
        unit=unit.unit,
        operator=unit.operator,
        waits_for=unit.operation,
        on=unit.channels,
        any_of=unit.any_of,
        peers=unit.waits_for,
        since_cycle=unit.since_cycle,
        needs=unit.needs,
        seen_stop=unit.seen_stop,
        awaited_stop=unit.awaited_stop,
        file=unit.file,
        line=unit.line,
    )


def tell_end(log: RunLog, report: Report, state: RunState, unwritten: Sequence[str]) -> None:
    """Tell what was wrong with a run, and that it has ended.

    Args:
        log: is told.
        report: of the run.
        state: in which it ended.
        unwritten: sentences about what could not be written.
    """
    cycle = report.cycles
    said = accounting.warnings(state)
    if cycle is not None:
        for channel in state.channels:
            if channel.left_over:
                log.event(
                    "left_over",
                    cycle,
                    code="FAB-D004",
                    channel=channel.name,
                    unit=state.units[channel.consumer].name,
                    left_over=channel.left_over,
                )
    for sentence in (*report.warnings, *unwritten):
        if sentence not in said:
            log.event("warning", cycle, message=sentence)
    verification = report.verification
    for output in () if verification is None else verification.outputs:
        if not output.agrees:
            log.event(
                "wrong_output",
                cycle,
                output=output.output,
                compared=output.elements,
                mismatched=output.mismatched,
                absolute_error=output.absolute_error,
                message=output.lines()[0],
            )
    if report.failure is not None:
        log.event("failure", cycle, **asdict(report.failure))
    log.event(
        "run_ended",
        cycle,
        status=report.status,
        verified=report.verified,
        cycles=cycle,
        elements=report.elements,
    )
