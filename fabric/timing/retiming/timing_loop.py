"""Compiled loops over a record: one times it, one follows its critical path backwards.

The record has each unit's events, and waits follow the rule of channels. While all units wait,
shared links advance, as in a run (``fabric.timing.network``). Each clock follows from an earlier
one: of the unit itself, of an element's sender, or of the unit that freed a slot.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from fabric.timing.engine import channel_rule
from fabric.timing.engine import log as e
from fabric.timing.engine.channel_rule import (
    closed_from,
    dropped_at,
    next_from,
    seen_at,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table
from fabric.timing.network import fair_share
from fabric.timing.network.fair_share import LinkWorld, advance_links, depart, next_cycle


class Event(Row):
    """An event; see ``Record.events``."""

    code: int
    amount: int


class TimedUnit(Row):
    """A unit and its next event ``pc``."""

    now: int
    pc: int
    awaits: int  # The channel, or NONE
    arrived: int  # Cycle of the latest ARRIVAL
    requested: int  # Cycle requested for the next element, or NONE
    last: int
    next_look: int
    next_end: int


class TimedChannel(Row):
    """A channel. Its slots begin at ``base``, one for each element."""

    sent: int
    reserved: int
    taken: int
    closed: int
    drained: int  # Cycle in which the consumer ended, or NONE
    depth: int
    forward: int
    backward: int
    base: int
    producer: int
    consumer: int
    interval: int
    wait: int
    end: int
    next_send: int
    next_take: int
    seen: int  # 1 if the consumer has looked at the next element
    come: int  # Elements with a known visible cycle
    flow: int  # The flow on shared links, or NONE


class Timing(NamedTuple):
    """A record while it is timed."""

    events: Table[Event]
    units: Table[TimedUnit]
    channels: Table[TimedChannel]
    outputs: Counters  # channels that units send on, unit by unit
    first_output: Counters  # by unit, its first output; the last entry is the number of outputs
    inputs: Counters  # channels that units receive from, unit by unit
    first_input: Counters
    issued: Counters  # by slot; see ``Retimer``
    visible: Counters
    usable: Counters
    clocks: Counters  # by event
    ready: Counters  # a stack of units
    sizes: Counters  # by slot, bytes
    ends: Counters  # see ``compiled.world.World.ends``
    links: LinkWorld


class TimedRecord(NamedTuple):
    """A record after it was timed, to follow its critical path."""

    timing: Timing
    first: Counters  # by unit, its first event
    element: Counters  # by event, the number of the element
    put: Counters  # by slot, the event that sent the element, or NONE
    taken: Counters  # by slot, the event that dequeued it, or NONE
    finish: Counters  # by unit, its last event
    blamed: Counters  # by channel, 1 if a slot was waited for on the critical path


@partial(MachineCode, uses=(e, channel_rule, fair_share))
def retime(  # noqa: C901, PLR0912, PLR0915 - one switch
    w: Timing, count: int, limit: int
) -> tuple[int, int]:
    """Run every unit until all have ended or wait, or a clock passes ``limit``.

    ``ready`` holds ``count`` units.

    Returns:
        The number of units that have not ended, and the event that passed ``limit``, or NONE.
    """
    live = count
    while True:
        while count > 0:
            count -= 1
            number = w.ready[count]
            unit = w.units[number]
            now = unit.now
            pc = unit.pc
            waits = e.NONE
            while pc < unit.last:
                code = w.events[pc].code
                amount = w.events[pc].amount
                kind = code & e.KIND
                ch = code >> e.SHIFT
                channel = w.channels[ch]
                if kind <= e.TAKE or kind in (e.IDLE, e.HEAR):
                    if channel.taken >= channel.come:
                        waits = ch
                        break
                    slot = channel.base + channel.taken
                    seen = shown_from(w.visible[slot], channel.next_take)
                    if kind == e.IDLE:
                        now = seen_at(now, seen + amount, unit.next_look)
                    elif kind == e.HEAR:
                        now = max(now + amount, seen)
                    else:
                        next_look = 0 if channel.seen > 0 else unit.next_look
                        now = seen_at(now + amount, seen, next_look)
                        channel.seen = 1
                    if kind in (e.TAKE, e.HEAR):
                        dequeued = seen if kind == e.HEAR else now
                        w.usable[slot] = usable_from(dequeued, channel.backward)
                        channel.taken += 1
                        channel.seen = 0
                        channel.next_take = next_from(dequeued, channel.interval)
                        count = wake(w, channel.producer, ch, count)
                elif kind <= e.PUT:
                    if kind != e.PUT:
                        element = channel.sent + channel.reserved
                        before = element - channel.depth
                        if before >= channel.taken:
                            waits = ch
                            break
                        credit = w.usable[channel.base + before] if before >= 0 else 0
                        spent = spent_at(now + amount, credit, channel.next_send)
                        if spent > now + amount:
                            unit.next_look = next_from(spent, channel.wait)
                        now = spent
                        w.issued[channel.base + element] = now
                    else:
                        now += amount
                        channel.reserved -= 1
                    if kind == e.RESERVE:
                        channel.reserved += 1
                    else:
                        channel.next_send = next_from(now, channel.interval)
                        if channel.end:
                            unit.next_end = channel.next_send
                        slot = channel.base + channel.sent
                        channel.sent += 1
                        requested = unit.requested
                        unit.requested = e.NONE
                        if channel.flow >= 0:
                            w.visible[slot] = requested
                            depart(w.links, channel.flow, now, w.sizes[slot])
                        else:
                            show(w, channel, visible_from(now, channel.forward, requested))
                            count = wake(w, channel.consumer, ch, count)
                elif kind == e.END:
                    if channel.closed < 0:
                        waits = ch
                        break
                    closed = channel.closed
                    if channel.end:
                        closed = shown_from(closed, channel.next_take)
                    now = seen_at(now + amount, closed, unit.next_look)
                elif kind == e.FINISH:
                    now += amount
                    count = finish(w, number, now, count)
                elif kind <= e.BURST:
                    now += amount
                elif kind == e.LATE:
                    unit.requested = w.clocks[pc - ch] + amount
                elif kind == e.AT:
                    unit.requested = amount
                elif kind == e.ARRIVAL:
                    unit.arrived = shown_from(w.visible[channel.base + amount], channel.next_take)
                elif kind == e.UNTIL:
                    now = max(now, unit.arrived + amount)
                w.clocks[pc] = now
                if now > limit:
                    unit.now = now
                    unit.pc = pc
                    return live, pc
                pc += 1
            unit.now = now
            unit.pc = pc
            unit.awaits = waits
            if waits < 0:
                live -= 1
        if next_cycle(w.links) >= fair_share.NEVER:
            return live, e.NONE
        count = arrive(w, advance_links(w.links), count)


def wake(w: Timing, number: int, ch: int, count: int) -> int:
    """Make a unit ready if it waits for a channel; return the number of ready units."""
    unit = w.units[number]
    if unit.awaits == ch:
        unit.awaits = e.NONE
        w.ready[count] = number
        count += 1
    return count


def show(w: Timing, channel: TimedChannel, seen: int) -> None:
    """Make the next element of a channel visible; an ended reader discards it."""
    slot = channel.base + channel.come
    w.visible[slot] = seen
    channel.come += 1
    if channel.drained >= 0:
        w.usable[slot] = usable_from(dropped_at(seen, channel.drained), channel.backward)
        channel.taken = channel.come


def finish(w: Timing, unit: int, now: int, count: int) -> int:
    """Close the outputs of a unit, and drain its inputs; return the number of ready units."""
    for place in range(w.first_output[unit], w.first_output[unit + 1]):
        channel = w.channels[w.outputs[place]]
        ended = max(now, w.units[unit].next_end)
        channel.closed = closed_from(ended, channel.forward, channel.interval)
        count = wake(w, channel.consumer, w.outputs[place], count)
    for place in range(w.first_input[unit], w.first_input[unit + 1]):
        channel = w.channels[w.inputs[place]]
        channel.drained = now
        for slot in range(channel.base + channel.taken, channel.base + channel.come):
            w.usable[slot] = usable_from(dropped_at(w.visible[slot], now), channel.backward)
        channel.taken = channel.come
        count = wake(w, channel.producer, w.inputs[place], count)
    return count


def arrive(w: Timing, cycle: int, count: int) -> int:
    """Deliver elements that left the links at ``cycle``; return the number of ready units."""
    for place in range(w.links.progress.arrivals):
        number = w.links.arrived[place]
        flow = w.links.flows[number]
        elements = flow.arrived
        flow.arrived = 0
        for end in range(w.ends[number], w.ends[number + 1]):
            ch = w.ends[end]
            channel = w.channels[ch]
            for _ in range(elements):
                # In a damaged record, another channel of the flow may have sent more elements.
                if channel.come < channel.sent:
                    requested = w.visible[channel.base + channel.come]
                    show(w, channel, visible_from(cycle, channel.forward, requested))
            count = wake(w, channel.consumer, ch, count)
            count = wake(w, channel.producer, ch, count)
    return count


@partial(MachineCode, uses=(e, channel_rule))
def blame(  # noqa: C901, PLR0912, PLR0915 - one switch
    p: TimedRecord, pc: int, unit: int
) -> tuple[int, int]:
    """Follow the critical path from event ``pc`` of ``unit`` back to the first cycle.

    Returns:
        The number of events on the path, and of slots waited for.
    """
    w = p.timing
    steps = 0
    slots = 0
    while pc >= p.first[unit]:
        steps += 1
        before = w.clocks[pc - 1] if pc > p.first[unit] else 0
        kind = w.events[pc].code & e.KIND
        ch = w.events[pc].code >> e.SHIFT
        amount = w.events[pc].amount
        channel = w.channels[ch]
        if kind == e.UNTIL:
            if w.clocks[pc] == before:
                pc -= 1
                continue
            # Continue at the unit that sent the element.
            seen = w.clocks[pc] - amount
            while w.events[pc].code & e.KIND != e.ARRIVAL:
                pc -= 1
            channel = w.channels[w.events[pc].code >> e.SHIFT]
            slot = channel.base + w.events[pc].amount
            if seen > w.visible[slot]:
                # The interval after the previous dequeue delayed the element.
                pc = p.taken[slot - 1]
                continue
        elif kind == e.IDLE:
            if w.clocks[pc] == before:
                pc -= 1
                continue
            slot = channel.base + p.element[pc]
        elif kind > e.LAST_WORKED or kind == e.PUT or w.clocks[pc] == before + amount:
            pc -= 1
            continue
        elif kind == e.END:
            if w.clocks[pc] > channel.closed:
                # Registers delayed the end: the unit took or sent an element one cycle before.
                pc -= 1
                continue
            unit = channel.producer
            pc = p.finish[unit]
            continue
        elif kind <= e.TAKE:
            slot = channel.base + p.element[pc]
            if w.clocks[pc] > w.visible[slot]:
                pc -= 1
                continue
        else:
            # The slot was used ``depth`` elements before.
            slot = channel.base + p.element[pc] - channel.depth
            if channel.interval and w.clocks[pc] > credit(p, channel, p.element[pc]):
                # The interval of the channel delayed the send: the unit sent one cycle before.
                pc -= 1
                continue
            p.blamed[ch] = 1
            slots += 1
            unit = channel.consumer
            pc = p.taken[slot]
            if pc >= 0:
                continue
            # The element in the slot was discarded when its reader ended, or on arrival.
            pc = p.finish[unit]
            if w.visible[slot] <= w.clocks[pc]:
                continue
        # An element is late because its sender was late or requested a later cycle.
        unit = channel.producer
        pc = p.put[slot]
        if visible_from(w.clocks[pc], channel.forward, 0) < w.visible[slot]:
            while w.events[pc].code & e.KIND not in (e.LATE, e.AT):
                pc -= 1
            if w.events[pc].code & e.KIND == e.AT:
                return steps, slots
            pc -= w.events[pc].code >> e.SHIFT
    return steps, slots


def credit(p: TimedRecord, channel: TimedChannel, element: int) -> int:
    """Return when the credit for an element was usable; 0 for the first elements."""
    if element < channel.depth:
        return 0
    w = p.timing
    slot = channel.base + element - channel.depth
    taken = p.taken[slot]
    if taken >= 0:
        return usable_from(w.clocks[taken], channel.backward)
    ended = w.clocks[p.finish[channel.consumer]]
    return usable_from(dropped_at(w.visible[slot], ended), channel.backward)
