"""A connection to DuckDB that loses no signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

# Any: rows are what the database gives.
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from fabric.timing.machine.signal_shield import shielded

Answer = TypeVar("Answer")


class Connection:
    """A connection to a database in memory, or one more to the same database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self._connection: Final = connection or shielded(
            lambda: duckdb.connect(config={"python_enable_replacements": False})
        )

    def call(self, call: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Return ``call(connection)``; a signal ends it and is raised."""
        return shielded(lambda: call(self._connection), self._connection.interrupt)

    def execute(self, sql: str, parameters: object = None) -> None:
        """Execute statements that have no rows."""
        self.call(lambda connection: connection.execute(sql, parameters))

    def rows(self, sql: str, parameters: object = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.call(lambda connection: connection.execute(sql, parameters).fetchall())

    def numpy(self, sql: str, parameters: object = None) -> dict[str, np.ndarray]:
        """Return the columns of a query."""
        return self.call(lambda connection: connection.execute(sql, parameters).fetchnumpy())

    def register(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Make a table of ``columns``."""
        self.call(lambda connection: connection.register(name, columns))

    def close(self) -> None:
        """Free the memory."""
        self.call(lambda connection: connection.close())

    def cursor(self) -> Connection:
        """Return another connection to the same database."""
        return Connection(self.call(lambda connection: connection.cursor()))
