"""Run a program: build its machine, let its operators run as trio tasks, and account for it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import trio

from fabric import accounting
from fabric.deadlock.describe import cured, describe_deadlock, explain_livelock
from fabric.deadlock.document import DeadlockReport
from fabric.deadlock.files import write_files
from fabric.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.deadlock.remedy import EFFORT_ELEMENTS
from fabric.deadlock.tokens import Tokens
from fabric.deadlock.waits import find_stuck
from fabric.elaborate import elaborate
from fabric.errors import ConfigurationError, FabricError
from fabric.interrupts import Interrupts
from fabric.machine import Machine
from fabric.measured import measured_sizes
from fabric.program import Program
from fabric.progress import Snapshot
from fabric.report import Comparison, Report, Status
from fabric.runlog import HEARTBEAT_CYCLES, RunLog, new_run_folder
from fabric.symbolic.comparison import check_assumptions, compare
from fabric.symbolic.metrics import metrics_of
from fabric.symbolic.substitution import Substitution
from fabric.verify import mismatches

if TYPE_CHECKING:
    from fabric.trace.options import TraceOptions
    from fabric.trace.recorder import Recorder

__all__ = ["Mode", "OnDeadlock", "Progress", "simulate"]

Mode = Literal["timing", "functional"]
OnDeadlock = Literal["report", "grow"]


class Progress(Protocol):
    """Shows a run while it goes on."""

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show snapshots until cancelled."""


@contextmanager
def _frozen() -> Iterator[None]:
    """Let what there is stay: the collector need not walk through it again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@_frozen()
def simulate(
    program: Program,
    *,
    mode: str | None = None,
    depths: Mapping[str, int] | None = None,
    log_dir: Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    program_file: str = "",
    progress: Progress | None = None,
    on_deadlock: OnDeadlock = "report",
    livelock_cycles: int = LIVELOCK_CYCLES,
    trace: TraceOptions | None = None,
    notify: Callable[[str], object] | None = None,
) -> Report:
    """Run ``program`` and return its report, whatever the outcome.

    Args:
        program: wired, not run before.
        mode: ``timing`` or ``functional``; what the program states where None.
        depths: of single channels, by ``consumer.input``.
        log_dir: parent of the run's own folder; None writes nothing.
        parameters: for the report.
        program_file: for the report.
        progress: shows the run while it goes on.
        on_deadlock: ``report`` it, with depths that help, or ``grow``: run again with those.
        livelock_cycles: how long nothing has to get done before the run is given up.
        trace: record an event trace in the run's folder; a run with other depths is recorded
            beside it, in ``trace-grown``.
        notify: told what takes its time after a run that stopped.

    Raises:
        FabricError: the program cannot be run at all.
    """
    mode = mode or program.mode
    if mode not in ("timing", "functional"):
        raise ConfigurationError(f"mode is {mode!r}: expected timing or functional")
    if trace is not None and log_dir is None:
        raise ConfigurationError("a trace is asked for without a log folder: expected log_dir")
    if trio.lowlevel.in_trio_run():
        raise ConfigurationError(
            "simulate() is called inside of trio: expected a thread of its own, as in "
            "await trio.to_thread.run_sync(simulate, program)"
        )
    settings = _Settings(mode == "functional", dict(depths or {}), progress, livelock_cycles, trace)
    run = _Run(program, settings)
    folder = None if log_dir is None else new_run_folder(log_dir, program.name)
    head = {
        "program": program_file,
        "parameters": dict(parameters or {}),
        "hardware": program.hardware.as_dict(),
        "mode": mode,
        "name": program.name,
        "log_dir": None if folder is None else str(folder),
    }
    with RunLog(folder) as log:
        log.event(
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
        run.start_trace(folder, "trace", head)
        status = run.execute()
        explained = None
        if status in ("deadlock", "livelock"):
            explained = run.explain(status, on_deadlock, folder, notify)
            if folder is not None:
                notes += write_files(folder, explained)
            if on_deadlock == "grow" and explained.remedy.depths:
                notes.append(_grown(explained))
                run = _Run(program, settings.deepened(explained))
                run.log = log
                run.start_trace(folder, "trace-grown", head)
                status, explained = run.execute(), None
        report = run.report(status, head, explained, notes)
        log.event(
            "run_ended",
            report.cycles or 0,
            status=report.status,
            cycles=report.cycles,
            elements=report.elements,
        )
        log.write_report(report)
    if log.failure is not None:
        report = replace(report, warnings=(*report.warnings, log.failure))
    return report


class _Settings(NamedTuple):
    """How a program is run."""

    functional: bool
    depths: dict[str, int]
    progress: Progress | None
    livelock_cycles: int
    trace: TraceOptions | None

    def recorder(self) -> Recorder | None:
        """Return a new recorder where the run is traced."""
        if self.trace is None:
            return None
        from fabric.trace.recorder import Recorder

        return Recorder(self.trace)

    def deepened(self, explained: DeadlockReport) -> _Settings:
        """Return the same with the depths that help."""
        depths = {depth.option: depth.after for depth in explained.remedy.depths}
        return self._replace(depths=self.depths | depths)


def _grown(explained: DeadlockReport) -> str:
    """Say which depths were used instead of those given."""
    options = " ".join(f"--depth {depth.option}={depth.after}" for depth in explained.remedy.depths)
    return f"stopped at cycle {explained.cycle:,} ({explained.code}); ran again with {options}"


class _Run:
    """One run of a program, from cycle 0 to its end."""

    def __init__(self, program: Program, settings: _Settings) -> None:
        self._recorder = settings.recorder()
        self.machine = Machine(
            elaborate(program),
            functional=settings.functional,
            depths=settings.depths,
            capacity_bytes=program.hardware.on_chip.capacity_bytes,
            on_quiescence=self._stop,
            on_heartbeat=self._beat,
            beat_cycles=HEARTBEAT_CYCLES,
            recorder=self._recorder,
        )
        self.log = RunLog(None)
        self.wall_seconds = 0.0
        self._settings = settings
        self._watch = LivelockWatch(self.machine, settings.livelock_cycles)
        self._loops_logged: set[str] = set()
        self._scope = trio.CancelScope()
        self._interrupts = Interrupts()
        self._logged: set[int] = set()

    def start_trace(self, folder: Path | None, name: str, head: Mapping[str, Any]) -> None:
        """Begin the trace, where there is one, in a new folder ``name``."""
        if self._recorder is not None and folder is not None:
            self._recorder.start(folder / name, self.machine, head)

    def execute(self) -> Status:
        """Run to the end and return how it ended; the trace ends with it."""
        status = self._execute()
        if self._recorder is not None:
            self._recorder.finish(status, accounting.run_cycles(self.machine))
        return status

    def _execute(self) -> Status:
        gc.freeze()  # the machine, too
        start = time.perf_counter()
        interrupts = self._interrupts
        try:
            with interrupts.handled():
                trio.run(self._main, restrict_keyboard_interrupt_to_checkpoints=True)
        except BaseException:
            # Interrupted in the middle of what it did, trio may complain about anything.
            if not interrupts.seen:
                raise
        self.wall_seconds = time.perf_counter() - start
        self._log_finished()
        if interrupts.seen:
            return "interrupted"
        if self.machine.failures:
            return "error"
        if self._watch.moving:
            return "livelock"
        return "completed" if all(unit.finished for unit in self.machine.units) else "deadlock"

    async def _main(self) -> None:
        machine = self.machine
        self._interrupts.cancels(self._scope, machine.abandon)
        progress = self._settings.progress
        async with trio.open_nursery() as host:
            if progress is not None:
                host.start_soon(progress.run, self._snapshot)
            if self._recorder is not None:
                host.start_soon(self._recorder.run)
            await machine.run(self._scope)
            host.cancel_scope.cancel()

    def _stop(self) -> None:
        self.machine.stop(self._scope)

    def _beat(self) -> None:
        machine = self.machine
        self._log_finished()
        self.log.event(
            "heartbeat",
            machine.clock.now,
            elements=machine.elements,
            waiting=machine.waiting,
        )
        for loop in find_stuck(machine).cores:
            if loop[0].name not in self._loops_logged:
                self._loops_logged.update(unit.name for unit in loop)
                names = [unit.name for unit in loop]
                self.log.event("partial_deadlock", machine.clock.now, loop=names)

    def _log_finished(self) -> None:
        machine = self.machine
        ended = [u for u in machine.units if u.finished and u.index not in self._logged]
        if not ended:
            return
        self._logged.update(unit.index for unit in ended)
        counters = accounting.unit_counters(machine, 0)
        self.log.operators_finished(
            [counters[unit.index] for unit in ended], [unit.now for unit in ended]
        )

    def _snapshot(self) -> Snapshot:
        machine = self.machine
        waiting = machine.waiting
        finished = sum(unit.finished for unit in machine.units)
        return Snapshot(
            cycle=max(unit.now for unit in machine.units),
            elements=machine.elements,
            running=len(machine.units) - waiting - finished,
            waiting=waiting,
        )

    def explain(
        self,
        status: Literal["deadlock", "livelock"],
        on_deadlock: OnDeadlock,
        folder: Path | None,
        notify: Callable[[str], object] | None,
    ) -> DeadlockReport:
        """Explain why the program does not get on, and look for a remedy."""
        machine = self.machine
        if status == "livelock":
            # Where what moves was when it was stopped differs from run to run: that is not said.
            report = explain_livelock(machine, self._watch)
            waiting = len(report.behind)
            self.log.event("stopped", report.cycle, status=status, waiting=waiting)
        else:
            cycle = machine.stopped_cycle
            self.log.event("stopped", cycle, status=status, waiting=machine.waiting)
            if notify is not None:
                notify(f"{status} at cycle {cycle:,}: looking for the cause and a cure")
            why_not = "the search for a remedy has not ended"
            report = describe_deadlock(machine, find_stuck(machine), Tokens(machine), why_not)
            if folder is not None:
                # What is known is kept, should the search be killed.
                write_files(folder, report)
            effort = EFFORT_ELEMENTS if on_deadlock == "report" else None
            report = cured(report, machine.plan, self._settings.depths, effort=effort)
        self.log.event(status, report.cycle, code=report.code, summary=report.summary)
        return report

    def report(
        self,
        status: Status,
        head: dict[str, Any],
        explained: DeadlockReport | None,
        notes: list[str],
    ) -> Report:
        """Account for the run."""
        if status == "livelock":
            # Where a loop was when it was stopped differs from run to run.
            return Report(
                **head,
                status=status,
                operators=len(self.machine.units),
                channels=len(self.machine.channels),
                wall_seconds=self.wall_seconds,
                deadlock=None if explained is None else explained.as_json(),
                warnings=tuple(notes),
            )
        machine = self.machine
        program = machine.plan.program
        cycles = accounting.run_cycles(machine)
        sizes = measured_sizes(machine)
        metrics = metrics_of(machine.plan, Substitution(sizes))
        fields = accounting.totals(machine, cycles, metrics)
        comparison = Comparison()
        warnings = [*notes, *accounting.warnings(machine)]
        if self._recorder is not None and self._recorder.failure is not None:
            warnings.append(self._recorder.failure)
        verified = None
        error = machine.first_failure()
        if status in ("interrupted", "error"):
            # Traffic was asked for that has not been moved yet: there is no share of the peak.
            fields |= {"compute_utilization": None, "off_chip_bandwidth_utilization": None}
        if status == "completed":
            try:
                check_assumptions(machine, sizes)
                comparison = compare(machine, sizes, metrics)
                wrong = mismatches(program, machine.stored) if self._settings.functional else None
                fields["extra"] = {
                    name: program.ask(f"extra[{name!r}]", compute)
                    for name, compute in program.extra.items()
                }
            except FabricError as failure:
                status, error = "error", failure
            else:
                verified = None if wrong is None else not wrong
                warnings += [*comparison.warnings, *(wrong or ())]
        return Report(
            **head,
            **fields,
            status=status,
            wall_seconds=self.wall_seconds,
            verified=verified,
            deadlock=None if explained is None else explained.as_json(),
            error=None
            if error is None
            else {"message": error.message, "file": error.file, "line": error.line},
            units=accounting.unit_counters(machine, cycles),
            channels_counters=accounting.channel_counters(machine),
            comparison=comparison,
            warnings=tuple(warnings),
        )
