"""Tables of a trace as files: a line of JSON that says what stands where, and then the columns.

Each file is whole or not there. A column of integers is stored as the steps from each to the next,
in as many bytes as these need, one of texts is a list of JSON; all are deflated, since what a run
does repeats. Whoever sent a file may have changed it: what a reader gets is what the line says, of
its length and with its checksum, or an error.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from fabric.telling.read_files import open_given
from fabric.telling.whole_file import write_parts
from fabric.telling.wording import counted

__all__ = ["SUFFIX", "read_table", "write_table"]

SUFFIX: Final = ".table"

_TEXT: Final = "text"
_NUMBERS: Final = {kind: np.dtype(f"<{kind}") for kind in ("i1", "i2", "i4", "i8", "b1")}
_LONGEST_LINE: Final = 1 << 16
_MOST_TEXT_BYTES: Final = 1 << 30


class _Column(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    kind: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    columns: list[_Column]
    checksum: int


def write_table(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write ``columns`` of equal length into ``path``.

    Args:
        path: of the file; what was there stays until there is all of it.
        columns: by name: integers, booleans, or texts as objects.

    Raises:
        OSError: it cannot be written; nothing is left behind.
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
    """Return the columns of a file: 64-bit integers, booleans, or texts as objects.

    Raises:
        OSError: it cannot be read, or is no file.
        ValueError: it is not as it was written.
    """
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
    """Return the kind of a column, and its content."""
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
    """Return what was deflated, of which there is to be so much."""
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
