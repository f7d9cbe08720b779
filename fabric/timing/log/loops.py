"""Compiled loops over the rows of a log: traffic of channels and waits up to a cycle."""

from __future__ import annotations

from functools import partial

from fabric.timing.engine import channel_rule
from fabric.timing.engine.channel_rule import credit_part, set_out_at, usable_from, visible_from
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters
from fabric.timing.log import columns as c
from fabric.timing.log import log_rows as r


@partial(MachineCode, uses=(c, r, channel_rule))
def count_elements(rows: Counters, ways: Counters, counts: Counters, cut: int) -> tuple[int, int]:
    """Add the elements sent and dequeued up to ``cut``.

    An element shared its channel with earlier ones whose credits were not back at its send, which
    is one hop before a requested cycle unless links are shared; that counts once it is dequeued.
    ``rows`` are sorted by channel and element; rows below NEXT were counted, and are kept for
    credits.

    Returns:
        The number of held elements, and of those counted as dequeued.
    """
    held = dequeued = 0
    last = -1
    first = returned = 0
    for row in range(rows.size // c.ROW):
        at = row * c.ROW
        ch = rows[at + c.CHANNEL]
        if ch != last:
            last = ch
            first = returned = row
        sent = rows[at + c.SENT]
        if sent > cut:
            continue
        to, way = ch * c.COUNTS, ch * c.WAY
        forward, backward = ways[way + c.FORWARD], ways[way + c.BACKWARD]
        set_out = sent
        if not ways[way + c.SHARED]:
            set_out = set_out_at(visible_from(sent, forward, rows[at + c.REQUESTED]), forward)
        value = 1 if rows[at + c.STOP] >= 0 else 0
        taken = rows[at + c.TAKEN]
        if taken < 0 or taken > cut:
            held += 1
            counts[to + c.HELD] += 1
            counts[to + c.HELD_VALUES] += value
            counts[to + c.NEWEST_SENT] = set_out
            continue
        if rows[at + c.ELEMENT] < counts[to + c.NEXT]:
            continue
        dequeued += 1
        counts[to + c.NEXT] = rows[at + c.ELEMENT] + 1
        counts[to + c.TAKEN_VALUES] += value
        counts[to + c.BARE_STOPS] += 1 - value
        counts[to + c.PEAK] = max(counts[to + c.PEAK], 1)
        if rows[at + c.TAKEN_ORDER] == r.LEFT_OVER:
            counts[to + c.LEFT_OVER_VALUES] += value
            continue
        counts[to + c.LAST_TAKEN] = taken
        # Credits come back in order, but what is requested for later may set out after the next.
        while returned < row and usable_from(rows[returned * c.ROW + c.TAKEN], backward) <= set_out:
            returned += 1
        while returned > first and (
            usable_from(rows[(returned - 1) * c.ROW + c.TAKEN], backward) > set_out
        ):
            returned -= 1
        back = rows[(returned - 1) * c.ROW + c.ELEMENT] if returned > first else -1
        counts[to + c.PEAK] = max(counts[to + c.PEAK], rows[at + c.ELEMENT] - back)
    return held, dequeued


@partial(MachineCode, uses=(c, r, channel_rule))
def count_waits(
    waits: Counters,
    ways: Counters,
    counts: Counters,
    waited: Counters,
    under_way: Counters,
    causes: int,
    full: int,
    cut: int,
) -> tuple[int, int]:
    """Add the waits that ended up to ``cut``, and note open ones in ``under_way``, by unit.

    ``full`` is the cause whose last part was for a credit on its way back.

    Returns:
        The number of waits that had ended, and that had begun.
    """
    over = begun = 0
    for number in range(waits.size // c.WAIT):
        at = number * c.WAIT
        unit, cause, ch = waits[at + c.UNIT], waits[at + c.CAUSE], waits[at + c.ON]
        cycles = waits[at + c.CYCLES]
        if waits[at + c.END] > cut:
            if waits[at + c.END] - cycles <= cut:
                begun += 1
                under_way[unit] = number
            continue
        over += 1
        waited[unit * causes + cause] += cycles
        if ch < 0:
            continue
        to = ch * c.COUNTS
        if cause == full:
            credit = credit_part(cycles, ways[ch * c.WAY + c.BACKWARD])
            counts[to + c.FULL] += cycles - credit
            counts[to + c.CREDIT] += credit
        else:
            counts[to + c.EMPTY] += cycles
    return over, begun
