"""``trace query``: the rows of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from fabric.errors import ConfigurationError
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
        relation = trace.database.execute(sql)
        rows = relation.fetchall()
    except duckdb.Error as error:
        raise ConfigurationError(
            f"query {query!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
            f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
        ) from None
    columns = [column[0] for column in relation.description or ()]
    print_table(console, columns, rows, len(rows))
