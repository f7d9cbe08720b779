"""How elements come to the channels of a record, over shared links too, and units go on then.

What the links do is in ``fabric.network``, for records as for runs.
"""

from __future__ import annotations

from fabric.engine.channel_rule import dropped_at, usable_from, visible_from
from fabric.engine.machine_code import Counters
from fabric.network import columns as n
from fabric.retiming import events as e

__all__ = ["arrive", "come", "woken"]


def woken(unit: int, ch: int, units: Counters, ready: Counters, count: int) -> int:
    """Let a unit go on if it waits for a channel; return how many are ready then."""
    if units[unit * e.UNIT_COLUMNS + e.AWAITS] == ch:
        units[unit * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
        ready[count] = unit
        count += 1
    return count


def come(ch: int, seen: int, channels: Counters, visible: Counters, usable: Counters) -> None:
    """Let the next element of a channel be visible from a cycle on.

    One whose reader has ended goes at once.
    """
    at = ch * e.CHANNEL_COLUMNS
    element = channels[at + e.BASE] + channels[at + e.COME]
    visible[element] = seen
    channels[at + e.COME] += 1
    if channels[at + e.DRAINED] >= 0:
        dropped = dropped_at(seen, channels[at + e.DRAINED])
        usable[element] = usable_from(dropped, channels[at + e.BACKWARD])
        channels[at + e.TAKEN] = channels[at + e.COME]


def arrive(
    cycle: int,
    units: Counters,
    channels: Counters,
    visible: Counters,
    usable: Counters,
    ready: Counters,
    count: int,
    ends: Counters,
    flows: Counters,
    arrived: Counters,
    notes: Counters,
) -> int:
    """Let units have what is through the links at ``cycle``; return how many are ready then."""
    for place in range(notes[n.ARRIVALS]):
        flow = arrived[place]
        elements = flows[flow * n.FLOW_COLUMNS + n.ARRIVED]
        flows[flow * n.FLOW_COLUMNS + n.ARRIVED] = 0
        for end in range(ends[flow], ends[flow + 1]):
            ch = ends[end]
            at = ch * e.CHANNEL_COLUMNS
            for _ in range(elements):
                # In a damaged record fewer may have been sent here than elsewhere.
                if channels[at + e.COME] < channels[at + e.SENT]:
                    asked = visible[channels[at + e.BASE] + channels[at + e.COME]]
                    seen = visible_from(cycle, channels[at + e.FORWARD], asked)
                    come(ch, seen, channels, visible, usable)
            for other in (channels[at + e.CONSUMER], channels[at + e.PRODUCER]):
                count = woken(other, ch, units, ready, count)
    return count
