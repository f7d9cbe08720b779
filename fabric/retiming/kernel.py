"""The compiled loop that times a record again: units go on, one after the other, until they wait.

What each unit does is in the record, and how long it waits is the rule of channels.
"""

from __future__ import annotations

from functools import partial

from fabric.engine import channel_rule
from fabric.engine.channel_rule import (
    closed_from,
    dropped_at,
    next_from,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)
from fabric.engine.machine_code import Counters, MachineCode
from fabric.retiming import events as e

__all__ = ["retime"]


@partial(MachineCode, uses=(e, channel_rule))
def retime(  # noqa: C901, PLR0912, PLR0915 - one switch
    events: Counters,
    units: Counters,
    channels: Counters,
    outputs: Counters,
    first_output: Counters,
    inputs: Counters,
    first_input: Counters,
    issued: Counters,
    visible: Counters,
    usable: Counters,
    clocks: Counters,
    ready: Counters,
    count: int,
    limit: int,
) -> tuple[int, int]:
    """Let every unit go on until all have ended or wait, or a clock passes ``limit``.

    Args:
        events: of all units, one after the other; see ``events``.
        units: where each is; see ``events``.
        channels: likewise.
        outputs: channels that each unit sends on.
        first_output: by unit, where they begin; and where the last one's end.
        inputs: channels that each unit receives from.
        first_input: likewise.
        issued: by slot, when it was taken; those of a channel begin at its BASE.
        visible: by slot, when its element is visible.
        usable: by slot, when its credit is usable again.
        clocks: filled with the unit's clock after each event.
        ready: a stack of units that can go on; at first all that there are.
        count: how many.
        limit: the last cycle that is of interest.

    Returns:
        How many units have not ended, and the event at which ``limit`` was passed, or NONE.
    """
    live = count
    while count > 0:
        count -= 1
        u = ready[count]
        row = u * e.UNIT_COLUMNS
        now = units[row + e.NOW]
        pc = units[row + e.PC]
        last = units[row + e.LAST]
        waits = e.NONE
        while pc < last:
            code = events[2 * pc]
            amount = events[2 * pc + 1]
            kind = code & e.KIND
            ch = code >> e.SHIFT
            at = ch * e.CHANNEL_COLUMNS
            if kind <= e.TAKE or kind in (e.IDLE, e.HEAR):
                taken = channels[at + e.TAKEN]
                if taken >= channels[at + e.SENT]:
                    waits = ch
                    break
                element = channels[at + e.BASE] + taken
                seen = shown_from(visible[element], channels[at + e.NEXT_TAKE])
                now = max(now, seen + amount) if kind == e.IDLE else max(now + amount, seen)
                if kind in (e.TAKE, e.HEAR):
                    dequeued = seen if kind == e.HEAR else now
                    usable[element] = usable_from(dequeued, channels[at + e.BACKWARD])
                    channels[at + e.TAKEN] = taken + 1
                    channels[at + e.NEXT_TAKE] = next_from(dequeued, channels[at + e.INTERVAL])
                    other = channels[at + e.PRODUCER]
                    if units[other * e.UNIT_COLUMNS + e.AWAITS] == ch:
                        units[other * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
                        ready[count] = other
                        count += 1
            elif kind <= e.PUT:
                if kind != e.PUT:
                    number = channels[at + e.SENT] + channels[at + e.RESERVED]
                    before = number - channels[at + e.DEPTH]
                    base = channels[at + e.BASE]
                    if before >= channels[at + e.TAKEN]:
                        waits = ch
                        break
                    credit = usable[base + before] if before >= 0 else 0
                    now = spent_at(now + amount, credit, channels[at + e.NEXT_SEND])
                    issued[base + number] = now
                else:
                    now += amount
                    channels[at + e.RESERVED] -= 1
                if kind == e.RESERVE:
                    channels[at + e.RESERVED] += 1
                else:
                    channels[at + e.NEXT_SEND] = next_from(now, channels[at + e.INTERVAL])
                    sent = channels[at + e.SENT]
                    element = channels[at + e.BASE] + sent
                    seen = visible_from(now, channels[at + e.FORWARD], units[row + e.REQUESTED])
                    units[row + e.REQUESTED] = e.NONE
                    visible[element] = seen
                    channels[at + e.SENT] = sent + 1
                    if channels[at + e.DRAINED] >= 0:
                        dropped = dropped_at(seen, channels[at + e.DRAINED])
                        usable[element] = usable_from(dropped, channels[at + e.BACKWARD])
                        channels[at + e.TAKEN] = sent + 1
                    other = channels[at + e.CONSUMER]
                    if units[other * e.UNIT_COLUMNS + e.AWAITS] == ch:
                        units[other * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
                        ready[count] = other
                        count += 1
            elif kind == e.END:
                if channels[at + e.CLOSED] < 0:
                    waits = ch
                    break
                now = max(now + amount, channels[at + e.CLOSED])
            elif kind == e.FINISH:
                now += amount
                for place in range(first_output[u], first_output[u + 1]):
                    out = outputs[place]
                    at = out * e.CHANNEL_COLUMNS
                    channels[at + e.CLOSED] = closed_from(
                        now, channels[at + e.FORWARD], channels[at + e.INTERVAL]
                    )
                    other = channels[out * e.CHANNEL_COLUMNS + e.CONSUMER]
                    if units[other * e.UNIT_COLUMNS + e.AWAITS] == out:
                        units[other * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
                        ready[count] = other
                        count += 1
                for place in range(first_input[u], first_input[u + 1]):
                    into = inputs[place]
                    at = into * e.CHANNEL_COLUMNS
                    channels[at + e.DRAINED] = now
                    for number in range(channels[at + e.TAKEN], channels[at + e.SENT]):
                        element = channels[at + e.BASE] + number
                        dropped = dropped_at(visible[element], now)
                        usable[element] = usable_from(dropped, channels[at + e.BACKWARD])
                    channels[at + e.TAKEN] = channels[at + e.SENT]
                    other = channels[at + e.PRODUCER]
                    if units[other * e.UNIT_COLUMNS + e.AWAITS] == into:
                        units[other * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
                        ready[count] = other
                        count += 1
            elif kind <= e.WAIT:
                now += amount
            elif kind == e.LATE:
                units[row + e.REQUESTED] = clocks[pc - ch] + amount
            elif kind == e.AT:
                units[row + e.REQUESTED] = amount
            elif kind == e.ARRIVAL:
                came = visible[channels[at + e.BASE] + amount]
                units[row + e.ARRIVED] = shown_from(came, channels[at + e.NEXT_TAKE])
            elif kind == e.UNTIL:
                now = max(now, units[row + e.ARRIVED] + amount)
            clocks[pc] = now
            if now > limit:
                units[row + e.NOW] = now
                units[row + e.PC] = pc
                return live, pc
            pc += 1
        units[row + e.NOW] = now
        units[row + e.PC] = pc
        units[row + e.AWAITS] = waits
        if waits < 0:
            live -= 1
    return live, e.NONE
