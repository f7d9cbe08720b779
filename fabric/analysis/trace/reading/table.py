"""Rows of a trace as columns: for Arrow's readers, pandas, numpy and plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

# Any: rows of the database; pandas has no types.
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
from typing_extensions import override

from fabric.analysis.trace.reading.queries import QUERIES
from fabric.analysis.trace.reading.reader import RecordedRun, refused
from fabric.display.parts import Rows, Sheet, line
from fabric.display.result import Shown
from fabric.display.terminal import plain_text
from fabric.messages.errors import FabricError
from fabric.messages.text import counted
from fabric.messages.vocabulary import TABLES

Answer = TypeVar("Answer")

_READING: Final = {"SELECT", "EXPLAIN", "MULTI"}
"""Read-only statements with rows; PIVOT is a MULTI statement."""

_FIRST_ROWS: Final = 20


class Table(Shown):
    """The rows of a query, which runs at each access.

    It has Arrow's stream of columns (``__arrow_c_stream__``) for ``pyarrow.table(table)`` and
    ``polars.DataFrame(table)``; ``table.df()`` is a DataFrame of pandas. These libraries are
    optional. Cycles and counts are 64-bit integers; missing values are null.
    """

    def __init__(self, trace: RecordedRun, name: str, sql: str) -> None:
        """Check the query and read its columns.

        Raises:
            ConfigurationError: the database refuses the SQL, or it does more than read.
        """
        self.name: Final = name
        self._trace: Final = trace
        self._sql: Final = sql
        self._refusing(self._check)
        self.columns: Final[tuple[str, ...]] = tuple(self._of_rows(lambda rows: rows.columns))

    def rows(self, first: int | None = None) -> list[tuple[Any, ...]]:
        """Return all rows, or the ``first`` ones, as Python numbers and texts; null is ``None``."""
        if first is None:
            return self._of_rows(lambda rows: rows.fetchall())
        return self._of_rows(lambda rows: rows.limit(first).fetchall())

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the columns as numpy arrays; a column with nulls is a masked array."""
        return self._of_rows(lambda rows: rows.fetchnumpy())

    def df(self) -> Any:
        """Return the columns as a DataFrame of pandas.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise refused(
                "df() needs pandas, which is not installed: expected `pip install pandas`"
            )
        return self._of_rows(lambda rows: rows.df())

    def __len__(self) -> int:
        return self._of_rows(len)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the columns for Arrow's readers, by Arrow's PyCapsule interface."""
        return self._of_rows(lambda rows: rows.__arrow_c_stream__(requested_schema))

    def sheet(self, first: int | None = _FIRST_ROWS) -> Sheet:
        """Yield the ``first`` rows, or all."""
        rows = self.rows(first)
        yield Rows(self.columns, rows)
        total = len(self) if len(rows) == first else len(rows)
        if total > len(rows):
            yield line((f"{len(rows)} of {counted(total, 'row')}", "dim"))

    @override
    def __repr__(self) -> str:
        return f"Table({self.name!r}, columns={list(self.columns)})"

    @override
    def __str__(self) -> str:
        try:
            return plain_text(self.sheet())
        except FabricError:
            return repr(self)

    def _of_rows(self, ask: Callable[[duckdb.DuckDBPyRelation], Answer]) -> Answer:
        def run(connection: duckdb.DuckDBPyConnection) -> Answer:
            rows = connection.sql(self._sql)
            assert rows is not None  # statements without rows were refused
            return ask(rows)

        return self._refusing(run)

    def _check(self, _: duckdb.DuckDBPyConnection) -> None:
        kinds = [statement.type.name for statement in duckdb.extract_statements(self._sql)]
        if len(kinds) != 1:
            raise duckdb.Error(counted(len(kinds), "statement"))
        if kinds[0] not in _READING:
            kind = kinds[0].replace("_", " ")
            raise duckdb.Error(f"{kind} is not accepted, only queries such as SELECT and EXPLAIN")

    def _refusing(self, ask: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        try:
            return self._trace.cursor().call(ask)
        except duckdb.Error as error:
            raise refused(
                f"query {self.name!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
                f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
            ) from None
