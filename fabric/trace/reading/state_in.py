"""The last state that a trace has of its run, as the engine has it of a machine.

Of a window, or of some channels, there is what was recorded. Not recorded, and None here, is when
streams were ended that no unit waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.state.expected import UNTOLD, Expected
from fabric.state.run_state import ChannelState, OnChipState, RunState, UnitState, WaitState
from fabric.telling.causes import Operation
from fabric.telling.place import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.trace.reading.reader import Trace

__all__ = ["expected_in", "state_in"]

_UNITS: Final = """
WITH waited AS (
    SELECT unit,
        coalesce(sum(cycles) FILTER (cause = 'hbm'), 0)::BIGINT AS hbm_cycles,
        coalesce(sum(cycles) FILTER (cause = 'capacity'), 0)::BIGINT AS capacity_cycles
    FROM waits WHERE NOT open GROUP BY unit
)
SELECT unit, name, operator, kind, file, line, flops_per_cycle, coalesce(cycle, 0),
    coalesce(finished, false), coalesce(busy_cycles, 0), coalesce(hbm_cycles, 0),
    coalesce(capacity_cycles, 0), coalesce(flops, 0)
FROM units LEFT JOIN states USING (unit) LEFT JOIN waited USING (unit) ORDER BY unit
"""

_WAITS: Final = """
SELECT unit, waits_for, list(channel ORDER BY waiting.rowid), since_cycle, any_of,
    any_value(seen_stop), any_value(awaited_stop)
FROM states LEFT JOIN waiting USING (unit) WHERE waits_for IS NOT NULL GROUP BY ALL
"""

_CHANNELS: Final = """
WITH carried AS (
    SELECT channel,
        count(*) FILTER (taken_cycle IS NULL) AS held,
        count(*) FILTER (taken_cycle IS NULL AND NOT bare) AS held_values,
        count(*) FILTER (taken_cycle IS NOT NULL AND NOT bare) AS taken,
        arg_max(visible_cycle, element) FILTER (taken_cycle IS NULL) AS newest_cycle
    FROM transfers GROUP BY channel
), waited_for AS (
    SELECT channel, any_value(elements) AS elements, any_value(closed_cycle) AS closed_cycle
    FROM waiting GROUP BY channel
), dequeued AS (
    SELECT channel, max(cycle) AS last_taken_cycle
    FROM every_operation WHERE operation = 'take' GROUP BY channel
), dequeues AS (
    SELECT channel, taken_cycle, max(element) AS element
    FROM transfers WHERE taken_cycle IS NOT NULL GROUP BY channel, taken_cycle
), shared AS (
    SELECT t.channel, max(t.element - coalesce(d.element, -1)) AS peak
    FROM (
        SELECT *, visible_cycle - forward_cycles - backward_cycles AS returned_cycle
        FROM transfers JOIN channels USING (channel)
    ) t ASOF LEFT JOIN dequeues d ON t.channel = d.channel AND t.returned_cycle >= d.taken_cycle
    WHERE t.taken_cycle IS NOT NULL GROUP BY t.channel
), waited AS (
    SELECT channel,
        coalesce(sum(cycles) FILTER (cause = 'empty'), 0)::BIGINT AS empty_cycles,
        coalesce(sum(greatest(cycles - backward_cycles, 0)) FILTER (cause = 'full'), 0)::BIGINT
            AS full_cycles,
        coalesce(sum(least(cycles, backward_cycles)) FILTER (cause = 'full'), 0)::BIGINT
            AS credit_cycles
    FROM waits JOIN channels USING (channel) WHERE NOT open GROUP BY channel
), discarded AS (
    SELECT channel, count(*) AS left_over FROM recorded
    WHERE taken_order = -2 GROUP BY channel
)
SELECT channel, name, reader, producer, consumer, carries, depth,
    forward_cycles, backward_cycles, coalesce(held, 0),
    coalesce(elements, taken, 0) + coalesce(held_values, 0), coalesce(elements, taken, 0),
    closed_cycle, newest_cycle - forward_cycles, last_taken_cycle,
    greatest(coalesce(peak, 0), coalesce(held, 0)), coalesce(empty_cycles, 0),
    coalesce(full_cycles, 0), coalesce(credit_cycles, 0), coalesce(left_over, 0)
FROM channels LEFT JOIN carried USING (channel) LEFT JOIN waited_for USING (channel)
LEFT JOIN dequeued USING (channel) LEFT JOIN shared USING (channel)
LEFT JOIN waited USING (channel) LEFT JOIN discarded USING (channel) ORDER BY channel
"""
"""The end of a wait for a slot is for the credit on its way back, the rest for the consumer.

An element shared the channel with those before it whose credits were not back when it was sent.
"""


def state_in(trace: Trace) -> RunState:
    """Return the last state that ``trace`` has."""
    waits = {
        unit: WaitState(
            Operation(operation),
            tuple(number for number in channels if number is not None),
            since_cycle,
            bool(any_of),
            None if awaited is None else (seen, awaited),
        )
        for unit, operation, channels, since_cycle, any_of, seen, awaited in trace.rows(_WAITS)
    }
    ((moved,),) = trace.rows("SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts")
    return RunState(
        program=trace.meta.get("name", ""),
        cycles=trace.cycles,
        units=tuple(
            UnitState(
                unit, name, operator, kind, Place(file, line), flops_per_cycle, cycle, finished,
                waits.get(unit), *counters,
            )
            for unit, name, operator, kind, file, line, flops_per_cycle, cycle, finished, *counters
            in trace.rows(_UNITS)
        ),
        channels=tuple(ChannelState(*row) for row in trace.rows(_CHANNELS)),
        on_chip=_on_chip(trace),
        hbm_bytes_moved=moved,
    )  # fmt: skip


def expected_in(trace: Trace) -> Mapping[int, Expected]:
    """Return what the shapes told of channels, by number, when the last state was written.

    They were asked about the channels of loops only.
    """
    told = dict.fromkeys(
        (number for (number,) in trace.rows("SELECT channel FROM channels")), UNTOLD
    )
    for number, in_all, shape, per_output, feedback in trace.rows(
        "SELECT channel, in_all, shape, per_output, feedback FROM waiting WHERE in_all IS NOT NULL"
    ):
        file, _, line = (feedback or "").rpartition(":")
        told[number] = Expected(
            int(in_all) if in_all.isdigit() else in_all,
            shape or "",
            per_output,
            None if feedback is None else Place(file, int(line)),
        )
    return told


def _on_chip(trace: Trace) -> OnChipState:
    """Return who wants room on chip, in the order they are served, and who holds it."""
    wanted = trace.rows(
        "SELECT unit, wanted_bytes FROM states WHERE wanted_bytes > 0 ORDER BY since_cycle, unit"
    )
    held = trace.rows("SELECT unit, held_bytes FROM states WHERE held_bytes > 0 ORDER BY unit")
    capacity_bytes = trace.meta.get("hardware", {}).get("on_chip", {}).get("capacity_bytes")
    return OnChipState(capacity_bytes, tuple(wanted), tuple(held))
