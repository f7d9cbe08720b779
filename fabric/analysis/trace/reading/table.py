"""Rows of a trace as columns: for Arrow's readers, pandas, numpy and plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

# Any: rows are what the database gives; pandas has no types.
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import duckdb
from typing_extensions import override

from fabric.analysis.trace.connection import Connection
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.analysis.trace.reading.reader import refused
from fabric.messages.display import Shown, shown
from fabric.messages.errors import FabricError
from fabric.messages.text import counted
from fabric.messages.vocabulary import TABLES

if TYPE_CHECKING:
    import numpy as np

Answer = TypeVar("Answer")

_READING: Final = {"SELECT", "EXPLAIN", "MULTI"}
"""Statements that have rows and change nothing; PIVOT is made of several."""


class Database(Protocol):
    """Where the rows are."""

    def cursor(self) -> Connection:
        """Return a connection of its own, which only reads."""
        ...


class Table(Shown):
    """The rows of a query, which is executed whenever they are asked for.

    It has Arrow's stream of columns (``__arrow_c_stream__``): ``pyarrow.table(table)`` and
    ``polars.DataFrame(table)`` take it as it is, ``table.df()`` is a DataFrame of pandas, where
    these are installed. Cycles and counts are 64-bit integers; what is not there is null.
    """

    def __init__(self, database: Database, name: str, sql: str) -> None:
        """Stand for the rows of ``sql``.

        Raises:
            ConfigurationError: the database refuses it: it is no SQL, or does not only read.
        """
        self.name: Final = name
        self._database: Final = database
        self._sql: Final = sql
        self._asked(self._check)
        self.columns: Final[tuple[str, ...]] = tuple(self._of_rows(lambda rows: rows.columns))

    def rows(self, first: int | None = None) -> list[tuple[Any, ...]]:
        """Return all rows, or the ``first``, in Python's own numbers and texts; null is None."""
        if first is None:
            return self._of_rows(lambda rows: rows.fetchall())
        return self._of_rows(lambda rows: rows.limit(first).fetchall())

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the columns as numpy arrays; one with nulls is masked."""
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
        """How many rows there are."""
        return self._of_rows(len)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the columns for Arrow's readers; see Arrow's PyCapsule interface."""
        return self._of_rows(lambda rows: rows.__arrow_c_stream__(requested_schema))

    @override
    def __repr__(self) -> str:
        return f"Table({self.name!r}, columns={list(self.columns)})"

    @override
    def __str__(self) -> str:
        """Its first rows, as ``trace query`` prints them; its name where the trace is closed."""
        try:
            return shown(self, "text") or repr(self)
        except FabricError:
            return repr(self)

    def _of_rows(self, ask: Callable[[duckdb.DuckDBPyRelation], Answer]) -> Answer:
        def asked(connection: duckdb.DuckDBPyConnection) -> Answer:
            rows = connection.sql(self._sql)
            assert rows is not None  # statements without rows were refused
            return ask(rows)

        return self._asked(asked)

    def _check(self, _: duckdb.DuckDBPyConnection) -> None:
        """Refuse what does not only read."""
        found = [statement.type.name for statement in duckdb.extract_statements(self._sql)]
        if len(found) != 1:
            raise duckdb.Error(
                f"{counted(len(found), 'statement')} are found where one is expected"
            )
        if found[0] not in _READING:
            what = found[0].replace("_", " ")
            raise duckdb.Error(f"{what} asks for no rows, and a trace is only read")

    def _asked(self, ask: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Ask the database, and say what it refuses."""
        try:
            return self._database.cursor().call(ask)
        except duckdb.Error as error:
            raise refused(
                f"query {self.name!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
                f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
            ) from None
