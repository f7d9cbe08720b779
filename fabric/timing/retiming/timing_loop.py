"""Compiled loops over a record: one times it, one follows its critical path backwards.

The record has each unit's events, and waits follow the rule of channels. While all units wait,
shared links advance, as in a run (``fabric.timing.network``). Each clock follows from an earlier
one: of the unit itself, of an element's sender, or of the unit that freed a slot.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.engine import channel_rule
from fabric.timing.engine.channel_rule import (
    closed_from,
    dropped_at,
    next_from,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)
from fabric.timing.engine.machine_code import Counters, MachineCode
from fabric.timing.network import carrying
from fabric.timing.network import columns as n
from fabric.timing.network.carrying import carry_on, depart, next_cycle
from fabric.timing.retiming import events as e


@partial(MachineCode, uses=(e, channel_rule, n, carrying))
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
    sizes: Counters,
    ends: Counters,
    flows: Counters,
    waiting: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    live: Counters,
    arrived: Counters,
    marked: Counters,
    touched: Counters,
    differing: Counters,
    notes: Counters,
    count: int,
    limit: int,
) -> tuple[int, int]:
    """Run every unit until all have ended or wait, or a clock passes ``limit``.

    ``outputs`` and ``inputs`` list the channels of unit u from ``first_output[u]`` and
    ``first_input[u]`` on. ``issued``, ``visible`` and ``usable`` are stamps by slot, ``clocks`` by
    event, ``sizes`` bytes by slot. ``ready`` is a stack of ``count`` units. From ``flows`` on,
    arrays are those of ``fabric.timing.network.carrying``.

    Returns:
        How many units have not ended, and the event at which ``limit`` was passed, or NONE.
    """
    going = count
    while True:
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
                    number = channels[at + e.TAKEN]
                    if number >= channels[at + e.COME]:
                        waits = ch
                        break
                    element = channels[at + e.BASE] + number
                    seen = shown_from(visible[element], channels[at + e.NEXT_TAKE])
                    now = max(now, seen + amount) if kind == e.IDLE else max(now + amount, seen)
                    if kind in (e.TAKE, e.HEAR):
                        dequeued = seen if kind == e.HEAR else now
                        usable[element] = usable_from(dequeued, channels[at + e.BACKWARD])
                        channels[at + e.TAKEN] = number + 1
                        channels[at + e.NEXT_TAKE] = next_from(dequeued, channels[at + e.INTERVAL])
                        other = channels[at + e.PRODUCER]
                        count = woken(other, ch, units, ready, count)
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
                        element = channels[at + e.BASE] + channels[at + e.SENT]
                        channels[at + e.SENT] += 1
                        asked = units[row + e.REQUESTED]
                        units[row + e.REQUESTED] = e.NONE
                        if channels[at + e.FLOW] >= 0:
                            visible[element] = asked
                            flow = channels[at + e.FLOW]
                            depart(flow, now, sizes[element], flows, waiting, live, notes)
                        else:
                            seen = visible_from(now, channels[at + e.FORWARD], asked)
                            come(ch, seen, channels, visible, usable)
                            other = channels[at + e.CONSUMER]
                            count = woken(other, ch, units, ready, count)
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
                        count = woken(other, out, units, ready, count)
                    for place in range(first_input[u], first_input[u + 1]):
                        into = inputs[place]
                        at = into * e.CHANNEL_COLUMNS
                        channels[at + e.DRAINED] = now
                        for number in range(channels[at + e.TAKEN], channels[at + e.COME]):
                            element = channels[at + e.BASE] + number
                            dropped = dropped_at(visible[element], now)
                            usable[element] = usable_from(dropped, channels[at + e.BACKWARD])
                        channels[at + e.TAKEN] = channels[at + e.COME]
                        other = channels[at + e.PRODUCER]
                        count = woken(other, into, units, ready, count)
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
                    return going, pc
                pc += 1
            units[row + e.NOW] = now
            units[row + e.PC] = pc
            units[row + e.AWAITS] = waits
            if waits < 0:
                going -= 1
        if next_cycle(notes) >= n.NEVER:
            return going, e.NONE
        cycle = carry_on(
            flows,
            waiting,
            taken,
            links,
            members,
            live,
            arrived,
            marked,
            touched,
            differing,
            notes,
        )
        count = arrive(
            cycle, units, channels, visible, usable, ready, count, ends, flows, arrived, notes
        )


def woken(unit: int, ch: int, units: Counters, ready: Counters, count: int) -> int:
    """Make a unit ready if it waits for a channel; return the number of ready units."""
    if units[unit * e.UNIT_COLUMNS + e.AWAITS] == ch:
        units[unit * e.UNIT_COLUMNS + e.AWAITS] = e.NONE
        ready[count] = unit
        count += 1
    return count


def come(ch: int, seen: int, channels: Counters, visible: Counters, usable: Counters) -> None:
    """Make the next element of a channel visible; an ended reader discards it."""
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
    """Deliver elements that left the links at ``cycle``; return the number of ready units."""
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
    """Follow the critical path from event ``pc`` of ``unit`` back to the first cycle.

    ``put`` and ``taken`` are the events that sent and dequeued each element, or NONE; ``finish``
    the last event of each unit. ``blamed`` is set to 1 for channels whose slots were waited for.

    Returns:
        The number of events on the path, and of slots waited for.
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
