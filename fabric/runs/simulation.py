"""Run a program, explain where it stops, and account for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import trio

from fabric.arguments.checks import Bounds
from fabric.arguments.described import checked, refuse
from fabric.deadlock.livelock import LIVELOCK_CYCLES
from fabric.engine.hop import Hop
from fabric.engine.observer import Observer
from fabric.machine.ending import Ending
from fabric.machine.state_of import memory_use
from fabric.runs import accounting
from fabric.runs.comparison import check_assumptions, compare
from fabric.runs.counters import Comparison
from fabric.runs.execution import Execution, Progress, Settings
from fabric.runs.folders import RunFolder, passing_folder
from fabric.runs.outputs import Outputs
from fabric.runs.pricing import priced
from fabric.runs.report import Failure, Report
from fabric.runs.runlog import RunLog, new_run_folder
from fabric.runs.sizes import measured_sizes
from fabric.runs.storing import stored_arrays, stored_shapes
from fabric.runs.totals import told_of_prices
from fabric.runs.verification import Verification
from fabric.runs.verify import verify
from fabric.symbolic.metrics import metrics_of
from fabric.symbolic.substitution import Substitution
from fabric.telling.errors import ConfigurationError, FabricError
from fabric.telling.place import calling_place
from fabric.telling.plain import JsonObject
from fabric.telling.wording import found_text
from fabric.trace.recording.options import TraceOptions
from fabric.wiring.collector import only_young_garbage
from fabric.wiring.program import Program

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport

__all__ = ["Mode", "OnDeadlock", "simulate"]

Mode = Literal["timing", "functional"]
OnDeadlock = Literal["report", "grow", "describe"]


@checked
@only_young_garbage()
def simulate(
    program: Program,
    *,
    mode: str | None = None,
    depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None,
    hops: Mapping[str, Hop] | None = None,
    log_dir: Path | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    program_file: str = "",
    progress: Progress | None = None,
    on_deadlock: OnDeadlock = "report",
    livelock_cycles: Annotated[int, Bounds(10)] = LIVELOCK_CYCLES,
    trace: TraceOptions | Literal["events", "counters"] | None = None,
    notify: Callable[[str], object] | None = None,
    observers: Sequence[Observer] = (),
    engine: Literal["compiled", "tasks"] = "compiled",
) -> Report:
    """Run ``program`` and return its report, whatever the outcome.

    Args:
        program: wired; it may be run again, under other depths, say.
        mode: ``timing`` or ``functional``; what the program states where None.
        depths: of single channels, by ``consumer.input``.
        hops: latencies of single channels, by ``consumer.input``; one cycle each way elsewhere.
        log_dir: parent of the run's own folder; None writes nothing that stays.
        parameters: for the report.
        program_file: for the report.
        progress: shows the run while it goes on.
        on_deadlock: ``report`` it, with depths that help; ``grow``: run again with those; or
            ``describe`` it, without looking for any.
        livelock_cycles: how long nothing has to get done before the run is given up.
        trace: ``events`` records every transfer and wait, TraceOptions a part of them, ``counters``
            (as None) none; ``report.trace()`` opens what was recorded. It is in the run's folder,
            or without ``log_dir`` in a temporary one that is removed with the report; a run with
            other depths is recorded beside it, in ``trace-grown``.
        notify: told which operators do not end, what takes its time after a run that stopped, and
            at once what of the log or the trace cannot be written. Standard error has the first
            where None.
        observers: are told of transfers, bursts and allocations; of runs to find a remedy they are
            not, of one with other depths they are.
        engine: ``compiled``: operators of whose behaviour in time a table can be made go on without
            a task of their own, in timing mode and where nobody watches; ``tasks``: none do. What
            comes out is the same. A run that comes to what only tasks can do, an error mostly, is
            begun again with them: users' operators then run twice.

    Raises:
        FabricError: the program cannot be run at all.
    """
    mode = mode or program.mode
    if isinstance(trace, str):
        trace = TraceOptions() if trace == "events" else None
    _check_options(mode, log_dir, observers)
    settings = Settings(
        mode == "functional",
        dict(depths or {}),
        dict(hops or {}),
        progress,
        livelock_cycles,
        trace,
        tuple(observers),
        engine == "compiled",
    )
    run = _execution(program, settings, program_file, notify)
    kept = None if log_dir is None else new_run_folder(Path(log_dir), program.name)
    traced_in = None
    if trace is not None:
        traced_in = passing_folder() if kept is None else RunFolder(kept)
    # As the user named it, where they did: that is what they are told about.
    folder = traced_in.path if kept is None and traced_in is not None else kept
    head = {
        "program": program_file,
        "parameters": dict(parameters or {}),
        "hardware": program.hardware.as_dict(),
        "mode": mode,
        "name": program.name,
        "log_dir": None if kept is None else str(kept),
    }
    unwritten: list[str] = []

    def missing(sentence: str) -> None:
        unwritten.append(sentence)
        if notify is not None:
            notify(sentence)

    with RunLog(kept, missing) as log:
        log.frame(
            "run_started",
            0,
            program=program_file,
            parameters=head["parameters"],
            mode=mode,
            operators=len(run.machine.units),
            channels=len(run.machine.channels),
        )
        notes: list[str] = []
        run.log = log
        run.start_trace(folder, "trace", head, missing)
        status = run.execute()
        explained = None
        if status in ("deadlock", "livelock"):
            # What looks for a remedy builds machines of its own: most runs need none of it.
            from fabric.deadlock.files import write_files
            from fabric.runs.explaining import explain, grown_settings

            takes_channel_depth = "channel_depth" in (parameters or {})
            explained = explain(run, status, on_deadlock, folder, notify, takes_channel_depth)
            if folder is not None:
                for failed in write_files(folder, explained):
                    missing(failed)
            grown = on_deadlock == "grow" and grown_settings(explained, settings, notes)
            if grown:
                run = Execution(program, grown, notify)
                run.log = log
                run.start_trace(folder, "trace-grown", head, missing)
                status, explained = run.execute(), None
        report = _report(run, status, head, explained, notes)
        run.conclude_trace(report.status, report.verified, told_of_prices(report))
        log.frame(
            "run_ended",
            report.cycles or 0,
            status=report.status,
            verified=report.verified,
            cycles=report.cycles,
            elements=report.elements,
        )
        log.write_report(report)
    return replace(
        report,
        warnings=(*report.warnings, *unwritten),
        unwritten=tuple(unwritten),
        traced_in=traced_in,
    )


def _check_options(mode: str, log_dir: Path | str | None, observers: object) -> None:
    """Refuse what cannot be run so."""
    wrong = None
    if mode not in ("timing", "functional"):
        wrong = f"simulate: mode is {mode!r}: expected timing or functional"
    elif not (
        isinstance(observers, Sequence) and all(isinstance(each, Observer) for each in observers)
    ):
        wrong = f"simulate: observers is {found_text(observers)}: expected a list of Observers"
    elif log_dir == "":
        wrong = "simulate: log_dir is '': expected a folder, or None to write nothing"
    elif trio.lowlevel.in_trio_run():
        wrong = (
            "simulate() is called inside of trio: expected a thread of its own, as in "
            "await trio.to_thread.run_sync(simulate, program)"
        )
    if wrong is not None:
        refuse(wrong, ConfigurationError)


def _execution(
    program: Program,
    settings: Settings,
    program_file: str,
    notify: Callable[[str], object] | None,
) -> Execution:
    """Build the machine; what it refuses is told where the user's program calls, if it does."""
    try:
        return Execution(program, settings, notify)
    except ConfigurationError as error:
        if error.file is None and not program_file:
            error.file, error.line = calling_place()
        raise


def _report(
    run: Execution,
    status: Ending,
    head: JsonObject,
    explained: DeadlockReport | None,
    notes: list[str],
) -> Report:
    """Account for the run."""
    machine = run.machine
    signal = run.signal if status == "interrupted" else None
    error = machine.failures.first
    if status == "livelock" or machine.ran_ahead:
        # Where a loop was when it was stopped differs from run to run.
        return Report(
            **head,
            status=status,
            operators=len(machine.units),
            channels=len(machine.channels),
            wall_seconds=run.wall_seconds,
            verification=_not_verified(run, status),
            explained=explained,
            failure=None if error is None else Failure.of(error),
            warnings=tuple(notes),
            signal=signal,
        )
    plan = machine.plan
    program = plan.program
    state = run.state
    measured = measured_sizes(plan, state)
    sizes = measured.sizes
    substitution = Substitution(sizes)
    likeness = None if machine.region is None else machine.region.likeness
    metrics = metrics_of(plan, substitution, likeness)
    totals = accounting.totals(state, plan.peak_bytes_per_cycle, metrics)
    in_units: JsonObject = {}
    extra: JsonObject = {}
    outputs = Outputs({})
    comparison = Comparison()
    warnings = [*notes, *accounting.warnings(state)]
    verification = _not_verified(run, status)
    if status in ("interrupted", "error"):
        # Traffic was asked for that has not been moved yet: there is no share of the peak.
        totals = totals._replace(compute_utilization=None, off_chip_bandwidth_utilization=None)
    if status == "completed":
        try:
            check_assumptions(plan, state, machine.assumed, substitution)
            used = memory_use(machine)
            comparison = compare(plan, state, used, measured, metrics)
            if run.settings.functional:
                verification = verify(program, machine.stored)
            extra = {
                name: program.ask(f"extra[{name!r}]", compute)
                for name, compute in program.extra.items()
            }
        except FabricError as failure:
            status, error = "error", failure
            verification = _not_verified(run, status)
        else:
            in_units = priced(plan, state, used, substitution)._asdict()
            outputs = (
                stored_arrays(plan, machine.stored)
                if run.settings.functional
                else stored_shapes(plan, sizes, measured.guessed)
            )
            warnings += comparison.warnings
            warnings += [] if verification is None else verification.warnings()
    return Report(
        **head,
        status=status,
        cycles=totals.cycles,
        off_chip_traffic_bytes=totals.off_chip_traffic_bytes,
        on_chip_requirement_bytes=totals.on_chip_requirement_bytes,
        off_chip_traffic_artifact_bytes=totals.off_chip_traffic_artifact_bytes,
        on_chip_requirement_artifact_bytes=totals.on_chip_requirement_artifact_bytes,
        hbm_bytes_moved=totals.hbm_bytes_moved,
        hbm=state.hbm,
        flops=totals.flops,
        allocated_flops_per_cycle=totals.allocated_flops_per_cycle,
        compute_utilization=totals.compute_utilization,
        off_chip_bandwidth_utilization=totals.off_chip_bandwidth_utilization,
        operators=totals.operators,
        channels=totals.channels,
        elements=totals.elements,
        **in_units,
        wall_seconds=run.wall_seconds,
        verified=None if verification is None else verification.verified,
        verification=verification,
        explained=explained,
        failure=None if error is None else Failure.of(error),
        extra=extra,
        units=run.counters,
        channels_counters=accounting.channel_counters(state),
        comparison=comparison,
        warnings=tuple(warnings),
        signal=signal,
        outputs=outputs,
    )


def _not_verified(run: Execution, status: Ending) -> Verification | None:
    """Say why outputs that the program expects were not compared."""
    if not run.machine.plan.program.expected:
        return None
    reason = f"the run ended as {status}" if run.settings.functional else "timing mode"
    return Verification(not_verified=reason)
