"""Tables of a trace as files: a line of JSON that describes the columns, then the columns.

A file is complete or absent. Integers are stored as differences in as few bytes as possible, texts
as a list of JSON; all are deflated. A reader checks type, length and checksum, since the sender may
be untrusted.

A thread writes new rows in segments about twice a second, because a user's function may block the
main thread for long.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from fabric.messages.telling.files import open_given, write_parts
from fabric.messages.telling.wording import counted
from fabric.timing.log.log_rows import OPERATION_COLUMNS, Packed, Rows

SUFFIX: Final = ".table"

_TEXT: Final = "text"

_NUMBERS: Final = {kind: np.dtype(f"<{kind}") for kind in ("i1", "i2", "i4", "i8", "b1")}

_LONGEST_LINE: Final = 1 << 16

_MOST_TEXT_BYTES: Final = 1 << 30

_SECONDS: Final = 0.5


class _Column(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    kind: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    columns: list[_Column]
    checksum: int


def write_table(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write ``columns`` of equal length into ``path``, atomically.

    ``columns``: by name: integers, booleans, or texts as objects.
    """
    stored = [(name, *_stored(column)) for name, column in columns.items()]
    checksum = 0
    for _, _, content in stored:
        checksum = zlib.crc32(content, checksum)
    head = _Head(
        len(next(iter(columns.values()))),
        [_Column(name, kind, len(content)) for name, kind, content in stored],
        checksum,
    )
    write_parts(path, chain([msgspec.json.encode(head), b"\n"], (each for *_, each in stored)))


def read_table(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a file: 64-bit integers, booleans, or texts as objects."""
    with open_given(path) as file:
        head = _head(file)
        expected = file.tell() + sum(column.size_bytes for column in head.columns)
        size = os.fstat(file.fileno()).st_size
        if size != expected:
            raise ValueError(f"it has {counted(size, 'byte')}: expected {expected:,}")
        parts = [file.read(column.size_bytes) for column in head.columns]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    if checksum != head.checksum:
        raise ValueError("its content is not what was written")
    return {
        column.name: _column(column, part, head.rows)
        for column, part in zip(head.columns, parts, strict=True)
    }


def _stored(column: np.ndarray) -> tuple[str, bytes]:
    if column.dtype == np.object_:
        kind, content = _TEXT, json.dumps(column.tolist()).encode()
    elif column.dtype == np.bool_:
        kind, content = "b1", column.tobytes()
    else:
        # Where a step is beyond 64 bits, it and the sum of steps are so by as much.
        steps = np.diff(column.astype(np.int64), prepend=np.int64(0))
        ends = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
        kind = max(np.min_scalar_type(min(0, end, -1 - end)).str[1:] for end in ends)
        content = steps.astype(_NUMBERS[kind]).tobytes()
    return kind, zlib.compress(content, 1)


def _inflated(name: str, content: bytes, size_bytes: int) -> bytes:
    """Return the inflated content, checked for its size."""
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(content, size_bytes + 1)
    except zlib.error:
        raise ValueError(f"{name} cannot be inflated") from None
    if len(found) > size_bytes or not inflating.eof or inflating.unused_data:
        raise ValueError(f"{name} is of another length")
    return found


def _head(file: BufferedReader) -> _Head:
    line = file.readline(_LONGEST_LINE)
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it does not begin as a table does") from None
    if len({column.name for column in head.columns}) < len(head.columns):
        raise ValueError("it has a column twice")
    return head


def _column(column: _Column, content: bytes, rows: int) -> np.ndarray:
    name = column.name
    found: np.ndarray
    if column.kind == _TEXT:
        text = _inflated(name, content, _MOST_TEXT_BYTES)
        try:
            found = np.array([*msgspec.json.decode(text, type=list[str]), ""], np.object_)[:-1]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise ValueError(f"{name} is no list of texts") from None
    elif column.kind in _NUMBERS:
        kind = _NUMBERS[column.kind]
        plain = _inflated(name, content, rows * kind.itemsize)
        if len(plain) != rows * kind.itemsize:
            raise ValueError(f"{name} is of another length")
        if column.kind != "b1":
            found = np.cumsum(np.frombuffer(plain, kind), dtype=np.int64)
        elif np.frombuffer(plain, np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name} is neither true nor false")
        else:
            found = np.frombuffer(plain, kind)
    else:
        raise ValueError(f"{name} is of no kind that a table has")
    if len(found) != rows:
        raise ValueError(f"{name} is of another length")
    return found


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

    def write(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Write one table."""
        write_table(self._folder / f"{name}{SUFFIX}", columns)

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
        """Give the buffers back."""
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
