"""Tables of a trace as Parquet files, each complete or absent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from fabric.analysis.trace.connection import Connection
from fabric.analysis.trace.paths import literal, plain, system_errors
from fabric.messages.files import beside, open_given
from fabric.messages.text import counted

SUFFIX: Final = ".parquet"

_OPTIONS: Final = "COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1000"
"""Columns of many values, such as cycles, are stored as differences: a quarter of the bytes."""

_MOST_ROWS: Final = 1 << 26
"""Limit on rows: run lengths let a small file claim any number."""


def write_table(database: Connection, path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write ``columns`` of integers, booleans or texts into ``path``."""
    with beside(path) as other, plain(path.parent) as folder, system_errors():
        copy = (
            f"COPY written TO {literal(folder / other.name)} "
            f"(FORMAT parquet, {_OPTIONS}, USE_TMP_FILE false)"
        )
        database.call(lambda connection: connection.register("written", columns).execute(copy))


def read_table(database: Connection, path: Path, types: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the columns of a file.

    Some damaged files invalidate ``database``.

    Raises:
        ValueError: its columns do not have the names, order and SQL ``types`` given.
    """
    open_given(path).close()
    with plain(path) as file:
        rows = f"FROM read_parquet({literal(file)})"
        found = database.rows(f"SELECT column_name, column_type FROM (DESCRIBE {rows})")
        if found != list(types.items()):
            raise ValueError("it has other columns")
        columns = database.numpy(f"{rows} LIMIT {_MOST_ROWS + 1}")
    if len(next(iter(columns.values()))) > _MOST_ROWS:
        raise ValueError(f"it has more than {counted(_MOST_ROWS, 'row')}")
    return columns
