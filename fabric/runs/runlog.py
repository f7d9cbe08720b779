"""The run's story, one JSON object a line, stamped with the cycle and never with wall time.

Its events and their fields are those of ``fabric.telling.vocabulary``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report
from fabric.telling.causes import COUNTED
from fabric.telling.errors import ConfigurationError
from fabric.telling.events import event_form, event_line, event_logger
from fabric.telling.plain import counts_lines, json_text, plain
from fabric.telling.whole_file import write_parts, write_whole
from fabric.telling.wording import file_name

if TYPE_CHECKING:
    from structlog import BoundLogger

__all__ = ["RunLog", "new_run_folder"]

HEARTBEAT_CYCLES: Final = 1_000_000

_COLUMNS: Final = tuple(cause.column for cause in COUNTED)
_counted: Final = attrgetter(*_COLUMNS)

_FINISHED: Final = event_form("operator_finished", "cycle", "operator", "elements", *_COLUMNS)


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
    """Writes ``events.jsonl``, ``report.json`` and ``counters.json`` into a run's folder."""

    def __init__(self, folder: Path | None, tell: Callable[[str], object]) -> None:
        """Open the log; None records nothing. ``tell`` is told at once why writing stops."""
        self._tell = tell
        self._failed = False
        self._folder = folder
        self._file: TextIO | None = None
        if folder is not None:
            self._file = (folder / "events.jsonl").open("w", encoding="utf-8", buffering=1)

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._try("events.jsonl", self._file.close)

    @property
    def is_kept(self) -> bool:
        """Whether what it is told goes anywhere."""
        return self._file is not None

    @property
    def place(self) -> int:
        """Where it ends so far."""
        return 0 if self._file is None else self._file.tell()

    def forget_since(self, place: int) -> None:
        """Leave out what was written since it ended at ``place``: the run begins anew."""
        file = self._file
        if file is not None:
            self._attempt("events.jsonl", lambda: file.truncate(file.seek(place)))

    def frame(self, name: str, cycle: int, **fields: object) -> None:
        """Write an event that every run has, at its beginning or at its end."""
        if self._file is not None:
            line = event_line(name, {"cycle": cycle} | _plain(fields))
            self._attempt("events.jsonl", partial(self._file.write, line))

    def event(self, name: str, cycle: int, **fields: object) -> None:
        """Write an event that most runs do not have."""
        if self._file is not None:
            self._attempt(
                "events.jsonl", partial(self._logger.info, name, cycle=cycle, **_plain(fields))
            )

    @cached_property
    def _logger(self) -> BoundLogger:
        assert self._file is not None
        return event_logger(self._file)

    def operators_finished(self, units: list[UnitCounters], final_cycles: list[int]) -> None:
        """Write the ends of operators, earliest first: of all that have ended at once."""
        if self._file is None:
            return
        ends = sorted(zip(final_cycles, units, strict=True), key=lambda pair: pair[0])
        lines = [
            _FINISHED % (cycle, json.dumps(unit.name), unit.elements, *_counted(unit))
            for cycle, unit in ends
        ]
        self._attempt("events.jsonl", partial(self._file.write, "".join(lines)))

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


def _plain(fields: dict[str, object]) -> dict[str, object]:
    return {name: plain(each) for name, each in fields.items()}
