"""Run a program: build its machine, let its operators run as trio tasks, and account for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import trio

from fabric import accounting
from fabric.elaborate import elaborate
from fabric.errors import ConfigurationError, FabricError
from fabric.machine import Machine
from fabric.program import Program
from fabric.progress import Snapshot
from fabric.report import Report, Status
from fabric.runlog import HEARTBEAT_CYCLES, RunLog, new_run_folder
from fabric.verify import mismatches
from fabric.waiting import waiting_units

if TYPE_CHECKING:
    from fabric.trace.options import TraceOptions
    from fabric.trace.recorder import Recorder

__all__ = ["Mode", "Progress", "simulate"]

Mode = Literal["timing", "functional"]


class Progress(Protocol):
    """Shows a run while it goes on."""

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show snapshots until cancelled."""


def simulate(
    program: Program,
    *,
    mode: str | None = None,
    depths: Mapping[str, int] | None = None,
    log_dir: Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    program_file: str = "",
    progress: Progress | None = None,
    trace: TraceOptions | None = None,
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
        trace: record an event trace in the run's folder.

    Raises:
        FabricError: the program cannot be run at all.
    """
    mode = mode or program.mode
    if mode not in ("timing", "functional"):
        raise ConfigurationError(f"mode is {mode!r}: expected timing or functional")
    if trace is not None and log_dir is None:
        raise ConfigurationError("a trace is asked for without a log folder: expected log_dir")
    recorder = _recorder(trace)
    run = _Run(program, mode == "functional", depths or {}, progress, recorder)
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
        run.log = log
        if recorder is not None and folder is not None:
            recorder.start(folder / "trace", run.machine, head)
        status = run.execute()
        if recorder is not None:
            recorder.finish(status, accounting.run_cycles(run.machine))
        report = run.report(status, head)
        log.event(
            "run_ended",
            report.cycles or 0,
            status=report.status,
            cycles=report.cycles,
            elements=report.elements,
        )
        log.write_report(report)
    return report


def _recorder(options: TraceOptions | None) -> Recorder | None:
    if options is None:
        return None
    from fabric.trace.recorder import Recorder

    return Recorder(options)


class _Run:
    """One run of a program, from cycle 0 to its end."""

    def __init__(
        self,
        program: Program,
        functional: bool,
        depths: Mapping[str, int],
        progress: Progress | None,
        recorder: Recorder | None,
    ) -> None:
        self.machine = Machine(
            elaborate(program),
            functional=functional,
            depths=depths,
            on_quiescence=self._stop,
            on_heartbeat=self._beat,
            beat_cycles=HEARTBEAT_CYCLES,
            recorder=recorder,
        )
        self._recorder = recorder
        self.log = RunLog(None)
        self.wall_seconds = 0.0
        self._functional = functional
        self._progress = progress
        self._scope = trio.CancelScope()
        self._logged: set[int] = set()

    def execute(self) -> Status:
        """Run to the end and return how it ended."""
        start = time.perf_counter()
        interrupted = False
        try:
            trio.run(self._main, restrict_keyboard_interrupt_to_checkpoints=True)
        except* KeyboardInterrupt:
            interrupted = True
        self.wall_seconds = time.perf_counter() - start
        self._log_finished()
        if interrupted:
            return "interrupted"
        if self.machine.failures:
            return "error"
        return "completed" if all(unit.finished for unit in self.machine.units) else "deadlock"

    async def _main(self) -> None:
        machine = self.machine
        async with trio.open_nursery() as host:
            if self._progress is not None:
                host.start_soon(self._progress.run, self._snapshot)
            if self._recorder is not None:
                host.start_soon(self._recorder.run)
            machine.clock.running = len(machine.units)
            with self._scope:
                async with trio.open_nursery() as nursery:
                    for node in machine.plan.nodes:
                        nursery.start_soon(machine.operate, node, name=node.name)
            host.cancel_scope.cancel()

    def _stop(self) -> None:
        self._scope.cancel()

    def _beat(self) -> None:
        machine = self.machine
        self._log_finished()
        self.log.event(
            "heartbeat",
            machine.clock.now,
            elements=sum(channel.elements for channel in machine.channels),
            waiting=sum(unit.wait is not None for unit in machine.units),
        )

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
        waiting = sum(unit.wait is not None for unit in machine.units)
        finished = sum(unit.finished for unit in machine.units)
        return Snapshot(
            cycle=max(unit.now for unit in machine.units),
            elements=sum(channel.elements for channel in machine.channels),
            running=len(machine.units) - waiting - finished,
            waiting=waiting,
        )

    def report(self, status: Status, head: dict[str, Any]) -> Report:
        """Account for the run."""
        machine = self.machine
        program = machine.plan.program
        cycles = accounting.run_cycles(machine)
        fields = accounting.totals(machine, cycles)
        warnings = list(accounting.warnings(machine))
        if self._recorder is not None and self._recorder.failure is not None:
            warnings.append(self._recorder.failure)
        verified = None
        error = machine.first_failure()
        deadlock = None
        if status == "completed":
            try:
                wrong = mismatches(program, machine.stored) if self._functional else None
                fields["extra"] = {
                    name: program.ask(f"extra[{name!r}]", compute)
                    for name, compute in program.extra.items()
                }
            except FabricError as failure:
                status, error = "error", failure
            else:
                verified = None if wrong is None else not wrong
                warnings += wrong or ()
        elif status == "deadlock":
            deadlock = waiting_units(machine)
            self.log.event("deadlock", deadlock["cycle"], waits=deadlock["waits"])
        return Report(
            **head,
            **fields,
            status=status,
            wall_seconds=self.wall_seconds,
            verified=verified,
            deadlock=deadlock,
            error=None
            if error is None
            else {"message": error.message, "file": error.file, "line": error.line},
            units=accounting.unit_counters(machine, cycles),
            channels_counters=accounting.channel_counters(machine),
            warnings=tuple(warnings),
        )
