"""The log of a run. Equal runs have equal logs, since events have cycles and no wall times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from structlog.typing import BindableLogger
from typing_extensions import override

from fabric.messages.causes import COUNTED
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.events import line_logger, log_event, log_for_user
from fabric.messages.files import write_whole
from fabric.messages.text import counts_text, file_name, json_text, plain
from fabric.runs import counters
from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport
    from fabric.timing.state.run_state import RunState

HEARTBEAT_CYCLES: Final = 1_000_000

_COLUMNS: Final = tuple(cause.column for cause in COUNTED)
_CHANNEL_COLUMNS: Final = (
    "peak_occupancy", "empty_cycles", "full_cycles", "credit_cycles", "left_over",
)  # fmt: skip


def new_run_folder(parent: Path, name: str) -> Path:
    """Make and return the folder ``parent/name-N``, with the number after the largest in use."""
    name = file_name(name)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        taken = [
            int(path.name.removeprefix(f"{name}-"))
            for path in parent.glob(f"{name}-*")
            if path.name.removeprefix(f"{name}-").isdecimal()
        ]
        number = max(taken, default=0) + 1
        while True:
            folder = parent / f"{name}-{number}"
            with suppress(FileExistsError):
                folder.mkdir()
                return folder
            number += 1
    except OSError as error:
        raise ConfigurationError(
            f"--log-dir {parent}: {error.strerror}: expected a folder that can be written"
        ) from None


class RunLog(AbstractContextManager["RunLog"]):
    """Logs events, and writes ``events.jsonl``, ``report.json`` and ``counters.json``."""

    def __init__(
        self,
        notify: Callable[[str], object] | None = None,
        *,
        folder: Path | None = None,
        run: str = "",
        log: BindableLogger | None = None,
    ) -> None:
        self.unwritten: Final[list[str]] = []
        self._notify: Final = notify
        self._failed = False
        self._folder = folder
        self._users = log
        self._file: TextIO | None = None
        if folder is not None:
            self._file = (folder / "events.jsonl").open("w", encoding="utf-8")
            self._lines = line_logger(self._file).bind(run=run)
        self.is_kept = self._file is not None or log is not None

    @override
    def __exit__(self, *_error: object) -> None:
        if self._file is not None:
            with self._writing("events.jsonl"):
                self._file.close()

    def missing(self, sentence: str) -> None:
        """Report that a part of the log or of the trace could not be written."""
        self.unwritten.append(sentence)
        if self._notify is not None:
            self._notify(sentence)

    def event(self, name: str, cycle: int | None, **fields: object) -> None:
        """Log an event at ``cycle``, None if unknown."""
        if not self.is_kept:
            return
        event = {"cycle": cycle} | {key: plain(value) for key, value in fields.items()}
        if self._file is not None and not self._failed:
            with self._writing("events.jsonl"):
                log_event(self._lines, name, event)
        if self._users is not None:
            try:
                log_for_user(self._users, name, event)
            except ProgramError as error:
                # A failing log must not stop the run.
                self._users = None
                self.missing(f"{error}; the log receives no further events")

    def operator_finished(self, cycle: int, unit: UnitCounters) -> None:
        if self.is_kept:
            cycles = {column: getattr(unit, column) for column in _COLUMNS}
            fields = {"operator": unit.name, "elements": unit.elements} | cycles
            self.event("operator_finished", cycle, **fields)

    def write_report(self, report: Report) -> None:
        if self._folder is None:
            return
        expected = report.comparison.channel_elements or [None] * len(report.channels_counters)
        counters = {
            "units": [vars(unit) for unit in report.units],
            "channels": [
                {"name": channel.name, "depth": channel.depth, "elements": channel.taken}
                | {column: getattr(channel, column) for column in _CHANNEL_COLUMNS}
                | {"expected_elements": elements}
                for channel, elements in zip(report.channels_counters, expected, strict=True)
            ],
            "comparison": [vars(compared) for compared in report.comparison.totals],
        }
        texts = {"report.json": json_text(report.as_json()), "counters.json": counts_text(counters)}
        for name, text in texts.items():
            if not self._failed:
                with self._writing(name):
                    write_whole(self._folder / name, text)

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._failed:
                self.missing(f"{self._folder}: {name} could not be written: {error.strerror}")
            self._failed = True


def log_waits(log: RunLog, state: RunState, cycle: int, logged: set[tuple[int, ...]]) -> None:
    """Log loops of waits, and waits of ``HEARTBEAT_CYCLES`` or more, unless they are ``logged``."""
    # Most runs end before the first heartbeat.
    from fabric.analysis.deadlock.cause import channels_of, find_stuck, wait_of

    stuck = find_stuck(state)
    for loop in stuck.cores:
        numbers = tuple(sorted(unit.number for unit in loop))
        if numbers not in logged:
            logged.add(numbers)
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
        stall = (-1, unit.number, wait.since_cycle)
        stalled_cycles = cycle - wait.since_cycle
        if stalled_cycles >= HEARTBEAT_CYCLES and stall not in logged:
            logged.add(stall)
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


def log_blocked(
    log: RunLog, report: DeadlockReport, status: str, waiting: int, cycle: int | None
) -> None:
    """Log a deadlock or livelock. The ``cycle`` of a livelock is None, since its units move."""
    since_cycle = None if cycle is None else report.cycle
    log.event("stopped", cycle, status=status, waiting=waiting, since_cycle=since_cycle)
    for loop in report.loops:
        names = [unit.unit for unit in loop.units]
        log.event("stuck_loop", cycle, code=loop.code, loop=names, root=loop.cause, hint=loop.hint)
        for unit in loop.units:
            _log_unit(log, "blocked", cycle, unit)
    for unit in report.behind:
        _log_unit(log, "blocked_behind", cycle, unit)


_LOG_NAMES: Final = {"operation": "waits_for", "channels": "on", "waits_for": "peers"}
"""Fields of a ``BlockedUnit`` that have another name in the log."""


def _log_unit(log: RunLog, event: str, cycle: int | None, unit: BlockedUnit) -> None:
    fields = {_LOG_NAMES.get(name, name): value for name, value in vars(unit).items()}
    log.event(event, cycle, **fields)


def log_end(log: RunLog, report: Report, state: RunState) -> None:
    cycle = report.cycles
    left_over = counters.warnings(state)
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
    for sentence in (*report.warnings, *log.unwritten):
        if sentence not in left_over:
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
