"""The compiled loop that goes back over why a unit's clock is where it is: the critical path.

Every clock of a record that was timed follows from one before: of the unit itself, of who sent an
element, or of who gave a slot back.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.engine import channel_rule
from fabric.timing.engine.channel_rule import dropped_at, usable_from, visible_from
from fabric.timing.engine.machine_code import Counters, MachineCode
from fabric.timing.retiming import events as e

__all__ = ["blame"]


@partial(MachineCode, uses=(e, channel_rule))
def blame(  # noqa: C901, PLR0912, PLR0915 - one switch
    events: Counters,
    first: Counters,
    channels: Counters,
    element: Counters,
    put: Counters,
    taken: Counters,
    finish: Counters,
    visible: Counters,
    clocks: Counters,
    blamed: Counters,
    pc: int,
    unit: int,
) -> tuple[int, int]:
    """Go back from an event to the first cycle; note the channels whose slots were waited for.

    Args:
        events: as for ``kernel.retime``, as the other arrays that are not told of here.
        first: by unit, its first event.
        channels: see above.
        element: by event on a channel, the number of its element there.
        put: by element, the event that sent it.
        taken: by element, the event that dequeued it; NONE where nobody did.
        finish: by unit, the event at which it ended.
        visible: see above.
        clocks: see above.
        blamed: by channel, set to 1 where a slot was waited for.
        pc: the event.
        unit: whose it is.

    Returns:
        How many events it went over, and how many slots were waited for.
    """
    steps = 0
    slots = 0
    while pc >= first[unit]:
        steps += 1
        before = clocks[pc - 1] if pc > first[unit] else 0
        kind = events[2 * pc] & e.KIND
        ch = events[2 * pc] >> e.SHIFT
        amount = events[2 * pc + 1]
        at = ch * e.CHANNEL_COLUMNS
        if kind == e.UNTIL:
            if clocks[pc] == before:
                pc -= 1
                continue
            # To whoever sent the element that arrived.
            came = clocks[pc] - amount
            while events[2 * pc] & e.KIND != e.ARRIVAL:
                pc -= 1
            at = (events[2 * pc] >> e.SHIFT) * e.CHANNEL_COLUMNS
            seen = channels[at + e.BASE] + events[2 * pc + 1]
            if came > visible[seen]:
                # The wires were busy with the one before, which the unit itself has taken.
                pc = taken[seen - 1]
                continue
        elif kind == e.IDLE:
            if clocks[pc] == before:
                pc -= 1
                continue
            seen = channels[at + e.BASE] + element[pc]
        elif kind > e.LAST_WORKED or kind == e.PUT or clocks[pc] == before + amount:
            pc -= 1
            continue
        elif kind == e.END:
            unit = channels[at + e.PRODUCER]
            pc = finish[unit]
            continue
        elif kind <= e.TAKE:
            seen = channels[at + e.BASE] + element[pc]
            if clocks[pc] > visible[seen]:
                pc -= 1
                continue
        else:
            if channels[at + e.INTERVAL]:
                usable = 0
                slot = channels[at + e.BASE] + element[pc] - channels[at + e.DEPTH]
                if element[pc] >= channels[at + e.DEPTH]:
                    done = finish[channels[at + e.CONSUMER]]
                    gone = dropped_at(visible[slot], clocks[done]) if taken[slot] < 0 else 0
                    dequeued = clocks[taken[slot]] if taken[slot] >= 0 else gone
                    usable = usable_from(dequeued, channels[at + e.BACKWARD])
                if clocks[pc] > usable:
                    # It waited for the wires, which it had used itself in the cycle before.
                    pc -= 1
                    continue
            # A slot: of the element that was there a depth before.
            blamed[ch] = 1
            slots += 1
            slot = channels[at + e.BASE] + element[pc] - channels[at + e.DEPTH]
            unit = channels[at + e.CONSUMER]
            pc = taken[slot]
            if pc >= 0:
                continue
            # Nobody dequeued it: it went when its reader had ended, or as soon as it came.
            pc = finish[unit]
            if visible[slot] <= clocks[pc]:
                continue
            seen = slot
        # Who sent an element is as late as it, or had asked for it to be late.
        unit = channels[at + e.PRODUCER]
        pc = put[seen]
        if visible_from(clocks[pc], channels[at + e.FORWARD], 0) < visible[seen]:
            while events[2 * pc] & e.KIND not in (e.LATE, e.AT):
                pc -= 1
            if events[2 * pc] & e.KIND == e.AT:
                return steps, slots
            pc -= events[2 * pc] >> e.SHIFT
    return steps, slots
