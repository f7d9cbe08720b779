"""``trace query``: the rows of a query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import duckdb

from fabric.telling.errors import ConfigurationError
from fabric.telling.vocabulary import TABLES
from fabric.terminal.output import PIPED_COLUMNS
from fabric.terminal.tables import print_table
from fabric.trace.reading.queries import QUERIES

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reading.reader import Trace

__all__ = ["print_answer"]

_READING: Final = {"SELECT", "EXPLAIN", "MULTI"}
"""Statements that have rows and change nothing; PIVOT is made of several."""


def print_answer(trace: Trace, console: Console, query: str) -> None:
    """Print all rows of ``query``, a ready query's name or SQL.

    Raises:
        ConfigurationError: the database refuses it.
    """
    sql = QUERIES[query].sql if query in QUERIES else query
    try:
        columns, rows = _answer(trace.database, sql)
    except duckdb.Error as error:
        raise ConfigurationError(
            f"query {query!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
            f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
        ) from None
    if not sys.stdout.isatty():
        console.width = PIPED_COLUMNS
    print_table(console, columns, rows, len(rows))


def _answer(
    database: duckdb.DuckDBPyConnection, sql: str
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the columns and rows of a question, which changes nothing here or beside the trace."""
    found = [statement.type.name for statement in duckdb.extract_statements(sql)]
    if len(found) != 1:
        raise duckdb.Error(f"{len(found)} statements are found where one is expected")
    if found[0] not in _READING:
        what = found[0].replace("_", " ")
        raise duckdb.Error(f"{what} asks for no rows, and a trace is only read")
    database.execute("SET enable_external_access = false")
    # A SELECT may hold an INSERT, and EXPLAIN ANALYZE executes what it explains.
    database.execute("BEGIN TRANSACTION READ ONLY")
    try:
        relation = database.execute(sql)
        columns = [column[0] for column in relation.description or ()]
        return columns, relation.fetchall()
    finally:
        database.execute("ROLLBACK")
