"""Queries for frequent questions, and the schema for other questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from fabric.messages.vocabulary import FIELDS, TABLES


class Query(NamedTuple):
    question: str
    sql: str  # over the tables of ``fabric.messages.vocabulary``
    folded: str = ""  # by family, with minimum, median and maximum; empty without families


_LEVELS: Final = """\
WITH levels AS (
    SELECT channel, sum(change) OVER (PARTITION BY channel ORDER BY cycle, change) AS held
    FROM (
        SELECT channel, sent_cycle AS cycle, 1 AS change FROM transfers
        UNION ALL SELECT channel, taken_cycle, -1 FROM transfers WHERE taken_cycle IS NOT NULL
    )
)"""

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
        _LEVELS
        + """, sends AS (
    SELECT channel, round(avg(taken_cycle - sent_cycle), 1) AS mean_cycles_in_channel,
        count(*) FILTER (send_wait_cycles > 0) AS sends_that_waited
    FROM transfers GROUP BY channel
)
SELECT name AS channel, depth, max(held)::BIGINT AS most_held, mean_cycles_in_channel,
    sends_that_waited
FROM levels JOIN sends USING (channel) JOIN channels USING (channel)
GROUP BY ALL ORDER BY sends_that_waited DESC, channel LIMIT 20""",
        _LEVELS
        + """, most AS (
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
        # Bytes above the peak count in the nearest earlier twentieths with room, or in later ones.
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
    """Yield lines with the ready queries, and with the columns of each table."""
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
