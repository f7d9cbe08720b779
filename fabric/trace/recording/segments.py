"""Parquet segments, each complete or absent: written beside its place and then moved there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.trace.reading.paths import literal, plain, system_errors

if TYPE_CHECKING:
    import duckdb
    import numpy as np

__all__ = ["SegmentWriter"]


class SegmentWriter:
    """Writes tables of columns into a folder."""

    def __init__(self, folder: Path) -> None:
        """Write into ``folder``, which exists."""
        import duckdb

        self._folder = folder
        self._database: duckdb.DuckDBPyConnection = duckdb.connect(config={"threads": 1})

    def write(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Write ``name.parquet`` of numpy columns of equal length.

        Raises:
            OSError: it cannot be written; nothing is left behind.
        """
        target = self._folder / f"{name}.parquet"
        beside = self._folder / f"{name}.parquet.tmp"
        self._database.register("segment", columns)
        try:
            with plain(self._folder) as folder, system_errors():
                self._database.execute(
                    f"COPY (SELECT * FROM segment) TO {literal(folder / beside.name)} (FORMAT "
                    "parquet, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1000, COMPRESSION zstd)"
                )
            beside.replace(target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        finally:
            self._database.unregister("segment")

    def close(self) -> None:
        """Give the database back."""
        self._database.close()
