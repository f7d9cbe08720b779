"""The state that a recorded run had at a cycle, as the engine has it of a machine.

A trace has the stamps of all that happened, and what only a machine knows at the end: not recorded,
and None before that, are the operations of units, who holds room on chip and what the HBM has
counted, which is recorded of a run that said how it ended; and at any cycle, when
streams were ended that no unit waits for in the end. Of a window, or of some channels, there is
what was recorded: until a unit's last cycle, what is no recorded wait counts as work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.hardware.pages import Pages
from fabric.retiming.rows import ALLOCATE, LEFT_OVER
from fabric.state.expected import UNTOLD, Expected
from fabric.state.run_state import ChannelState, OnChipState, RunState, UnitState, WaitState
from fabric.telling.causes import OPERATIONS, Cause, Operation
from fabric.telling.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fabric.trace.reading.reader import RecordedRun

__all__ = ["expected_in", "state_in"]

_NEVER: Final = (1 << 63) - 1
"""No stamp is later."""

_UNITS: Final = """
WITH waited AS (
    SELECT unit, sum(cycles)::BIGINT AS cycles,
        coalesce(sum(cycles) FILTER (cause = 'hbm'), 0)::BIGINT AS hbm_cycles,
        coalesce(sum(cycles) FILTER (cause = 'capacity'), 0)::BIGINT AS capacity_cycles
    FROM waits WHERE NOT open AND end_cycle <= $cut GROUP BY unit
)
SELECT unit, name, operator, kind, file, line, flops_per_cycle, coalesce(last.cycle, 0),
    coalesce(finished, false), busy_cycles, coalesce(flops, 0), coalesce(waited.cycles, 0),
    coalesce(hbm_cycles, 0), coalesce(capacity_cycles, 0)
FROM units LEFT JOIN last_cycles last USING (unit) LEFT JOIN states USING (unit)
LEFT JOIN waited USING (unit) ORDER BY unit
"""

_LAST_WAITS: Final = """
SELECT unit, waits_for, list(channel ORDER BY waiting.rowid), since_cycle, any_of,
    any_value(seen_stop), any_value(awaited_stop)
FROM states LEFT JOIN waiting USING (unit)
WHERE waits_for IS NOT NULL AND since_cycle <= $cut GROUP BY ALL
"""

_WAITS: Final = """
SELECT unit, cause, channel, start_cycle FROM waits
WHERE NOT open AND start_cycle <= $cut AND end_cycle > $cut
"""

_CHANNELS: Final = f"""
WITH moved AS (
    SELECT channel, element, bare,
        CASE WHEN list_contains($shared, channel) THEN sent_cycle
            ELSE visible_cycle - forward_cycles END AS set_out_cycle,
        CASE WHEN taken_cycle <= $cut THEN taken_cycle END AS taken_cycle
    FROM transfers JOIN channels USING (channel) WHERE sent_cycle <= $cut
), carried AS (
    SELECT channel,
        count(*) FILTER (taken_cycle IS NULL) AS held,
        count(*) FILTER (taken_cycle IS NULL AND NOT bare) AS held_values,
        count(*) FILTER (taken_cycle IS NOT NULL AND NOT bare) AS taken,
        count(*) FILTER (bare) AS bare_stops,
        arg_max(set_out_cycle, element) FILTER (taken_cycle IS NULL) AS newest_cycle
    FROM moved GROUP BY channel
), waited_for AS (
    SELECT channel, any_value(elements) FILTER ($cut = {_NEVER}) AS elements,
        any_value(closed_cycle) FILTER (closed_cycle <= $cut) AS closed_cycle
    FROM waiting GROUP BY channel
), dequeued AS (
    SELECT channel, max(taken_cycle) FILTER (taken_order >= 0) AS last_taken_cycle,
        max(element) FILTER (taken_order >= 0) AS last_taken, 1 AS slots,
        count(*) FILTER (taken_order = {LEFT_OVER}) AS left_over
    FROM recorded WHERE taken_cycle BETWEEN 0 AND $cut GROUP BY channel
), dequeues AS (
    SELECT channel, taken_cycle, max(element) AS element
    FROM moved WHERE taken_cycle IS NOT NULL GROUP BY channel, taken_cycle
), shared AS (
    SELECT t.channel, max(t.element - coalesce(d.element, -1)) AS peak
    FROM (
        SELECT *, set_out_cycle - backward_cycles AS returned_cycle
        FROM moved JOIN channels USING (channel)
        JOIN dequeued USING (channel) WHERE element <= last_taken
    ) t ASOF LEFT JOIN dequeues d ON t.channel = d.channel AND t.returned_cycle >= d.taken_cycle
    GROUP BY t.channel
), waited AS (
    SELECT channel,
        coalesce(sum(cycles) FILTER (cause = 'empty'), 0)::BIGINT AS empty_cycles,
        coalesce(sum(until_cycle - start_cycle) FILTER (cause = 'full'), 0)::BIGINT AS full_cycles,
        coalesce(sum(end_cycle - until_cycle) FILTER (cause = 'full'), 0)::BIGINT AS credit_cycles
    FROM waits WHERE NOT open AND end_cycle <= $cut GROUP BY channel
)
SELECT channel, name, reader, producer, consumer, carries, depth,
    forward_cycles, backward_cycles, coalesce(held, 0),
    coalesce(elements, taken, 0) + coalesce(held_values, 0), coalesce(elements, taken, 0),
    coalesce(bare_stops, 0), closed_cycle, newest_cycle, last_taken_cycle,
    greatest(coalesce(peak, slots, 0), coalesce(held, 0)), coalesce(empty_cycles, 0),
    coalesce(full_cycles, 0), coalesce(credit_cycles, 0), coalesce(left_over, 0)
FROM channels LEFT JOIN carried USING (channel) LEFT JOIN waited_for USING (channel)
LEFT JOIN dequeued USING (channel) LEFT JOIN shared USING (channel)
LEFT JOIN waited USING (channel) ORDER BY channel
"""
"""The end of a wait for a slot is for the credit on its way back, the rest for the consumer.

Where no links are shared, an element that was requested for later set out a hop before that.
An element shared the channel with those before it whose credits were not back when it set out; as
in a machine, that counts once the consumer dequeues it, before that only those that are held. Of a
window the last state has the elements of the whole run, where a unit waits.
"""

_WANTED: Final = f"""
SELECT unit, wanted_bytes FROM (
    SELECT unit, wanted_bytes, since_cycle FROM states
    WHERE wanted_bytes > 0 AND since_cycle <= $cut
    UNION ALL SELECT unit, amount, cycle - wait_cycles FROM recorded_operations
    WHERE operation = {ALLOCATE} AND cycle - wait_cycles <= $cut AND cycle > $cut
) ORDER BY since_cycle, unit
"""


def state_in(trace: RecordedRun, cycle: int | None = None) -> RunState:
    """Return the state of the run in ``cycle`` of the virtual time, or the last one.

    All that bears a stamp up to ``cycle`` has happened, and nothing later. A unit that works has
    come to ``cycle``, and its work up to there counts. One that waits, from the first cycle of the
    wait to the one before it goes on, stands where it began to wait, and so does the clock of one
    that has ended; a wait counts in its unit and channel once it is over. So every clock is the sum
    of what is counted, and accounts of the state reach up to ``cycle``.

    A burst has moved its bytes once the HBM has answered; of one that it never answered, those that
    were served count from the run's last cycle on. An element that was sent to an operator which
    has ended is dequeued when it would be visible: that may be later than the run's last cycle.

    Args:
        trace: of the run.
        cycle: from 0 on; None for the last state that ``trace`` has.

    Returns:
        The state. A wait in it that came to an end has one channel, the one that ended it, also
        where others would have done; and no ``stops``.
    """
    cut = _NEVER if cycle is None else cycle
    ((moved_bytes,),) = trace.rows(
        "SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts WHERE end_cycle <= $cut", cut=cut
    )
    return RunState(
        program=trace.meta.get("name", ""),
        cycles=min(cut, trace.cycles),
        units=tuple(_units(trace, cut)),
        channels=tuple(
            ChannelState(*row)
            for row in trace.rows(_CHANNELS, cut=cut, shared=[*trace.shared_channels])
        ),
        on_chip=_on_chip(trace, cut),
        hbm_bytes_moved=moved_bytes,
        hbm=trace.hbm if cut >= trace.cycles else None,
    )


def expected_in(trace: RecordedRun) -> Mapping[int, Expected]:
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


def _units(trace: RecordedRun, cut: int) -> Iterator[UnitState]:
    """Yield the units: where they stand, and where the cycles up to there went."""
    waits = _waits(trace, cut)
    for (
        number, name, operator, kind, file, line, flops_per_cycle, last_cycle, finished,
        busy_cycles, flops, waited_cycles, hbm_cycles, capacity_cycles,
    ) in trace.rows(_UNITS, cut=cut):  # fmt: skip
        wait = waits.get(number)
        at_end = last_cycle <= cut
        now = cut if wait is None else wait.since_cycle
        cycle = last_cycle if at_end else now
        yield UnitState(
            number,
            name,
            operator,
            kind,
            Place(file, line),
            flops_per_cycle,
            cycle,
            at_end and finished,
            wait,
            busy_cycles if at_end and busy_cycles is not None else cycle - waited_cycles,
            hbm_cycles,
            capacity_cycles,
            flops if at_end else None,
        )


def _waits(trace: RecordedRun, cut: int) -> dict[int, WaitState]:
    """Return what units wait for, by their numbers: what ends later, or never did."""
    waits = {
        unit: WaitState(
            OPERATIONS[Cause(cause)],
            () if channel is None else (channel,),
            start_cycle,
            any_of=False,
            stops=None,
        )
        for unit, cause, channel, start_cycle in trace.rows(_WAITS, cut=cut)
    }
    for unit, operation, channels, since_cycle, any_of, seen, awaited in trace.rows(
        _LAST_WAITS, cut=cut
    ):
        waits[unit] = WaitState(
            Operation(operation),
            tuple(number for number in channels if number is not None),
            since_cycle,
            bool(any_of),
            None if awaited is None else (seen, awaited),
        )
    return waits


def _on_chip(trace: RecordedRun, cut: int) -> OnChipState:
    """Return who wants room on chip, in the order they are served, and who holds it."""
    on_chip = trace.meta.get("hardware", {}).get("on_chip", {})
    capacity_bytes, page_bytes = on_chip.get("capacity_bytes"), on_chip.get("page_bytes")
    pages = None if page_bytes is None else Pages(page_bytes, on_chip["unit_bytes"])
    held: tuple[tuple[int, int], ...] | None = None
    if capacity_bytes is None or (trace.has_state and cut >= trace.cycles):
        held = tuple(
            trace.rows("SELECT unit, held_bytes FROM states WHERE held_bytes > 0 ORDER BY unit")
        )
    return OnChipState(capacity_bytes, tuple(trace.rows(_WANTED, cut=cut)), held, pages)
