"""Runs a program and makes its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import trio

from fabric.analysis.symbolic.area import sized
from fabric.analysis.symbolic.metrics import Metrics, metrics_of
from fabric.analysis.symbolic.substitution import Sizes, Substitution
from fabric.graph.arguments.described import refuse
from fabric.graph.arguments.keywords import taking
from fabric.graph.values.block_scaled import block_format, numbers_of
from fabric.graph.values.dims import Dim, free_symbols, is_polynomial_in, is_ragged
from fabric.graph.values.expression import Symbol
from fabric.graph.values.fit import exact_numbers
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.costs import OffChipTensor
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.mistakes import off_chip_tensor_of
from fabric.graph.wiring.program import Program
from fabric.messages.addresses import without_passwords
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.events import logger_of
from fabric.messages.place import blamed_place
from fabric.messages.text import JsonObject, json_fault
from fabric.messages.users_code import users_code
from fabric.runs import counters
from fabric.runs.comparison import check_assumptions, compare, measured_sizes
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.runs.outputs import Outputs, OutputShape
from fabric.runs.pricing import priced
from fabric.runs.report import FIGURES, Failure, Report, RunFolder, passing_folder
from fabric.runs.run_log import RunLog, log_end, new_run_folder
from fabric.runs.verification import Verification
from fabric.runs.verify import noise_of, verify
from fabric.timing.machine.machine import memory_use, network_use
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import DeadlockReport
    from fabric.graph.hardware.description import Pages
    from fabric.runs.comparison import Measured
    from fabric.timing.state.resource_use import MemoryUse
    from fabric.timing.state.run_state import RunState


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


def refuse_in_trio(function: str, arguments: str) -> None:
    """Refuse a call inside a trio task, since a run needs its own trio loop."""
    if trio.lowlevel.in_trio_run():
        refuse(
            f"{function}() is called inside of trio: expected a thread of its own, as in "
            f"await trio.to_thread.run_sync({function}, {arguments})",
            ConfigurationError,
        )


@only_young_garbage()
def simulated(program: Program, settings: Settings) -> Report:
    refuse_in_trio("simulate", "program")
    notify = None if settings.notify is None else users_code("notify")(settings.notify)
    settings = replace(settings, mode=settings.mode_of(program), notify=notify)
    run = _execution(program, settings)
    log_dir = settings.log_dir
    kept = None if log_dir is None else new_run_folder(Path(log_dir), program.name)
    traced_in = None
    if settings.traced is not None:
        traced_in = passing_folder() if kept is None else RunFolder(kept.absolute())
    # Messages spell the folder as the user spelled it.
    folder = traced_in.path if kept is None and traced_in is not None else kept
    logger = None if settings.log is None else logger_of(settings.log, "simulate", program.name)
    with RunLog(settings.notify, folder=kept, run=program.name, log=logger) as log:
        head = _head(program, settings, kept)
        notes: list[str] = []
        run, explained = _run_and_explain(run, log, folder, head, notes)
        declared = None
        if settings.exact and run.status == "completed":
            as_declared = replace(
                run.settings, exact=False, progress=None, trace=None, observers=()
            )
            declared = Execution(program, as_declared, run.machine.plan)
            declared.execute()
        report = _report(run, declared, head, explained, notes)
        run.conclude_trace(report)
        log_end(log, report, run.state)
        log.write_report(report)
    return replace(
        report,
        warnings=(*report.warnings, *log.unwritten),
        unwritten=tuple(log.unwritten),
        traced_in=traced_in,
    )


def _head(program: Program, settings: Settings, kept: Path | None) -> JsonObject:
    return {
        "program": settings.program_file,
        "parameters": {
            name: without_passwords(value) if isinstance(value, str) else value
            for name, value in (settings.parameters or {}).items()
        },
        "hardware": program.hardware.as_dict(),
        "mode": settings.mode,
        "exact": settings.exact,
        "name": program.name,
        "log_dir": None if kept is None else str(kept),
    }


def _run_and_explain(
    run: Execution,
    log: RunLog,
    folder: Path | None,
    head: JsonObject,
    notes: list[str],
) -> tuple[Execution, DeadlockReport | None]:
    settings = run.settings

    def execute(run: Execution, trace: str) -> Ending:
        run.log = log
        if folder is not None:
            run.start_trace(folder / trace, head, log.missing)
        return run.execute()

    log.event(
        "run_started",
        0,
        program=settings.program_file,
        parameters=head["parameters"],
        mode=settings.mode,
        operators=len(run.machine.units),
        channels=len(run.machine.channels),
    )
    status = execute(run, "trace")
    if status not in ("deadlock", "livelock"):
        return run, None
    # Most runs do not search for a remedy.
    from fabric.runs.explaining import explain, grown_settings

    explained = explain(run, status, folder)
    grown = settings.on_deadlock == "grow" and grown_settings(explained, settings, notes)
    if not grown:
        return run, explained
    log.event("run_again", 0, depths=grown.depths)
    again = Execution(run.machine.plan.program, grown)
    execute(again, "trace-grown")
    return again, None


def _execution(program: Program, settings: Settings) -> Execution:
    try:
        return Execution(program, settings)
    except ConfigurationError as error:
        place = blamed_place()
        if error.file is None and not settings.program_file and place is not None:
            error.file, error.line = place
        raise


def _report(
    run: Execution,
    declared: Execution | None,
    head: JsonObject,
    explained: DeadlockReport | None,
    notes: list[str],
) -> Report:
    machine, status, signal = run.machine, run.status, run.signal
    if declared is not None and declared.status == "interrupted":
        status, signal = declared.status, declared.signal
    error = machine.failures.first
    fields: JsonObject = head | {
        "status": status,
        "wall_seconds": run.wall_seconds,
        "explained": explained,
        "signal": signal,
        "operators": len(machine.units),
        "channels": len(machine.channels),
        "verification": _not_verified(run, status),
        "failure": None if error is None else Failure.of(error),
        "warnings": tuple(notes),
    }
    if status == "livelock" or machine.ran_ahead:
        # The position of a livelock differs between runs.
        return Report(**fields)
    plan, state = machine.plan, run.state
    measured = measured_sizes(plan, state)
    sizes = Substitution(measured.sizes)
    likeness = None if machine.region is None else machine.region.likeness
    metrics = metrics_of(plan, sizes, likeness)
    run.on_chip_bytes = metrics.on_chip_bytes
    fields |= counters.totals(state, plan.peak_bytes_per_cycle, metrics)
    fields |= sized(plan, [channel.depth for channel in state.channels], metrics, sizes)._asdict()
    fields |= {
        "hbm": state.hbm,
        "network": network_use(machine),
        "units": run.counters,
        "channels_counters": counters.channel_counters(state),
        "warnings": (*notes, *counters.warnings(state)),
    }
    if status in ("interrupted", "error"):
        # Requested traffic may be in flight, so that the utilization is unknown.
        fields |= {"compute_utilization": None, "off_chip_bandwidth_utilization": None}
    if status == "completed":
        try:
            _complete(fields, run, declared, measured, metrics)
        except FabricError as failure:
            fields |= {"status": "error", "failure": Failure.of(failure)}
            fields["verification"] = _not_verified(run, "error")
    verification = fields["verification"]
    return Report(**fields, verified=None if verification is None else verification.verified)


def _complete(
    fields: JsonObject,
    run: Execution,
    declared: Execution | None,
    measured: Measured,
    metrics: Metrics,
) -> None:
    """Add the ``fields`` of a completed run; wrong statements of the program raise FabricErrors."""
    machine = run.machine
    plan, sizes = machine.plan, Substitution(measured.sizes)
    check_assumptions(plan, run.state, machine.assumed, sizes)
    used = memory_use(machine)
    fields["comparison"] = comparison = compare(plan, run.state, used, measured, metrics)
    verification: Verification | None = fields["verification"]
    if run.functional:
        exact = run.settings.exact
        with exact_numbers(exact):
            verification = verify(plan, machine.stored, run.expected.kept, exact=exact)
        outputs = stored_arrays(plan, machine.stored)
    else:
        outputs = stored_shapes(plan, measured.sizes, measured.guessed)
    fields["extra"] = {name: _extra(plan.program, name) for name in plan.program.extra}
    fields |= {"verification": verification, "outputs": outputs}
    fields |= {name: amount for name, amount in used._asdict().items() if name in FIGURES}
    fields |= _page_fields(used, run.state, plan.program.hardware.on_chip.pages)
    fields |= priced(plan, run.state, used, sizes)
    warnings = []
    if declared is not None and declared.status == "completed":
        stored = stored_arrays(plan, declared.machine.stored)
        fields["signal_to_noise_db"] = noise_of(outputs, stored)
    elif declared is not None:
        error = declared.machine.failures.first
        why = "" if error is None else f": {error.message}"
        ends = f"with its declared types, the program ends as {declared.status}{why}"
        warnings.append(ends)
    warnings += comparison.warnings
    warnings += [] if verification is None else verification.warnings()
    fields["warnings"] += tuple(warnings)


def _page_fields(used: MemoryUse, state: RunState, pages: Pages | None) -> JsonObject:
    peak = used.on_chip_peak_pages
    if pages is None or peak is None:
        return {}
    return {
        "on_chip_map_bytes": -(-peak * pages.number_bits // 8),
        "on_chip_wait_cycles": sum(unit.capacity_cycles for unit in state.units),
    }


def _extra(program: Program, name: str) -> object:
    what = f"extra[{name!r}]"
    value = program.ask(what, program.extra[name])
    fault = program.ask(f"the text of {what}", partial(json_fault, value))
    if fault is not None:
        place = program.extra.place(name)
        refuse(
            f"{what} is {fault}: expected numbers, text, and lists and dictionaries",
            place=place,
        )
    return value


def _not_verified(run: Execution, status: Ending) -> Verification | None:
    if not run.machine.plan.program.expects:
        return None
    reason = f"the run ended as {status}" if run.functional else "timing mode"
    return Verification(not_verified=reason)


def stored_arrays(plan: Plan, stored: Mapping[str, object]) -> Outputs:
    """Return the arrays that the stores of ``plan`` wrote, in their order."""
    in_order = [name for name in _tensors(plan) if name in stored]
    others = sorted(stored.keys() - set(in_order))
    return Outputs({name: _array(stored[name]) for name in (*in_order, *others)})


def stored_shapes(plan: Plan, sizes: Sizes, guessed: frozenset[Symbol]) -> Outputs:
    """Return the shapes of the arrays that the stores of ``plan`` would write, for ``sizes``."""
    at = Substitution(sizes)
    return Outputs(
        {
            name: OutputShape(tuple(_size(dim, at, guessed) for dim in tensor.shape), tensor.dtype)
            for name, tensor in _tensors(plan).items()
        }
    )


def _tensors(plan: Plan) -> dict[str, OffChipTensor]:
    tensors = (off_chip_tensor_of(node) for node in plan.nodes if node.operator.off_chip == "write")
    return {t.output: t for t in tensors if t is not None and t.output is not None}


def _size(dim: Dim, at: Substitution, guessed: frozenset[Symbol]) -> int | None:
    symbols = free_symbols(dim)
    ragged = frozenset(filter(is_ragged, symbols))
    if symbols & guessed or len(ragged) > 1 or not is_polynomial_in(dim, ragged):
        return None
    size = at.dim(dim)
    return int(size) if not free_symbols(size) and size == int(size) else None


def _array(stored: object) -> np.ndarray:
    try:
        array = np.asarray(stored)
    except ValueError:
        array = np.empty((), object)
        array[()] = stored
        return array
    return array if block_format(array.dtype) is None else numbers_of(array)


@taking(Settings)
def assert_completes(program: Program, settings: Settings) -> Report:
    """Run ``program``, fail unless it completes with the expected outputs, and return its report.

    Args:
        program: a wired program.
        settings: the settings of the run, as keywords.

    Raises:
        AssertionError: the run did not complete, or an output is wrong. The message has the summary
            of a deadlock, the first wrong elements, or the operator's error.
        FabricError: the program cannot be run at all.
    """
    __tracebackhide__ = True
    report = simulated(program, settings)
    try:
        report.raise_for_status()
    except FabricError as error:
        message = f"program {report.name!r} does not complete: {report.status}\n{error}"
        if report.status == "completed":
            message = str(error)
        raise AssertionError(message) from None
    return report
