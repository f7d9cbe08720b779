"""Queries for the usual questions, the schema for others, and rows of a trace as columns."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

# Any: rows are what the database gives; pandas has no types.
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import duckdb
from typing_extensions import override

from fabric.analysis.trace.reading.reader import refused
from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.sheet import shown
from fabric.messages.telling.vocabulary import FIELDS, TABLES
from fabric.messages.telling.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

__all__ = ["QUERIES", "Table", "describe"]

Answer = TypeVar("Answer")

_READING: Final = {"SELECT", "EXPLAIN", "MULTI"}
"""Statements that have rows and change nothing; PIVOT is made of several."""


class Query(NamedTuple):
    """A ready query.

    Attributes:
        question: it answers.
        sql: over the tables of ``fabric.messages.telling.vocabulary``.
        folded: the same by family, with the least, the median and the most; empty where the rows
            are about no units or channels.
    """

    question: str
    sql: str
    folded: str = ""


QUERIES: Final = {
    "slowest-channels": Query(
        "At which channels do units wait longest, and on which side?",
        """\
SELECT name AS channel, depth,
    coalesce(sum(cycles) FILTER (cause = 'empty'), 0)::BIGINT AS empty_cycles,
    coalesce(sum(until_cycle - start_cycle) FILTER (cause = 'full'), 0)::BIGINT AS full_cycles,
    coalesce(sum(end_cycle - until_cycle) FILTER (cause = 'full'), 0)::BIGINT AS credit_cycles
FROM waits JOIN channels USING (channel)
GROUP BY ALL ORDER BY sum(cycles) DESC, channel LIMIT 20""",
        """\
SELECT family AS channel, count(*) AS channels,
    coalesce(sum(empty), 0)::BIGINT AS empty_cycles, coalesce(sum(full_), 0)::BIGINT AS full_cycles,
    coalesce(sum(credit), 0)::BIGINT AS credit_cycles, min(coalesce(cycles, 0)) AS least_cycles,
    quantile_disc(coalesce(cycles, 0), 0.5) AS median_cycles,
    max(coalesce(cycles, 0)) AS most_cycles
FROM channels LEFT JOIN (
    SELECT channel, sum(cycles)::BIGINT AS cycles, sum(cycles) FILTER (cause = 'empty') AS empty,
        sum(until_cycle - start_cycle) FILTER (cause = 'full') AS full_,
        sum(end_cycle - until_cycle) FILTER (cause = 'full') AS credit
    FROM waits GROUP BY channel
) USING (channel)
GROUP BY family HAVING most_cycles > 0 ORDER BY sum(cycles) DESC, family LIMIT 20""",
    ),
    "utilisation": Query(
        "Which units work most?",
        """\
SELECT name AS unit, kind, busy_cycles, flops,
    format('{:.1f}', 100 * busy_cycles / greatest(cycles, 1))::DOUBLE AS busy_percent, file, line
FROM states JOIN units USING (unit), run ORDER BY busy_cycles DESC, unit LIMIT 20""",
        """\
SELECT family AS unit, count(*) AS units, kind, sum(flops)::BIGINT AS flops,
    min(share) AS least_percent, quantile_disc(share, 0.5) AS median_percent,
    max(share) AS most_percent, file, line
FROM (
    SELECT *, format('{:.1f}', 100 * busy_cycles / greatest(cycles, 1))::DOUBLE AS share
    FROM states JOIN units USING (unit), run
)
GROUP BY family, kind, file, line ORDER BY max(busy_cycles) DESC, family LIMIT 20""",
    ),
    "longest-waits": Query(
        "Which single waits are the longest?",
        """\
SELECT u.name AS unit, cause, c.name AS channel, start_cycle, end_cycle, cycles, open
FROM waits JOIN units u USING (unit) LEFT JOIN channels c USING (channel)
ORDER BY cycles DESC, start_cycle, u.unit LIMIT 20""",
        """\
SELECT u.family AS unit, cause, c.family AS channel, count(*) AS waits,
    min(cycles) AS least_cycles, quantile_disc(cycles, 0.5) AS median_cycles,
    max(cycles) AS most_cycles
FROM waits JOIN units u USING (unit) LEFT JOIN channels c USING (channel)
GROUP BY u.family, cause, c.family ORDER BY most_cycles DESC, u.family, cause LIMIT 20""",
    ),
    "occupancy": Query(
        "How full are the channels, and would they be fuller if they were deeper?",
        """\
WITH levels AS (
    SELECT channel, sum(change) OVER (PARTITION BY channel ORDER BY cycle, change) AS held
    FROM (
        SELECT channel, sent_cycle AS cycle, 1 AS change FROM transfers
        UNION ALL SELECT channel, taken_cycle, -1 FROM transfers WHERE taken_cycle IS NOT NULL
    )
), sends AS (
    SELECT channel, round(avg(taken_cycle - sent_cycle), 1) AS mean_cycles_in_channel,
        count(*) FILTER (send_wait_cycles > 0) AS sends_that_waited
    FROM transfers GROUP BY channel
)
SELECT name AS channel, depth, max(held)::BIGINT AS most_held, mean_cycles_in_channel,
    sends_that_waited
FROM levels JOIN sends USING (channel) JOIN channels USING (channel)
GROUP BY ALL ORDER BY sends_that_waited DESC, channel LIMIT 20""",
        """\
WITH levels AS (
    SELECT channel, sum(change) OVER (PARTITION BY channel ORDER BY cycle, change) AS held
    FROM (
        SELECT channel, sent_cycle AS cycle, 1 AS change FROM transfers
        UNION ALL SELECT channel, taken_cycle, -1 FROM transfers WHERE taken_cycle IS NOT NULL
    )
), most AS (
    SELECT channel, max(held)::BIGINT AS held FROM levels GROUP BY channel
), sends AS (
    SELECT channel, count(*) FILTER (send_wait_cycles > 0) AS waited FROM transfers GROUP BY channel
)
SELECT family AS channel, count(*) AS channels, min(depth) AS least_depth, max(depth) AS most_depth,
    min(held) AS least_held, quantile_disc(held, 0.5) AS median_held, max(held) AS most_held,
    sum(waited)::BIGINT AS sends_that_waited
FROM most JOIN sends USING (channel) JOIN channels USING (channel)
GROUP BY family ORDER BY sends_that_waited DESC, family LIMIT 20""",
    ),
    "bandwidth": Query(
        "How much does the HBM move in each twentieth of the run, bursts spread over their time?",
        # Of what would be above the peak, most moved in the twentieths before, else in those after.
        """\
WITH parts AS (
    SELECT part, part * cycles / 20 AS first, (part + 1) * cycles / 20 AS last,
        (part + 1) * cycles / 20 * peak_bytes_per_cycle AS room
    FROM run, range(20) AS parts(part) WHERE cycles > 0
), spread AS (
    SELECT part, first, last, room, sum(coalesce(sum(bytes * (least(end_cycle, last)
        - greatest(submitted_cycle, first)) / (end_cycle - submitted_cycle)), 0))
        OVER (ORDER BY part) AS moved
    FROM parts LEFT JOIN bursts ON submitted_cycle < last AND end_cycle > first
    GROUP BY part, first, last, room
), earlier AS (
    SELECT *, room + max(moved - room) OVER (ORDER BY part DESC) AS up_to FROM spread
), later AS (
    SELECT *, CASE WHEN max(moved) OVER () > max(room) OVER () THEN moved
        ELSE room + least(0, min(up_to - room) OVER (ORDER BY part)) END AS in_all
    FROM earlier
), windows AS (
    SELECT *, in_all - coalesce(lag(in_all) OVER (ORDER BY part), 0) AS bytes FROM later
)
SELECT part AS twentieth, round(first, 1) AS from_cycle, round(bytes)::BIGINT AS bytes,
    round(bytes / (last - first), 1) AS bytes_per_cycle
FROM windows ORDER BY part""",
    ),
}


def describe() -> Iterator[str]:
    """Yield the lines that list the queries and explain the tables."""
    yield "Ready queries"
    for name, query in QUERIES.items():
        yield f"  {name:18}{query.question}"
    for table, columns in TABLES.items():
        yield ""
        yield table
        for column in columns:
            field = FIELDS[column]
            unit = f" [{field.unit}]" if field.unit else ""
            yield f"  {column:22}{field.meaning}{unit}"


class Database(Protocol):
    """Where the rows are."""

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own, which only reads."""
        ...


class Table:
    """The rows of a query, which is executed whenever they are asked for.

    It has Arrow's stream of columns (``__arrow_c_stream__``): ``pyarrow.table(table)`` and
    ``polars.DataFrame(table)`` take it as it is, ``table.df()`` is a DataFrame of pandas, where
    these are installed. Cycles and counts are 64-bit integers; what is not there is null.

    Attributes:
        name: of the table, or the query.
        columns: their names.
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
        self.columns: Final[tuple[str, ...]] = tuple(self._asked(self._relation).columns)

    def rows(self, first: int | None = None) -> list[tuple[Any, ...]]:
        """Return all rows, or the ``first``, in Python's own numbers and texts; null is None."""
        if first is None:
            return self._asked(lambda: self._relation().fetchall())
        return self._asked(lambda: self._relation().limit(first).fetchall())

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the columns as numpy arrays; one with nulls is masked."""
        return self._asked(lambda: self._relation().fetchnumpy())

    def df(self) -> Any:
        """Return the columns as a DataFrame of pandas.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise refused(
                "df() needs pandas, which is not installed: expected `pip install pandas`"
            )
        return self._asked(lambda: self._relation().df())

    def __len__(self) -> int:
        """How many rows there are."""
        return self._asked(lambda: len(self._relation()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the columns for Arrow's readers; see Arrow's PyCapsule interface."""
        return self._asked(lambda: self._relation().__arrow_c_stream__(requested_schema))

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

    def _repr_html_(self) -> str | None:
        """What a notebook shows of it: its first rows."""
        return shown(self)

    def _relation(self) -> duckdb.DuckDBPyRelation:
        found = self._database.cursor().sql(self._sql)
        assert found is not None  # statements without rows were refused
        return found

    def _check(self) -> None:
        """Refuse what does not only read."""
        found = [statement.type.name for statement in duckdb.extract_statements(self._sql)]
        if len(found) != 1:
            raise duckdb.Error(
                f"{counted(len(found), 'statement')} are found where one is expected"
            )
        if found[0] not in _READING:
            what = found[0].replace("_", " ")
            raise duckdb.Error(f"{what} asks for no rows, and a trace is only read")

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the database, and say what it refuses."""
        try:
            return ask()
        except duckdb.Error as error:
            raise refused(
                f"query {self.name!r}: {str(error).splitlines()[0]}: expected SQL over the tables "
                f"{', '.join(TABLES)}, or one of {', '.join(QUERIES)}"
            ) from None
