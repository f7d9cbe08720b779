"""The tables of ``trace query``, made from the segments. Their columns: ``messages.vocabulary``.

``transfers`` is sorted by (taken_cycle, channel, element), what is still held last;
``operations`` by (unit, order); ``waits`` by (unit, start_cycle); ``bursts`` by (end_cycle, unit).
What was under way when the run stopped is in ``waits`` and ``bursts`` up to the run's last cycle.
A select without ORDER BY keeps that order, whatever order the run happened to write in.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.messages.causes import Cause, Operation, Step
from fabric.messages.place import Place
from fabric.messages.text import families
from fabric.timing.engine.channel_rule import credit_part, set_out_at, visible_from
from fabric.timing.engine.observer import ELSEWHERE
from fabric.timing.log.log_rows import BURST, IDLE, LINKS, NUMBERED, RESERVE

if TYPE_CHECKING:
    from fabric.analysis.trace.connection import Connection


_SIGNS: Final = {ast.Add: "+", ast.Sub: "-"}


_NAMES: Final = {"max": "greatest", "min": "least"}


def _macro(rule: Callable[..., int]) -> str:
    """Return SQL for what a function returns of its parameters."""
    (function,) = ast.parse(inspect.getsource(rule)).body
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    parameters = ", ".join(each.arg for each in function.args.args)
    return f"CREATE MACRO {function.name}({parameters}) AS {_sql(returned.value)};\n"


def _sql(value: ast.expr | None) -> str:
    match value:
        case ast.Name(id=name):
            return name
        case ast.BinOp():
            return f"({_sql(value.left)} {_SIGNS[type(value.op)]} {_sql(value.right)})"
        case ast.Call(func=ast.Name(id=name)):
            return f"{_NAMES[name]}({', '.join(map(_sql, value.args))})"
    raise NotImplementedError(ast.dump(value) if value else "nothing")


MACROS: Final = "".join(_macro(rule) for rule in (visible_from, set_out_at, credit_part))
"""Makes ``visible_from``, ``set_out_at`` and ``credit_part``."""


CHANNELS: Final = """
SELECT channel, name, reader, producer, consumer, carries, depth, forward_cycles, backward_cycles
FROM channels ORDER BY channel
"""
"""The fields of ``ChannelFacts``."""


SHORT: Final = """
INSERT INTO recorded SELECT
    channel, element, stop, taken_order, taken_cycle, receive_wait_cycles, sent_order, sent_cycle,
    send_wait_cycles, -1, sent_order, sent_cycle, taken_order, taken_cycle
FROM {file}
"""


LONG: Final = "INSERT INTO recorded SELECT * FROM {file}"


OPERATIONS: Final = f"""
INSERT INTO recorded_operations SELECT * FROM {{file}} WHERE operation < {len(NUMBERED)};
INSERT INTO recorded_readings SELECT * FROM {{file}} WHERE operation >= {len(NUMBERED)};
"""


WITHOUT_LOG: Final = f"""
DELETE FROM recorded USING (
    SELECT channel, min(element) AS element FROM recorded
    WHERE {ELSEWHERE} IN (sent_order, reserved_order, seen_order, taken_order) GROUP BY channel
) half WHERE recorded.channel = half.channel AND recorded.element >= half.element
"""
"""Leaves out what is known of one end only, and what came behind it on that channel."""


UNFIT: Final = f"""
SELECT w.unit FROM waiting w LEFT JOIN recorded_states s ON s.unit = w.unit
JOIN channels c ON c.channel = w.channel
WHERE waits_for IS NULL OR w.unit <> (CASE waits_for WHEN '{Operation.SEND}' THEN producer
    ELSE consumer END)
UNION ALL SELECT unit FROM recorded_states ANTI JOIN waiting USING (unit)
WHERE waits_for IN ('{Operation.SEND}', '{Operation.RECEIVE}')
"""
"""A row for each unit of the last states that waits for a channel of others, or for none."""


VIEWS: Final = f"""
{MACROS}
CREATE TABLE transfers AS SELECT
    channel, element,
    CASE WHEN stop < 0 THEN -1 - stop ELSE stop END AS stop,
    stop < 0 AS bare,
    reserved_cycle, sent_cycle,
    visible_from(sent_cycle, forward_cycles, requested_cycle) AS visible_cycle,
    nullif(seen_cycle, -1) AS seen_cycle,
    nullif(taken_cycle, -1) AS taken_cycle,
    send_wait_cycles, receive_wait_cycles
FROM recorded JOIN channels USING (channel)
ORDER BY nullif(taken_cycle, -1) NULLS LAST, channel, element;


CREATE VIEW every_operation AS
SELECT producer AS unit, reserved_order AS place, '{Step.RESERVE}' AS operation,
    reserved_cycle AS cycle, send_wait_cycles AS wait_cycles, channel, element
FROM recorded JOIN channels USING (channel) WHERE reserved_order <> sent_order
UNION ALL SELECT producer, sent_order, '{Step.SEND}', sent_cycle,
    CASE WHEN reserved_order = sent_order THEN send_wait_cycles ELSE 0 END, channel, element
FROM recorded JOIN channels USING (channel)
UNION ALL SELECT consumer, seen_order, '{Step.SEE}', seen_cycle, receive_wait_cycles,
    channel, element
FROM recorded JOIN channels USING (channel) WHERE seen_order >= 0 AND seen_order <> taken_order
UNION ALL SELECT consumer, taken_order, '{Step.TAKE}', taken_cycle,
    CASE WHEN seen_order = taken_order THEN receive_wait_cycles ELSE 0 END, channel, element
FROM recorded JOIN channels USING (channel) WHERE taken_order >= 0
UNION ALL SELECT unit, "order",
    {[str(step) for step in NUMBERED]}[operation + 1], cycle,
    wait_cycles, nullif(channel, -1), NULL
FROM recorded_operations;

CREATE TABLE last_states AS SELECT s.* EXCLUDE (next_order) REPLACE (
    coalesce(later.cycle, s.cycle) AS cycle,
    s.busy_cycles + coalesce(later.cycle - s.cycle - later.wait_cycles, 0) AS busy_cycles,
    CASE WHEN later.unit IS NULL THEN waits_for END AS waits_for,
    CASE WHEN later.unit IS NULL THEN since_cycle END AS since_cycle,
    CASE WHEN later.unit IS NULL THEN cause END AS cause,
    CASE WHEN later.unit IS NULL THEN channel END AS channel)
FROM recorded_states s LEFT JOIN (
    SELECT unit, max(o.cycle) AS cycle, sum(wait_cycles)::BIGINT AS wait_cycles
    FROM every_operation o JOIN recorded_states s USING (unit)
    WHERE place >= next_order OR o.cycle > s.cycle GROUP BY unit
) later USING (unit) ORDER BY unit;

UPDATE last_states SET waits_for = NULL, since_cycle = NULL, cause = NULL, channel = NULL
WHERE waits_for = '{Operation.SEND}' AND unit IN (
    SELECT w.unit FROM waiting w JOIN every_operation o ON o.channel = w.channel
    JOIN recorded_states s ON s.unit = o.unit WHERE o.unit <> w.unit AND o.place >= s.next_order
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
    SELECT unit, cycle - wait_cycles AS submitted_cycle, cycle AS end_cycle, amount AS requests,
        false AS open
    FROM recorded_operations WHERE operation = {BURST}
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
    SELECT consumer AS unit, seen_cycle - receive_wait_cycles AS start_cycle,
        seen_cycle AS end_cycle, '{Cause.EMPTY}' AS cause, channel, sent_cycle AS until_cycle,
        false AS open
    FROM recorded JOIN channels USING (channel) WHERE seen_order >= 0 AND receive_wait_cycles > 0
    UNION ALL SELECT producer, reserved_cycle - send_wait_cycles, reserved_cycle,
        '{Cause.FULL}', channel,
        reserved_cycle - credit_part(send_wait_cycles, backward_cycles), false
    FROM recorded JOIN channels USING (channel) WHERE send_wait_cycles > 0
    UNION ALL SELECT unit, cycle - wait_cycles, cycle,
        {[str(step.cause) for step in NUMBERED]}[operation + 1], nullif(channel, -1),
        CASE operation WHEN {RESERVE} THEN cycle - credit_part(wait_cycles, backward_cycles)
            WHEN {IDLE} THEN amount ELSE cycle END, false
    FROM recorded_operations LEFT JOIN channels USING (channel) WHERE wait_cycles > 0
    UNION ALL SELECT unit, start_cycle, end_cycle, cause, channel, end_cycle, true FROM open_waits
) LEFT JOIN channels USING (channel) LEFT JOIN (
    SELECT unit, cycle AS end_cycle, amount AS links_cycles, false AS open FROM recorded_readings
    WHERE operation = {LINKS}
) USING (unit, end_cycle, open) ORDER BY unit, start_cycle, open;
"""


_SET: Final = """
ALTER TABLE {table} ADD COLUMN family VARCHAR;
UPDATE {table} SET family = given.family FROM given WHERE {table}.{number} = given.number;
"""


def add_families(database: Connection) -> None:
    """Add the column to ``units`` and ``channels``: the title, with its place if others have it."""
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
    _set(
        database,
        "channels",
        "channel",
        _titles([name for name, _, _ in rows], ends.__getitem__, wired.__getitem__),
    )


def _titles(
    names: Sequence[str], shared: Callable[[int], Hashable], place: Callable[[int], str]
) -> list[str]:
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


def _set(database: Connection, table: str, number: str, titles: Sequence[str]) -> None:
    rows = {"number": np.arange(len(titles)), "family": np.array(titles, np.object_)}
    database.register("given", rows)
    database.execute(_SET.format(table=table, number=number))
    database.call(lambda connection: connection.unregister("given"))
