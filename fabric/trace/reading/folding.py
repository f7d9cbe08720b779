"""The families of units and channels in a trace: a column of their tables, unique by its texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.telling.families import families
from fabric.telling.place import Place

if TYPE_CHECKING:
    import duckdb

__all__ = ["add_families"]

_SET: Final = """
ALTER TABLE {table} ADD COLUMN family VARCHAR;
UPDATE {table} SET family = given.family FROM given WHERE {table}.{number} = given.number;
"""


def add_families(database: duckdb.DuckDBPyConnection) -> None:
    """Add the column to ``units`` and ``channels``: the title, with its place if others have it."""
    rows = database.sql("SELECT name, operator, file, line FROM units ORDER BY unit").fetchall()
    places = [Place(file, line) for _, _, file, line in rows]
    operators = [operator for _, operator, _, _ in rows]
    units = _titles(
        [name for name, *_ in rows],
        lambda unit: (operators[unit], places[unit]),
        lambda unit: places[unit].brief,
    )
    _set(database, "units", "unit", units)
    rows = database.sql("SELECT name, producer, consumer FROM channels ORDER BY channel").fetchall()
    ends = [(units[producer], units[consumer]) for _, producer, consumer in rows]
    wired = [
        f"{places[producer].brief} to {places[consumer].brief}" for _, producer, consumer in rows
    ]
    _set(
        database,
        "channels",
        "channel",
        _titles([name for name, _, _ in rows], ends.__getitem__, wired.__getitem__),
    )


def _titles(
    names: Sequence[str], shared: Callable[[int], Hashable], place: Callable[[int], str]
) -> list[str]:
    """Return the title of its family for each of ``names``."""
    found = families(range(len(names)), names.__getitem__, shared)
    count = Counter(family.title for family in found)
    titles = [""] * len(names)
    for number, (title, members) in enumerate(found):
        text = title
        if count[title] > 1:
            text = f"{title} ({place(members[0])})"
            count[text] += 1
        if count[text] > 1:
            text += f" {number}"
        for member in members:
            titles[member] = text
    return titles


def _set(
    database: duckdb.DuckDBPyConnection, table: str, number: str, titles: Sequence[str]
) -> None:
    rows = {"number": np.arange(len(titles)), "family": np.array(titles, np.object_)}
    database.register("given", rows)
    database.execute(_SET.format(table=table, number=number))
    database.unregister("given")
