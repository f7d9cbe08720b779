"""Explanations and remedies of deadlocks and livelocks."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Literal

from fabric.analysis.deadlock.cause import channels_of, find_stuck
from fabric.analysis.deadlock.describe import describe_deadlock, explain_livelock, with_remedy
from fabric.analysis.deadlock.document import INTERRUPTED, NOT_ENDED, NOT_SOUGHT, DeadlockReport
from fabric.analysis.deadlock.livelock import Circling, Livelock
from fabric.analysis.deadlock.picture import write_files
from fabric.analysis.deadlock.trial import EFFORT_ELEMENTS
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.runs.run_log import log_blocked
from fabric.timing.machine.terminations import ending_signal
from fabric.timing.state.run_state import UNEVALUATED, expected_of


def grown_settings(
    explained: DeadlockReport, settings: Settings, notes: list[str]
) -> Settings | None:
    """Return ``settings`` with the depths of the remedy, or None; ``notes`` get a sentence."""
    remedy = explained.remedy
    if remedy.capacity or remedy.initial:
        notes.append("--on-deadlock grow only deepens channels, but the remedy changes more")
        return None
    if not remedy.depths:
        return None
    options = " ".join(f"--depth {depth.option}={depth.after}" for depth in remedy.depths)
    notes.append(
        f"stopped at cycle {explained.cycle:,} ({explained.code}); ran again with {options}"
    )
    depths = {depth.option: depth.after for depth in remedy.depths}
    return replace(settings, depths={**(settings.depths or {}), **depths})


def explain(
    run: Execution,
    status: Literal["deadlock", "livelock"],
    folder: Path | None = None,
) -> DeadlockReport:
    """Explain a deadlock or livelock, search for a remedy if it is wanted, and write files."""
    settings, machine = run.settings, run.machine
    state = run.state
    if status == "livelock":
        # The positions of moving elements differ between runs, and are not reported.
        circling = tuple(Circling(unit.index, place) for unit, place in machine.failures.circling)
        livelock = Livelock(run.watch.cycles, run.watch.moving, circling)
        report = explain_livelock(state, machine.plan, livelock)
        log_blocked(run.log, report, status, len(report.behind), None)
    else:
        described = settings.on_deadlock == "describe"
        if settings.notify is not None and not described:
            settings.notify(
                f"{status} at cycle {state.stopped_cycle:,}: looking for the cause and a remedy"
            )
        why_not = NOT_SOUGHT if described else NOT_ENDED
        stuck = find_stuck(state)
        waited_for = channels_of(state, chain.from_iterable(stuck.cores))
        expected = expected_of(machine.plan, state, waited_for)
        if run.repeats > 1:
            # Shapes state the elements of a single input of the program.
            expected = {
                number: stream._replace(in_all=UNEVALUATED.in_all)
                for number, stream in expected.items()
            }
        report = describe_deadlock(state, stuck, expected, why_not)
        log_blocked(run.log, report, status, state.waiting, state.cycles)
        if folder is not None:
            # The explanation is kept even if the search is killed.
            write_files(folder, report)
        if not described:
            report = with_remedy(
                report,
                machine.plan,
                settings.depths or {},
                settings.hops or {},
                effort=EFFORT_ELEMENTS if settings.on_deadlock == "report" else None,
                takes_channel_depth="channel_depth" in (settings.parameters or {}),
            )
            if report.remedy.why_not == INTERRUPTED:
                run.signal = ending_signal()
    cycle = None if status == "livelock" else state.cycles
    remedy = asdict(report.remedy)
    run.log.event(status, cycle, code=report.code, summary=report.summary, remedy=remedy)
    for failed in () if folder is None else write_files(folder, report):
        run.log.missing(failed)
    return report
