"""The run's story, told to structlog's loggers, stamped with the cycle and never with wall time.

Its events and their fields are those of ``fabric.telling.vocabulary``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Self, TextIO

from structlog.typing import BindableLogger

from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report
from fabric.telling.causes import COUNTED
from fabric.telling.errors import ConfigurationError, ProgramError
from fabric.telling.events import line_logger, tell_event, tell_user
from fabric.telling.plain import counts_lines, json_text, plain
from fabric.telling.whole_file import write_parts, write_whole
from fabric.telling.wording import file_name

__all__ = ["RunLog", "new_run_folder"]

HEARTBEAT_CYCLES: Final = 1_000_000

_COLUMNS: Final = tuple(cause.column for cause in COUNTED)


def new_run_folder(parent: Path, name: str) -> Path:
    """Make and return ``parent/name-N`` with the first free number N.

    The folder lies in ``parent`` whatever the name: what no file can be called is left out of it.

    Raises:
        ConfigurationError: the folder cannot be made.
    """
    number = 1
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
    """Tells a run's events, and writes ``events.jsonl``, ``report.json`` and ``counters.json``.

    Attributes:
        is_kept: what it is told goes somewhere.
    """

    def __init__(
        self,
        tell: Callable[[str], object] = lambda _: None,
        *,
        folder: Path | None = None,
        run: str = "",
        log: BindableLogger | None = None,
    ) -> None:
        """Open the log.

        Args:
            tell: is told at once why something cannot be told or written any more.
            folder: the run's own; None where nothing is kept.
            run: name of the program.
            log: a user's, bound to the run.
        """
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
        """Tell of an event that happened at ``cycle``; None where nobody can say when."""
        if self.is_kept:
            self._event(name, {"cycle": cycle} | {key: plain(each) for key, each in fields.items()})

    def operator_finished(self, cycle: int, unit: UnitCounters) -> None:
        """Tell of the end of an operator, and where its cycles went."""
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
                # The run is worth more than what is told of it.
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
                vars(channel) | {"expected_elements": elements}
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
