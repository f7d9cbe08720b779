"""The tables of ``trace query``, made from the segments. ``messages.vocabulary`` lists columns.

``transfers`` is sorted by (taken_cycle, channel, element), elements still held last;
``operations`` by (unit, order); ``waits`` by (unit, start_cycle); ``bursts`` by (end_cycle, unit).
Waits and bursts under way when the run stopped are in ``waits`` and ``bursts`` up to the run's last
cycle. A select without ORDER BY keeps this order, whatever the order of writing.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from fabric.analysis.trace.database import Connection
from fabric.messages.causes import Cause, Operation, Step
from fabric.messages.place import Place
from fabric.messages.text import families
from fabric.timing.engine import log
from fabric.timing.engine.channel_rule import credit_part, set_out_at, visible_from
from fabric.timing.log.tally import CAUSES

_SIGNS: Final = {ast.Add: "+", ast.Sub: "-"}

_NAMES: Final = {"max": "greatest", "min": "least"}


def _macro(rule: Callable[..., int]) -> str:
    (function,) = ast.parse(inspect.getsource(rule)).body
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    parameters = ", ".join(parameter.arg for parameter in function.args.args)
    return f"CREATE MACRO {function.name}({parameters}) AS {_sql(returned.value)};\n"


def _sql(value: ast.expr | None) -> str:
    match value:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=number):
            return str(number)
        case ast.BinOp():
            return f"({_sql(value.left)} {_SIGNS[type(value.op)]} {_sql(value.right)})"
        case ast.Call(func=ast.Name(id=name)):
            return f"{_NAMES[name]}({', '.join(map(_sql, value.args))})"
    raise NotImplementedError(ast.dump(value) if value else "nothing")


MACROS: Final = "".join(_macro(rule) for rule in (visible_from, set_out_at, credit_part))
"""Defines ``visible_from``, ``set_out_at`` and ``credit_part``."""

CHANNELS: Final = """
SELECT channel, name, reader, producer, consumer, carries, depth, forward_cycles, backward_cycles
FROM channels ORDER BY channel
"""
"""The fields of ``ChannelFacts``."""

_OF_ELEMENTS: Final = (
    *log.SENDS, *log.REQUESTS, *log.TAKES, log.RESERVE, log.CROSS, log.SEE
)  # fmt: skip

ENTRIES: Final = """
CREATE TABLE entries (place BIGINT, unit BIGINT, operation BIGINT, channel BIGINT, amount BIGINT,
    stop BIGINT, cycle BIGINT, waited BIGINT);
CREATE TABLE omissions (channel BIGINT, omitted BIGINT);
"""
"""Creates the log's tables; ``omissions`` counts elements that were dequeued before the window."""

APPEND: Final = """
INSERT INTO entries SELECT row_number() OVER () - 1 + (SELECT count(*) FROM entries), * FROM {file}
"""

WINDOW: Final = f"""
CREATE OR REPLACE TABLE entries AS SELECT
    row_number() OVER (ORDER BY least(cycle, getvariable('window_first')), place) - 1 AS place,
    * EXCLUDE (place)
FROM entries;
UPDATE recorded_states SET next_place = next_place
    + (SELECT count(*) FROM entries WHERE cycle < getvariable('window_first'));
DELETE FROM entries WHERE channel NOT IN (SELECT channel FROM omissions)
    AND operation IN {_OF_ELEMENTS};
"""
"""Sorts rows from before the window, which were held until an element was dequeued in it.

Drops channels that are not in ``omissions``: after a killed run, their rows may be incomplete.
"""

UNSENT: Final = f"""
SELECT channel FROM entries WHERE channel >= 0 GROUP BY channel
HAVING count(*) FILTER (operation IN {log.SENDS})
    < count(*) FILTER (operation IN {log.TAKES})
"""
"""A row for each channel with more dequeued than sent elements."""

UNFIT: Final = f"""
SELECT w.unit FROM waiting w LEFT JOIN recorded_states s ON s.unit = w.unit
JOIN channels c ON c.channel = w.channel
WHERE waits_for IS NULL OR w.unit <> (CASE waits_for WHEN '{Operation.SEND}' THEN producer
    ELSE consumer END)
UNION ALL SELECT unit FROM recorded_states ANTI JOIN waiting USING (unit)
WHERE waits_for IN ('{Operation.SEND}', '{Operation.RECEIVE}')
"""
"""A row for each unit that waits for a channel of other units, or for an unrecorded channel."""

_NAMES_OF_STEPS: Final = {
    log.SEE: Step.SEE, log.TAKE: Step.TAKE, log.HEAR: Step.TAKE, log.SEND: Step.SEND,
    log.PUT: Step.SEND, log.RESERVE: Step.RESERVE, log.BURST: Step.BURST, log.END: Step.END,
    log.ALLOCATE: Step.ALLOCATE, log.IDLE: Step.IDLE,
}  # fmt: skip
"""Names of the rows in the table ``operations``."""


def _case(words: Mapping[int, str]) -> str:
    whens = " ".join(f"WHEN {operation} THEN '{word}'" for operation, word in words.items())
    return f"CASE operation {whens} END"


_OUTSIDE: Final = """
least(reserved_cycle - send_wait_cycles, seen_cycle - receive_wait_cycles)
    > getvariable('window_last')
"""
"""An element was sent after the window, and its consumer began to wait after the window."""

VIEWS: Final = f"""
{MACROS}
CREATE TEMPORARY TABLE sends AS FROM (
    SELECT channel, unit, stop, place, operation, cycle, waited,
        CASE WHEN lag(operation) OVER its IN {log.REQUESTS} THEN lag(amount) OVER its
            ELSE -1 END AS requested_cycle,
        count(*) FILTER (operation IN {log.SENDS}) OVER its - 1 AS element,
        count(*) FILTER (operation = {log.PUT}) OVER its AS number
    FROM entries WHERE operation IN {log.SENDS + log.REQUESTS}
    WINDOW its AS (PARTITION BY channel ORDER BY place)
) WHERE operation IN {log.SENDS};

CREATE TEMPORARY TABLE takes AS SELECT channel, place, operation, amount, cycle, waited,
    count(*) FILTER (operation <> {log.SEE}) OVER its - (operation <> {log.SEE})::BIGINT AS element
FROM entries WHERE operation IN {(log.SEE, *log.TAKES)}
WINDOW its AS (PARTITION BY channel ORDER BY place);

CREATE TEMPORARY TABLE reserves AS SELECT channel, place, cycle, waited,
    row_number() OVER (PARTITION BY channel ORDER BY place) AS number
FROM entries WHERE operation = {log.RESERVE};

CREATE TEMPORARY TABLE crossings AS SELECT channel, amount AS visible_cycle,
    row_number() OVER (PARTITION BY channel ORDER BY place) - 1 AS element
FROM entries WHERE operation = {log.CROSS};

CREATE TABLE elements AS SELECT
    s.channel, s.element + coalesce(omitted, 0) AS element, s.stop,
    s.place AS sent_place, s.cycle AS sent_cycle,
    r.place AS reserved_place, coalesce(r.cycle, s.cycle) AS reserved_cycle,
    coalesce(r.waited, s.waited) AS send_wait_cycles,
    CASE WHEN list_contains(getvariable('shared_channels'), s.channel) THEN c.visible_cycle
        ELSE visible_from(s.cycle, forward_cycles, requested_cycle) END AS visible_cycle,
    t.place AS taken_place, CASE t.operation WHEN {log.HEAR} THEN t.amount ELSE t.cycle END
        AS taken_cycle,
    v.place AS seen_place, coalesce(v.cycle, t.cycle) AS seen_cycle,
    coalesce(v.waited, t.waited, 0) AS receive_wait_cycles
FROM sends s JOIN channels USING (channel)
LEFT JOIN reserves r ON s.operation = {log.PUT} AND r.channel = s.channel AND r.number = s.number
LEFT JOIN crossings c ON c.channel = s.channel AND c.element = s.element
LEFT JOIN takes t ON t.operation <> {log.SEE} AND t.channel = s.channel AND t.element = s.element
LEFT JOIN takes v ON v.operation = {log.SEE} AND v.channel = s.channel AND v.element = s.element
LEFT JOIN omissions o ON o.channel = s.channel;

DELETE FROM entries WHERE place IN (
    SELECT unnest([sent_place, reserved_place, seen_place, taken_place]) FROM elements
    WHERE {_OUTSIDE}
);
DELETE FROM elements WHERE {_OUTSIDE};
DELETE FROM entries WHERE operation = {log.RESERVE}
    AND cycle - waited > getvariable('window_last') AND place NOT IN (
        SELECT reserved_place FROM elements WHERE reserved_place IS NOT NULL
    );

DROP TABLE sends; DROP TABLE takes; DROP TABLE reserves; DROP TABLE crossings;

CREATE TABLE transfers AS SELECT
    channel, element,
    CASE WHEN stop < 0 THEN -1 - stop ELSE stop END AS stop,
    stop < 0 AS bare,
    reserved_cycle, sent_cycle, visible_cycle, seen_cycle, taken_cycle,
    send_wait_cycles, receive_wait_cycles
FROM elements ORDER BY taken_cycle NULLS LAST, channel, element;

CREATE VIEW every_operation AS
SELECT unit, place, {_case(_NAMES_OF_STEPS)} AS operation, cycle, waited AS wait_cycles,
    nullif(channel, -1) AS channel, element
FROM entries LEFT JOIN (
    SELECT unnest([sent_place, reserved_place, seen_place, taken_place]) AS place, element
    FROM elements
) USING (place) WHERE operation IN ({", ".join(map(str, _NAMES_OF_STEPS))});

CREATE TABLE last_states AS SELECT s.* EXCLUDE (next_place) REPLACE (
    coalesce(later.cycle, s.cycle) AS cycle,
    s.busy_cycles + coalesce(later.cycle - s.cycle - later.wait_cycles, 0) AS busy_cycles,
    CASE WHEN later.unit IS NULL THEN waits_for END AS waits_for,
    CASE WHEN later.unit IS NULL THEN since_cycle END AS since_cycle,
    CASE WHEN later.unit IS NULL THEN cause END AS cause,
    CASE WHEN later.unit IS NULL THEN channel END AS channel)
FROM recorded_states s LEFT JOIN (
    SELECT unit, max(o.cycle) AS cycle, sum(wait_cycles)::BIGINT AS wait_cycles
    FROM every_operation o JOIN recorded_states s USING (unit)
    WHERE place >= next_place OR o.cycle > s.cycle GROUP BY unit
) later USING (unit) ORDER BY unit;

UPDATE last_states SET waits_for = NULL, since_cycle = NULL, cause = NULL, channel = NULL
WHERE waits_for = '{Operation.SEND}' AND unit IN (
    SELECT w.unit FROM waiting w JOIN every_operation o ON o.channel = w.channel
    JOIN recorded_states s ON s.unit = o.unit WHERE o.unit <> w.unit AND o.place >= s.next_place
);

CREATE TABLE states AS FROM (SELECT * EXCLUDE (cause, channel, requests) FROM last_states);

CREATE VIEW last_cycles AS SELECT unit, cycle FROM states
UNION ALL SELECT unit, max(cycle) FROM every_operation WHERE NOT EXISTS (FROM states) GROUP BY unit;

DELETE FROM waiting WHERE unit IN (SELECT unit FROM states WHERE waits_for IS NULL);

CREATE TABLE run AS SELECT getvariable('status') AS status, coalesce(getvariable('cycles'), (
    SELECT max(cycle) FROM (SELECT cycle FROM states UNION ALL SELECT cycle FROM every_operation)
), 0)::BIGINT AS cycles, getvariable('peak_bytes_per_cycle') AS peak_bytes_per_cycle;

CREATE VIEW open_waits AS SELECT
    unit, since_cycle AS start_cycle, cycles AS end_cycle, cause, channel, requests
FROM last_states, run
WHERE cause IS NOT NULL AND since_cycle <= coalesce(getvariable('window_last'), cycles);

CREATE TABLE bursts AS SELECT
    unit, submitted_cycle, end_cycle, end_cycle - submitted_cycle AS cycles, requests,
    requests * getvariable('request_bytes') AS bytes, open
FROM (
    SELECT unit, cycle - waited AS submitted_cycle, cycle AS end_cycle, amount AS requests,
        false AS open
    FROM entries WHERE operation = {log.BURST}
    UNION ALL SELECT unit, start_cycle, end_cycle, requests, true
    FROM open_waits WHERE cause = '{Cause.HBM}'
) ORDER BY end_cycle, unit;

CREATE VIEW operations AS SELECT
    unit, row_number() OVER sequence - 1 AS "order", operation, cycle,
    cycle - wait_cycles - coalesce(lag(cycle) OVER sequence, 0) AS work_cycles,
    wait_cycles, channel, element
FROM every_operation WINDOW sequence AS (PARTITION BY unit ORDER BY place)
ORDER BY unit, "order";

CREATE TABLE waits AS SELECT
    unit, start_cycle, end_cycle, end_cycle - start_cycle AS cycles, cause, channel,
    greatest(least(until_cycle, set_out_at(end_cycle - links_cycles, forward_cycles)), start_cycle)
        AS until_cycle,
    coalesce(links_cycles, 0) AS links_cycles, open
FROM (
    SELECT unit, cycle - waited AS start_cycle, cycle AS end_cycle, {_case(CAUSES)} AS cause,
        nullif(channel, -1) AS channel,
        CASE WHEN operation IN ({log.SEND}, {log.RESERVE})
                THEN cycle - credit_part(waited, backward_cycles)
            WHEN operation = {log.IDLE} THEN amount
            ELSE coalesce(sent_cycle, cycle) END AS until_cycle,
        false AS open
    FROM entries LEFT JOIN channels USING (channel) LEFT JOIN (
        SELECT coalesce(seen_place, taken_place) AS place, sent_cycle FROM elements
    ) USING (place) WHERE waited > 0 AND {_case(CAUSES)} IS NOT NULL
    UNION ALL SELECT unit, start_cycle, end_cycle, cause, channel, end_cycle, true FROM open_waits
) LEFT JOIN channels USING (channel) LEFT JOIN (
    SELECT unit, cycle AS end_cycle, amount AS links_cycles, false AS open FROM entries
    WHERE operation = {log.LINKS}
) USING (unit, end_cycle, open) ORDER BY unit, start_cycle, open;
"""

_SET: Final = """
ALTER TABLE {table} ADD COLUMN family VARCHAR;
UPDATE {table} SET family = given.family FROM given WHERE {table}.{number} = given.number;
"""


def add_families(database: Connection) -> None:
    """Add the column ``family`` to ``units`` and ``channels``.

    It has the title of the family, with the place of its wiring if several have this title.
    """
    rows = database.rows("SELECT name, operator, file, line FROM units ORDER BY unit")
    places = [Place(file, line) for _, _, file, line in rows]
    operators = [operator for _, operator, _, _ in rows]
    units = _titles(
        [name for name, *_ in rows],
        lambda unit: (operators[unit], places[unit]),
        lambda unit: places[unit].brief,
    )
    _set(database, "units", "unit", units)
    rows = database.rows("SELECT name, producer, consumer FROM channels ORDER BY channel")
    ends = [(units[producer], units[consumer]) for _, producer, consumer in rows]
    wired = [
        f"{places[producer].brief} to {places[consumer].brief}" for _, producer, consumer in rows
    ]
    channels = _titles([name for name, *_ in rows], ends.__getitem__, wired.__getitem__)
    _set(database, "channels", "channel", channels)


def _titles(
    names: Sequence[str], shared: Callable[[int], Hashable], place: Callable[[int], str]
) -> list[str]:
    groups = families(range(len(names)), names.__getitem__, shared)
    count = Counter(family.title for family in groups)
    titles = [""] * len(names)
    for number, (title, members) in enumerate(groups):
        text = title
        if count[title] > 1:
            text = f"{title} ({place(members[0])})"
            count[text] += 1
        if count[text] > 1:
            text += f" {number}"
        for member in members:
            titles[member] = text
    return titles


def _set(database: Connection, table: str, number: str, titles: Sequence[str]) -> None:
    rows = {"number": np.arange(len(titles)), "family": np.array(titles, np.object_)}
    database.register("given", rows)
    database.execute(_SET.format(table=table, number=number))
    database.call(lambda connection: connection.unregister("given"))
