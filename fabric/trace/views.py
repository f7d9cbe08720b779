"""The tables of ``trace query``, made from the segments. Their columns: ``fabric.vocabulary``.

``transfers`` is sorted by (taken_cycle, channel, element), what is still held last;
``operations`` by (unit, order); ``waits`` by (unit, start_cycle); ``bursts`` by (end_cycle, unit).
A select without ORDER BY keeps that order, whatever order the run happened to write in.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LONG", "OPERATIONS", "SHORT", "VIEWS"]

SHORT: Final = """
INSERT INTO recorded SELECT
    channel, element, stop, taken_order, taken_cycle, receive_wait_cycles, sent_order, sent_cycle,
    send_wait_cycles, -1, sent_order, sent_cycle, taken_order, taken_cycle
FROM {file}
"""
LONG: Final = "INSERT INTO recorded SELECT * FROM {file}"
OPERATIONS: Final = "INSERT INTO recorded_operations SELECT * FROM {file}"

VIEWS: Final = """
CREATE TABLE transfers AS SELECT
    channel, element,
    CASE WHEN stop < 0 THEN -1 - stop ELSE stop END AS stop,
    stop < 0 AS bare,
    reserved_cycle, sent_cycle,
    greatest(requested_cycle, sent_cycle + 1) AS visible_cycle,
    nullif(seen_cycle, -1) AS seen_cycle,
    nullif(taken_cycle, -1) AS taken_cycle,
    send_wait_cycles, receive_wait_cycles
FROM recorded ORDER BY nullif(taken_cycle, -1) NULLS LAST, channel, element;

CREATE TABLE bursts AS SELECT
    unit, cycle - wait_cycles AS submitted_cycle, cycle AS end_cycle, wait_cycles AS cycles,
    amount AS requests, amount * getvariable('request_bytes') AS bytes
FROM recorded_operations WHERE operation = 0 ORDER BY cycle, unit;

CREATE VIEW every_operation AS
SELECT producer AS unit, reserved_order AS place, 'reserve' AS operation, reserved_cycle AS cycle,
    send_wait_cycles AS wait_cycles, channel, element
FROM recorded JOIN channels USING (channel) WHERE reserved_order <> sent_order
UNION ALL SELECT producer, sent_order, 'send', sent_cycle,
    CASE WHEN reserved_order = sent_order THEN send_wait_cycles ELSE 0 END, channel, element
FROM recorded JOIN channels USING (channel)
UNION ALL SELECT consumer, seen_order, 'see', seen_cycle, receive_wait_cycles, channel, element
FROM recorded JOIN channels USING (channel) WHERE seen_order >= 0 AND seen_order <> taken_order
UNION ALL SELECT consumer, taken_order, 'take', taken_cycle,
    CASE WHEN seen_order = taken_order THEN receive_wait_cycles ELSE 0 END, channel, element
FROM recorded JOIN channels USING (channel) WHERE taken_order >= 0
UNION ALL SELECT unit, "order",
    ['burst', 'allocate', 'end', 'reserve', 'idle'][operation + 1], cycle,
    wait_cycles, nullif(channel, -1), NULL
FROM recorded_operations;

CREATE VIEW operations AS SELECT
    unit, row_number() OVER sequence - 1 AS "order", operation, cycle,
    cycle - wait_cycles - coalesce(lag(cycle) OVER sequence, 0) AS work_cycles,
    wait_cycles, channel, element
FROM every_operation WINDOW sequence AS (PARTITION BY unit ORDER BY place)
ORDER BY unit, "order";

CREATE TABLE waits AS SELECT
    unit, start_cycle, end_cycle, end_cycle - start_cycle AS cycles, cause, channel,
    greatest(until_cycle, start_cycle) AS until_cycle
FROM (
    SELECT consumer AS unit, seen_cycle - receive_wait_cycles AS start_cycle,
        seen_cycle AS end_cycle, 'empty' AS cause, channel, sent_cycle AS until_cycle
    FROM recorded JOIN channels USING (channel) WHERE seen_order >= 0 AND receive_wait_cycles > 0
    UNION ALL SELECT producer, reserved_cycle - send_wait_cycles, reserved_cycle, 'full', channel,
        reserved_cycle - 1
    FROM recorded JOIN channels USING (channel) WHERE send_wait_cycles > 0
    UNION ALL SELECT unit, cycle - wait_cycles, cycle,
        ['hbm', 'capacity', 'empty', 'full', 'empty'][operation + 1], nullif(channel, -1),
        CASE operation WHEN 3 THEN cycle - 1 WHEN 4 THEN amount ELSE cycle END
    FROM recorded_operations WHERE wait_cycles > 0
) ORDER BY unit, start_cycle;
"""
