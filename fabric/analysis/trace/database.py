"""DuckDB: paths in SQL, connections that lose no signal, and tables as Parquet files.

DuckDB interprets some characters of a path. ``*``, ``?`` and ``[`` make patterns, ``NAME=VALUE``
makes a column, a prefix before ``:`` is a protocol, and names must be UTF-8. Not all of this can be
quoted, so such a path gets another name.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Any: values of rows.
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from fabric.messages.files import atomic, open_given
from fabric.messages.text import counted
from fabric.timing.machine.signal_shield import shielded

Answer = TypeVar("Answer")

SUFFIX: Final = ".parquet"

_PLAIN: Final = re.compile(r"/[A-Za-z0-9_./ -]*")

_OPTIONS: Final = "COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1000"
"""Columns of many values, such as cycles, are stored as differences: a quarter of the bytes."""

_MOST_ROWS: Final = 1 << 26
"""Limit on rows: with run-length encoding, a small file can claim any number."""


@contextmanager
def plain(path: Path) -> Iterator[Path]:
    """Yield a path without special characters that leads to ``path`` inside the block."""
    absolute = path.absolute()
    if _PLAIN.fullmatch(str(absolute)):
        yield absolute
        return
    parent = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(dir=parent if _PLAIN.fullmatch(parent) else "/tmp") as folder:
        other = Path(folder) / "trace"
        other.symlink_to(absolute)
        yield other


@contextmanager
def system_errors() -> Iterator[None]:
    """Raise the system's OSError instead of the database's error about a write."""
    try:
        yield
    except duckdb.Error as error:
        stated = re.search(r'"errno":"(\d+)"', str(error))
        if stated is None:
            raise OSError(errno.EIO, str(error).splitlines()[0]) from None
        number = int(stated[1])
        raise OSError(number, os.strerror(number)) from None


def literal(text: object) -> str:
    """Return ``text`` as a string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


class Connection:
    """A connection to a new database in memory; ``cursor`` returns another one to it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self._connection: Final = connection or shielded(
            lambda: duckdb.connect(config={"python_enable_replacements": False})
        )

    def call(self, call: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Return ``call(connection)``; a signal interrupts the query and is raised."""
        return shielded(lambda: call(self._connection), self._connection.interrupt)

    def execute(self, sql: str, parameters: object = None) -> None:
        self.call(lambda connection: connection.execute(sql, parameters))

    def rows(self, sql: str, parameters: object = None) -> list[tuple[Any, ...]]:
        return self.call(lambda connection: connection.execute(sql, parameters).fetchall())

    def numpy(self, sql: str, parameters: object = None) -> dict[str, np.ndarray]:
        """Return the columns of a query."""
        return self.call(lambda connection: connection.execute(sql, parameters).fetchnumpy())

    def register(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        self.call(lambda connection: connection.register(name, columns))

    def close(self) -> None:
        self.call(lambda connection: connection.close())

    def cursor(self) -> Connection:
        return Connection(self.call(lambda connection: connection.cursor()))


def write_table(database: Connection, path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write ``columns`` of integers, booleans or texts into ``path``."""
    with atomic(path) as other, plain(path.parent) as folder, system_errors():
        copy = (
            f"COPY written TO {literal(folder / other.name)} "
            f"(FORMAT parquet, {_OPTIONS}, USE_TMP_FILE false)"
        )
        database.call(lambda connection: connection.register("written", columns).execute(copy))


def read_table(database: Connection, path: Path, types: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the columns of a file, which must have the names, order and SQL types of ``types``.

    Some damaged files invalidate ``database``.

    Raises:
        ValueError: the file has other columns or too many rows.
    """
    open_given(path).close()
    with plain(path) as file:
        rows = f"FROM read_parquet({literal(file)})"
        described = database.rows(f"SELECT column_name, column_type FROM (DESCRIBE {rows})")
        if described != list(types.items()):
            raise ValueError("it has other columns")
        columns = database.numpy(f"{rows} LIMIT {_MOST_ROWS + 1}")
    if len(next(iter(columns.values()))) > _MOST_ROWS:
        raise ValueError(f"it has more than {counted(_MOST_ROWS, 'row')}")
    return columns
