"""``trace query``: the rows of a query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import duckdb

from fabric.errors import ConfigurationError
from fabric.output import PIPED_COLUMNS
from fabric.trace.queries import QUERIES
from fabric.trace.tables import print_table
from fabric.vocabulary import TABLES

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reader import Trace

__all__ = ["print_answer"]


def print_answer(trace: Trace, console: Console, query: str) -> None:
    """Print all rows of ``query``, a ready query's name or SQL.

    Raises:
        ConfigurationError: the database refuses it.
    """
    sql = QUERIES[query].sql if query in QUERIES else query
    try:
        # A question changes nothing, neither in the trace nor beside it.
        trace.database.execute("SET enable_external_access = false")
        relation: Any = trace.database.execute(sql)
        if relation is None or relation.description is None:
            raise duckdb.Error("it asks for no rows")
        rows = relation.fetchall()
    except duckdb.Error as error:
        raise ConfigurationError(
            f"query {query!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
            f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
        ) from None
    if not sys.stdout.isatty():
        console.width = PIPED_COLUMNS
    columns = [column[0] for column in relation.description]
    print_table(console, columns, rows, len(rows))
