"""The log of a run, as events of the vocabulary, which have cycles and never wall time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TextIO

from structlog.typing import BindableLogger

from fabric.messages.telling.causes import COUNTED
from fabric.messages.telling.errors import ConfigurationError, ProgramError
from fabric.messages.telling.events import line_logger, tell_event, tell_user
from fabric.messages.telling.files import write_parts, write_whole
from fabric.messages.telling.plain import counts_lines, json_text, plain
from fabric.messages.telling.wording import file_name
from fabric.runs import counters
from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport
    from fabric.timing.state.run_state import ChannelState, RunState

HEARTBEAT_CYCLES: Final = 1_000_000

_COLUMNS: Final = tuple(cause.column for cause in COUNTED)


def new_run_folder(parent: Path, name: str) -> Path:
    """Make and return ``parent/name-N`` with the first free number, in valid characters."""
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
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        raise ConfigurationError(
            f"--log-dir {parent}: {error.strerror}: expected a folder that can be written"
        ) from None


class RunLog:
    """Logs events, and writes ``events.jsonl``, ``report.json`` and ``counters.json``."""

    def __init__(
        self,
        tell: Callable[[str], object] = lambda _: None,
        *,
        folder: Path | None = None,
        run: str = "",
        log: BindableLogger | None = None,
    ) -> None:
        """Open the log; ``tell`` receives failures to write."""
        self._tell = tell
        self._failed = False
        self._folder = folder
        self._users = log
        self._file: TextIO | None = None
        if folder is not None:
            self._file = (folder / "events.jsonl").open("w", encoding="utf-8")
            self._lines = line_logger(self._file).bind(run=run)
        self.is_kept = self._file is not None or log is not None

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        if self._file is not None:
            self._try("events.jsonl", self._file.close)

    def event(self, name: str, cycle: int | None, **fields: object) -> None:
        """Log an event at ``cycle``, None if unknown."""
        if self.is_kept:
            self._event(name, {"cycle": cycle} | {key: plain(each) for key, each in fields.items()})

    def operator_finished(self, cycle: int, unit: UnitCounters) -> None:
        """Log the end of an operator, and its cycles."""
        if self.is_kept:
            # There are thousands, of integers only.
            fields = {"cycle": cycle, "operator": unit.name, "elements": unit.elements}
            self._event(
                "operator_finished",
                fields | {column: getattr(unit, column) for column in _COLUMNS},
            )

    def _event(self, name: str, fields: dict[str, object]) -> None:
        if self._file is not None:
            self._attempt("events.jsonl", partial(tell_event, self._lines, name, fields))
        if self._users is not None:
            try:
                tell_user(self._users, name, fields)
            except ProgramError as error:
                # A failing log must not stop the run.
                self._users = None
                self._tell(f"{error}; it is told nothing more")

    def write_report(self, report: Report) -> None:
        """Write the report and the counters behind it beside the log."""
        if self._folder is None:
            return
        expected = report.comparison.channel_elements or [None] * len(report.channels_counters)
        counters = {
            "units": [vars(unit) for unit in report.units],
            "channels": [
                _counted(channel) | {"expected_elements": elements}
                for channel, elements in zip(report.channels_counters, expected, strict=True)
            ],
            "comparison": [vars(each) for each in report.comparison.totals],
        }
        text, lines = json_text(report.as_json()), counts_lines(counters)
        path = self._folder / "report.json"
        self._attempt(path.name, partial(write_whole, path, text))
        path = self._folder / "counters.json"
        self._attempt(path.name, partial(write_parts, path, lines))

    def _attempt(self, what: str, write: Callable[[], object]) -> None:
        """Write; where that fails, tell the reason and write nothing more."""
        if not self._failed:
            self._try(what, write)

    def _try(self, what: str, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            if not self._failed:
                self._tell(f"{self._folder}: {what} could not be written: {error.strerror}")
            self._failed = True


_CHANNEL_COLUMNS: Final = (
    "peak_occupancy", "empty_cycles", "full_cycles", "credit_cycles", "left_over",
)  # fmt: skip


def _counted(channel: ChannelState) -> dict[str, object]:
    """Return the fields of a channel in ``counters.json``."""
    fields = {"name": channel.name, "depth": channel.depth, "elements": channel.taken}
    return fields | {column: getattr(channel, column) for column in _CHANNEL_COLUMNS}


def log_waits(log: RunLog, state: RunState, cycle: int, told: set[tuple[int, ...]]) -> None:
    """Log new loops of waits, and units that have waited for long; ``told`` are the known ones."""
    # Most runs end before the first heartbeat.
    from fabric.analysis.deadlock.cause import channels_of, find_stuck, wait_of

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


def log_blocked(
    log: RunLog, found: DeadlockReport, status: str, waiting: int, cycle: int | None
) -> None:
    """Log a deadlock, before a remedy is searched; ``cycle`` is None if units were active."""
    since_cycle = None if cycle is None else found.cycle
    log.event("stopped", cycle, status=status, waiting=waiting, since_cycle=since_cycle)
    for loop in found.loops:
        names = [unit.unit for unit in loop.units]
        log.event("stuck_loop", cycle, code=loop.code, loop=names, root=loop.cause, hint=loop.hint)
        for unit in loop.units:
            _log_unit(log, "blocked", cycle, unit)
    for unit in found.behind:
        _log_unit(log, "blocked_behind", cycle, unit)


_OF_BLOCKED: Final = {"operation": "waits_for", "channels": "on", "waits_for": "peers"}
"""Fields of a ``BlockedUnit`` that have another name in the log."""


def _log_unit(log: RunLog, event: str, cycle: int | None, unit: BlockedUnit) -> None:
    fields = {_OF_BLOCKED.get(name, name): value for name, value in vars(unit).items()}
    log.event(event, cycle, **fields)


def log_end(log: RunLog, report: Report, state: RunState, unwritten: Sequence[str]) -> None:
    """Log the faults and the end of a run; ``unwritten`` are failures to write."""
    cycle = report.cycles
    said = counters.warnings(state)
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
