"""Writes the rows of a run in segments about twice a second.

A thread does this, because a user's function may block the main thread for long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from fabric.analysis.trace.connection import Connection
from fabric.analysis.trace.table_file import SUFFIX, write_table
from fabric.timing.log.log_rows import OPERATION_COLUMNS, Packed, Rows

_SECONDS: Final = 0.5


class Spool:
    """Writes the rows of one run."""

    def __init__(self, window: tuple[int, int] | None) -> None:
        """Keep rows that touch the cycles of ``window``; all of them where it is None."""
        self.rows: Final = Rows(self._make_room)
        self._failed = False
        self._window: Final = window
        self._segments = 0
        self._operations_written = 0
        self._lock: Final = threading.Lock()

    def open(self, folder: Path, tell: Callable[[str], object]) -> None:
        """Write into ``folder`` from here on; ``tell`` of what cannot be written."""
        self._folder = folder
        self._tell = tell
        self._database = Connection()
        self._database.execute("SET threads = 1")

    def write(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Write one table."""
        write_table(self._database, self._folder / f"{name}{SUFFIX}", columns)

    def attempt(self, what: str, write: Callable[[], None]) -> None:
        """Write what is new, and then ``what``; where that fails, write nothing more."""
        with self._lock:
            self._write_rows()
            self._attempt(what, write)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write what is new now and then, whatever the main thread does."""
        done = threading.Event()

        def keep_writing() -> None:
            while not done.wait(_SECONDS):
                with self._lock:
                    self._write_rows()

        thread = threading.Thread(target=keep_writing, name="trace", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def close(self) -> None:
        """Free the buffers and the database."""
        self._database.close()
        self.rows.short.release()
        self.rows.long.release()

    def _make_room(self) -> None:
        """Write the new rows and empty the buffer; only the recording thread may do this."""
        rows = self.rows
        with self._lock:
            self._write_rows()
            for packed in (rows.short, rows.long):
                packed.offset = packed.written = 0
            rows.operations.clear()
            self._operations_written = 0

    def _write_rows(self) -> None:
        """Write a segment, short rows last: they mark it complete."""
        rows = self.rows
        while True:
            # Until nothing was recorded in between: one moment's long and short rows.
            ends = rows.long.offset, rows.short.offset, len(rows.operations)
            if ends == (rows.long.offset, rows.short.offset, len(rows.operations)):
                break
        if ends == (rows.long.written, rows.short.written, self._operations_written):
            return
        self._attempt(f"segment {self._segments + 1}", lambda: self._write_segment(*ends))
        rows.long.written, rows.short.written, self._operations_written = ends

    def _write_segment(self, long: int, short: int, operations: int) -> None:
        rows = self.rows
        number = self._segments + 1
        new = np.array(rows.operations[self._operations_written : operations], np.int64)
        new = new.reshape(-1, len(OPERATION_COLUMNS))
        for name, columns, table, waits, ended in (
            ("operations", OPERATION_COLUMNS, new, {"cycle": "wait_cycles"}, "cycle"),
            ("long", *_taken(rows.long, long, "reserved_cycle", "seen_cycle")),
            ("short", *_taken(rows.short, short, "sent_cycle", "taken_cycle")),
        ):
            kept = self._in_window(columns, table, waits, ended)
            if len(kept) or name == "short":
                arrays = dict(zip(columns, np.ascontiguousarray(kept.T), strict=True))
                self.write(f"{name}-{number:06}", arrays)
        self._segments = number

    def _in_window(
        self, columns: tuple[str, ...], table: np.ndarray, waits: Mapping[str, str], ended: str
    ) -> np.ndarray:
        """Return the rows that overlap the window, with their waits."""
        if self._window is None:
            return table
        first, last = self._window
        column = {name: table[:, number] for number, name in enumerate(columns)}
        starts = [column[end] - column[waited] for end, waited in waits.items()]
        kept: np.ndarray = table[(column[ended] >= first) & (np.minimum.reduce(starts) <= last)]
        return kept

    def _attempt(self, what: str, write: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            write()
        except OSError as error:
            reason = error.strerror or str(error)
            self._failed = True
            self._tell(f"trace {self._folder}: {what} could not be written: {reason}")


def _taken(
    packed: Packed, end: int, begun: str, seen: str
) -> tuple[tuple[str, ...], np.ndarray, dict[str, str], str]:
    """Return the new rows of a buffer up to ``end``, and which of their columns are waits."""
    table = np.frombuffer(packed.buffer[packed.written : end], np.int64)
    waits = {begun: "send_wait_cycles", seen: "receive_wait_cycles"}
    return packed.columns, table.reshape(-1, len(packed.columns)), waits, "taken_cycle"
