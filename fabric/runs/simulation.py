"""Run a program, explain where it stops, and account for it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from fabric.arguments.described import refuse
from fabric.arguments.keywords import taking
from fabric.machine.ending import Ending
from fabric.machine.network_use import network_use
from fabric.machine.state_of import memory_use
from fabric.runs import accounting
from fabric.runs.comparison import check_assumptions, compare
from fabric.runs.counters import Comparison
from fabric.runs.execution import Execution
from fabric.runs.folders import RunFolder, passing_folder
from fabric.runs.options import Settings
from fabric.runs.outputs import Outputs
from fabric.runs.pricing import priced
from fabric.runs.report import Failure, Report
from fabric.runs.runlog import RunLog, new_run_folder
from fabric.runs.sizes import measured_sizes
from fabric.runs.storing import stored_arrays, stored_shapes
from fabric.runs.story import tell_end
from fabric.runs.totals import told_of_links, told_of_prices
from fabric.runs.verification import Verification
from fabric.runs.verify import noise_of, verify
from fabric.symbolic.area import sized
from fabric.symbolic.metrics import metrics_of
from fabric.symbolic.substitution import Substitution
from fabric.telling.errors import ConfigurationError, FabricError, ProgramError
from fabric.telling.events import logger_of
from fabric.telling.place import blamed_place
from fabric.telling.plain import JsonObject, untellable
from fabric.telling.users_code import notifying
from fabric.values.precision import exact_numbers
from fabric.wiring.collector import only_young_garbage
from fabric.wiring.program import Program

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.hardware.description import OnChipDescription
    from fabric.state.memory_use import MemoryUse

__all__ = ["simulate", "simulated"]


@taking(Settings)
def simulate(program: Program, settings: Settings) -> Report:
    """Run ``program`` and return its report, whatever the outcome.

    Args:
        program: a wired program; you may run it again, for instance with other depths.
        settings: the settings of the run, as keywords.

    Raises:
        FabricError: the program cannot be run at all.
    """
    return simulated(program, settings)


@only_young_garbage()
def simulated(program: Program, settings: Settings) -> Report:
    """Do what ``simulate`` does."""
    if trio.lowlevel.in_trio_run():
        refuse(
            "simulate() is called inside of trio: expected a thread of its own, as in "
            "await trio.to_thread.run_sync(simulate, program)",
            ConfigurationError,
        )
    told = None if settings.notify is None else notifying(settings.notify)
    settings = replace(settings, mode=settings.mode_of(program), notify=told)
    notify, program_file = settings.notify, settings.program_file
    log, log_dir = settings.log, settings.log_dir
    logger = None if log is None else logger_of(log, "simulate", program.name)
    run = _execution(program, settings)
    kept = None if log_dir is None else new_run_folder(Path(log_dir), program.name)
    traced_in = None
    if settings.traced is not None:
        traced_in = passing_folder() if kept is None else RunFolder(kept)
    # As the user named it, where they did: that is what they are told about.
    folder = traced_in.path if kept is None and traced_in is not None else kept
    head = {
        "program": program_file,
        "parameters": dict(settings.parameters or {}),
        "hardware": program.hardware.as_dict(),
        "mode": settings.mode,
        "exact": settings.exact,
        "name": program.name,
        "log_dir": None if kept is None else str(kept),
    }
    unwritten: list[str] = []

    def missing(sentence: str) -> None:
        unwritten.append(sentence)
        if notify is not None:
            notify(sentence)

    with RunLog(missing, folder=kept, run=program.name, log=logger) as story:
        story.event(
            "run_started",
            0,
            program=program_file,
            parameters=head["parameters"],
            mode=settings.mode,
            operators=len(run.machine.units),
            channels=len(run.machine.channels),
        )
        notes: list[str] = []
        run.log = story
        run.start_trace(folder, "trace", head, missing)
        status = run.execute()
        explained = None
        if status in ("deadlock", "livelock"):
            # What looks for a remedy builds machines of its own: most runs need none of it.
            from fabric.deadlock.files import write_files
            from fabric.runs.explaining import explain, grown_settings

            explained = explain(run, status, folder)
            if folder is not None:
                for failed in write_files(folder, explained):
                    missing(failed)
            grown = settings.on_deadlock == "grow" and grown_settings(explained, settings, notes)
            if grown:
                story.event("run_again", 0, depths=grown.depths)
                run = Execution(program, grown)
                run.log = story
                run.start_trace(folder, "trace-grown", head, missing)
                status, explained = run.execute(), None
        declared = _as_declared(run) if settings.exact and status == "completed" else None
        report = _report(run, declared, status, head, explained, notes)
        links = list(told_of_links(report))
        run.conclude_trace(report.status, report.verified, told_of_prices(report), links)
        tell_end(story, report, run.state, tuple(unwritten))
        story.write_report(report)
    return replace(
        report,
        warnings=(*report.warnings, *unwritten),
        unwritten=tuple(unwritten),
        traced_in=traced_in,
    )


def _execution(program: Program, settings: Settings) -> Execution:
    """Build the machine; what it refuses is told where the user's program calls, if it does."""
    try:
        return Execution(program, settings)
    except ConfigurationError as error:
        place = blamed_place()
        if error.file is None and not settings.program_file and place is not None:
            error.file, error.line = place
        raise


class _Declared(NamedTuple):
    """What becomes of a program in the types that it declares."""

    run: Execution
    status: Ending

    def sentence(self) -> str:
        """Say that it ends in another way than in float64."""
        error = self.run.machine.failures.first
        why = "" if error is None else f": {error.message}"
        return f"in the types that it declares the program ends as {self.status}{why}"


def _as_declared(run: Execution) -> _Declared:
    """Run the program of an exact run once more, in the types that it declares."""
    plan = run.machine.plan
    declared = Execution(plan.program, run.settings.as_declared(), plan)
    return _Declared(declared, declared.execute())


def _report(
    run: Execution,
    declared: _Declared | None,
    status: Ending,
    head: JsonObject,
    explained: DeadlockReport | None,
    notes: list[str],
) -> Report:
    """Account for the run; ``declared`` is the same in the types that the program declares."""
    machine = run.machine
    interrupted = run
    if declared is not None and declared.status == "interrupted":
        interrupted, status = declared.run, "interrupted"
    signal = interrupted.signal if status == "interrupted" else None
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
    plan, state = machine.plan, run.state
    program = plan.program
    measured = measured_sizes(plan, state)
    sizes = measured.sizes
    substitution = Substitution(sizes)
    likeness = None if machine.region is None else machine.region.likeness
    metrics = metrics_of(plan, substitution, likeness)
    run.on_chip_bytes = metrics.on_chip_bytes
    totals = accounting.totals(state, plan.peak_bytes_per_cycle, metrics)
    in_units: JsonObject = {}
    extra: JsonObject = {}
    outputs = Outputs({})
    comparison = Comparison()
    signal_to_noise: dict[str, float | None] = {}
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
            if run.functional:
                exact = run.settings.exact
                with exact_numbers(exact):
                    verification = verify(plan, machine.stored, run.expected.kept, exact=exact)
            extra = {name: _extra(program, name) for name in program.extra}
        except FabricError as failure:
            status, error = "error", failure
            verification = _not_verified(run, status)
        else:
            in_units = _held(used, program.hardware.on_chip)
            in_units |= priced(plan, state, used, substitution)._asdict()
            outputs = (
                stored_arrays(plan, machine.stored)
                if run.functional
                else stored_shapes(plan, sizes, measured.guessed)
            )
            if declared is not None and declared.status == "completed":
                signal_to_noise = noise_of(
                    outputs, stored_arrays(plan, declared.run.machine.stored)
                )
            elif declared is not None:
                warnings.append(declared.sentence())
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
        network=network_use(machine),
        flops=totals.flops,
        allocated_flops_per_cycle=totals.allocated_flops_per_cycle,
        compute_utilization=totals.compute_utilization,
        off_chip_bandwidth_utilization=totals.off_chip_bandwidth_utilization,
        operators=totals.operators,
        channels=totals.channels,
        elements=totals.elements,
        **sized(plan, [each.depth for each in state.channels], metrics, substitution)._asdict(),
        **in_units,
        wall_seconds=run.wall_seconds,
        verified=None if verification is None else verification.verified,
        verification=verification,
        signal_to_noise_db=signal_to_noise,
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


def _held(used: MemoryUse, on_chip: OnChipDescription) -> JsonObject:
    """Return what was held on chip, in bytes and, where they are counted, in pages."""
    pages = used.on_chip_peak_pages
    return {
        "on_chip_peak_bytes": used.on_chip_peak_bytes,
        "on_chip_peak_pages": pages,
        "on_chip_map_bytes": None if pages is None else -(-pages * on_chip.page_number_bits // 8),
    }


def _extra(program: Program, name: str) -> object:
    """Return a field that the program adds.

    Raises:
        ProgramError: computing it raised, or it cannot be turned into JSON.
    """
    what = f"extra[{name!r}]"
    value = program.ask(what, program.extra[name])
    found = program.ask(f"the text of {what}", partial(untellable, value))
    if found is not None:
        place = program.extra.place(name)
        raise ProgramError(
            f"{what} is {found}: expected numbers, text, and lists and dictionaries of them",
            file=place.file,
            line=place.line,
        )
    return value


def _not_verified(run: Execution, status: Ending) -> Verification | None:
    """Say why outputs that the program expects were not compared."""
    if not run.machine.plan.program.expects:
        return None
    reason = f"the run ended as {status}" if run.functional else "timing mode"
    return Verification(not_verified=reason)
