"""Writes the rows of a run's log in segments about twice a second.

A thread writes them, because a user's function may block the main thread for long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from typing_extensions import override

from fabric.analysis.trace.database import SUFFIX, Connection, write_table
from fabric.analysis.trace.selection import TraceOptions
from fabric.timing.engine.log import Entries, Keeper, Log
from fabric.timing.engine.unit import Unit
from fabric.timing.log.transfers import COLUMNS
from fabric.timing.log.window import Window

_SECONDS: Final = 0.5


class Spool(Keeper):
    def __init__(self, options: TraceOptions) -> None:
        self._options: Final = options
        self.places = 0  # number of rows written, without rows from before the window
        self._failed = False
        self._segments = 0
        self._seen = 0
        self._lock: Final = threading.Lock()
        self._log: Log
        self._window: Window | None = None

    @override
    def follow(self, log: Log, units: Sequence[Unit]) -> None:
        names = [unit.name for unit in units]
        self._options.check(names)
        self._keeps = np.array([*map(self._options.keeps, names)], np.bool_)
        self._log = log

    def open(
        self, folder: Path, notify: Callable[[str], object], ends: Sequence[tuple[int, int]]
    ) -> None:
        """Write into ``folder`` from now on; ``notify`` receives texts of errors.

        ``ends``: by channel, the numbers of its producer and its consumer.
        """
        self._folder = folder
        self._notify = notify
        self._database = Connection()
        self._database.execute("SET threads = 1")
        kept = [self._keeps[[*units]].any() for units in ends]
        self._keeps_channel = np.array([*kept, False], np.bool_)
        if self._options.window is not None:
            self._window = Window(*self._options.window, len(ends))

    def write(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        write_table(self._database, self._folder / f"{name}{SUFFIX}", columns)

    def attempt(self, what: str, write: Callable[[], None]) -> None:
        """Write new rows, then call ``write``; after an error, write nothing more."""
        with self._lock:
            self._write_new()
            self._attempt(what, write)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write new rows regularly, whatever the main thread does."""
        ended = threading.Event()

        def keep_writing() -> None:
            while not ended.wait(_SECONDS):
                with self._lock:
                    self._write_new()

        thread = threading.Thread(target=keep_writing, name="trace", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def finish(self) -> None:
        with self._lock:
            self._write_new()
            if self._window is not None:
                self._window.end()
                self._attempt("its window", lambda: self._write_segment(self._log.table.rows[:0]))

    def close(self) -> None:
        self._database.close()

    @override
    def keep(self, rows: Entries) -> None:
        with self._lock:
            self._write_rows(rows)
            self._seen = 0

    def _write_new(self) -> None:
        rows = self._log.table.rows[: self._log.count]
        # Otherwise the main thread has emptied the buffer and waits for the lock in ``keep``.
        if len(rows) >= self._seen:
            self._write_rows(rows)

    def _write_rows(self, rows: Entries) -> None:
        """Write a segment of the rows after those already written."""
        new, self._seen = rows[self._seen :], len(rows)
        if len(new):
            self._attempt(f"segment {self._segments + 1}", lambda: self._write_segment(new))

    def _write_segment(self, rows: Entries) -> None:
        if not self._keeps.all():
            rows = rows[self._keeps[rows["unit"]] | self._keeps_channel[rows["channel"]]]
        if self._window is not None:
            rows = self._window.select(rows)
        if len(rows):
            columns = {name: np.ascontiguousarray(rows[name]) for name in COLUMNS}
            self.write(f"operations-{self._segments + 1:06}", columns)
            self._segments += 1
            first, _ = self._options.window or (0, 0)
            self.places += int(np.count_nonzero(rows["cycle"] >= first))
        if self._window is not None:
            # Written after the rows, so that a killed run has all rows of the channels in it.
            self.write("window", self._window.known())

    def _attempt(self, what: str, write: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            write()
        except OSError as error:
            reason = error.strerror or str(error)
            self._failed = True
            self._notify(f"trace {self._folder}: {what} could not be written: {reason}")
