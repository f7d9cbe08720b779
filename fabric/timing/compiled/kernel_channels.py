"""Arrivals in the compiled loop: on channels, over shared links, and from the memory."""

from __future__ import annotations

from fabric.timing.compiled import world as c
from fabric.timing.compiled.world import ChannelRow, Slot, StageRow, World
from fabric.timing.engine.channel_rule import (
    closed_from,
    credit_part,
    dropped_at,
    links_part,
    next_from,
    seen_at,
    set_out_at,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)
from fabric.timing.engine.log import BURST, CROSS, DROP, END, LINKS
from fabric.timing.memories.flat import NEVER
from fabric.timing.network.fair_share import depart, has_room


def write(
    w: World, unit: int, operation: int, ch: int, amount: int, stop: int, cycle: int, waited: int
) -> None:
    """Write a row of the log, if the run has one."""
    if w.log.size > 0:
        row = w.log[w.control.entries]
        row.unit = unit
        row.operation = operation
        row.channel = ch
        row.amount = amount
        row.stop = stop
        row.cycle = cycle
        row.waited = waited
        w.control.entries += 1


def lacks(w: World, rows: int) -> bool:
    """Whether there is a log without room for ``rows``."""
    return 0 < w.log.size < w.control.entries + rows


def is_full(w: World) -> bool:
    return lacks(w, c.STEP_ENTRIES)


def wake(w: World, number: int) -> None:
    """Make a stage ready to run; a stage whose operator has ended stays in DRAINING."""
    stage, control = w.stages[number], w.control
    if stage.status != c.DRAINING:
        stage.status = c.READY
    stage.wait = c.OUTSIDE
    w.ready[(control.ready_head + control.ready_count) & (w.ready.size - 1)] = number
    control.ready_count += 1


def wake_reader(w: World, ch: int) -> None:
    number = w.channels[ch].consumer
    if number < 0:
        w.control.touched = 1
        return
    stage = w.stages[number]
    waits = stage.wait
    if (stage.status == c.DRAINING and waits >= 0) or (
        stage.status == c.NO_ELEMENT and waits == ch
    ):
        wake(w, number)


def wake_writer(w: World, ch: int) -> None:
    number = w.channels[ch].producer
    if number < 0:
        w.control.touched = 1
        return
    stage = w.stages[number]
    if stage.status == c.NO_CREDIT and stage.wait == ch:
        wake(w, number)


def slot_of(w: World, channel: ChannelRow, number: int) -> Slot:
    return w.slots[channel.base + (number & channel.mask)]


def head_shown(w: World, channel: ChannelRow) -> int:
    """Return the first cycle that shows the oldest element."""
    return shown_from(slot_of(w, channel, channel.taken).visible, channel.next_take)


def is_open(channel: ChannelRow) -> bool:
    """Whether more elements may arrive."""
    return channel.closed < 0 or channel.sent > channel.arrived


def look(w: World, channel: ChannelRow) -> tuple[int, int]:
    """Return the status of a stage that waits for the next element, and its code."""
    if channel.arrived > channel.taken:
        return c.READY, slot_of(w, channel, channel.taken).code
    return (c.NO_ELEMENT if is_open(channel) else c.READY), c.ENDED_CODE


def see(w: World, stage: StageRow, channel: ChannelRow, now: int) -> int:
    """See the next element, which has arrived; return the clock."""
    next_look = 0 if channel.seen > 0 else stage.next_look
    shown = seen_at(now, head_shown(w, channel), next_look)
    if channel.flow >= 0:
        slot = slot_of(w, channel, channel.taken)
        links = links_part(now, shown, slot.visible, slot.late)
        channel.links += links
        if links > 0:
            write(w, stage.unit, LINKS, channel.number, links, 0, shown, 0)
    channel.empty += shown - now
    return shown


def see_end(w: World, stage: StageRow, channel: ChannelRow, now: int) -> int:
    """See the end, which has arrived; return the clock."""
    if channel.ended > 0:
        return now
    channel.ended = 1
    closed = shown_from(channel.closed, channel.next_take) if channel.end else channel.closed
    shown = seen_at(now, closed, stage.next_look)
    channel.empty += shown - now
    write(w, stage.unit, END, channel.number, 0, 0, shown, shown - now)
    return shown


def take(w: World, channel: ChannelRow, now: int) -> None:
    slot = slot_of(w, channel, channel.taken)
    # The element reused the slot of the element that came ``peak`` elements earlier, if the credit
    # of this slot was usable in time. Otherwise it took one more slot.
    before = channel.taken - channel.peak
    if before >= 0:
        set_out = set_out_at(slot.visible, channel.forward)
        if channel.flow >= 0:
            set_out = slot.set_out
        if slot_of(w, channel, before).usable > set_out:
            channel.peak += 1
    slot.usable = channel.last_credit = usable_from(now, channel.backward)
    channel.next_take = next_from(now, channel.interval)
    channel.taken += 1
    channel.seen = 0


def drop(w: World, unit: int, channel: ChannelRow, cycle: int) -> None:
    """Discard the oldest element of a channel whose reader ended at ``cycle``."""
    slot = slot_of(w, channel, channel.taken)
    dropped = dropped_at(slot.visible, cycle)
    slot.usable = usable_from(dropped, channel.backward)
    write(w, unit, DROP, channel.number, 0, 0, dropped, 0)
    channel.taken += 1
    if slot.code & c.BARE == 0:
        channel.left_over += 1


def send(  # noqa: PLR0911 - one rule, in the order in which it is followed
    w: World, channel: ChannelRow, what: int, code: int, now: int, pace: int, requested: int
) -> tuple[int, int, int]:
    """Reserve, put or send; return the clock, the status, and the reason to return or AT_REST."""
    # Tasks also compare with the stated shape before they wait for a credit.
    if what != c.RESERVE and not fits(w, channel, code):
        return now, c.READY, c.UNFIT
    if what != c.PUT:
        used = channel.sent + channel.reserved
        if used - channel.taken >= channel.depth:
            return now, c.NO_CREDIT, c.AT_REST
        if now >= pace:
            return now, c.PACED, c.AT_REST
        # Deep channels begin with few slots.
        if channel.mask < used and channel.mask + 1 < channel.depth:
            return now, c.READY, c.SLOTS_FULL
    if what != c.RESERVE and channel.flow >= 0 and not has_room(w.links, channel.flow):
        return now, c.READY, c.QUEUE_FULL
    if what != c.PUT:
        now = spend(w, channel, now)
    if what == c.RESERVE:
        channel.reserved += 1
        return now, c.READY, c.AT_REST
    if what == c.PUT:
        channel.reserved -= 1
    append(w, channel, code, now, requested)
    count(w, channel, code)
    return now, c.READY, c.AT_REST


def spend(w: World, channel: ChannelRow, now: int) -> int:
    """Spend a credit; return the clock after the wait for it."""
    before = channel.sent + channel.reserved - channel.depth
    usable = slot_of(w, channel, before).usable if before >= 0 else 0
    spent = spent_at(now, usable, channel.next_send)
    returning = credit_part(spent - now, channel.backward)
    channel.full += spent - now - returning
    channel.credit += returning
    if spent > now:
        w.stages[channel.producer].next_look = next_from(spent, channel.wait)
    return spent


def append(w: World, channel: ChannelRow, code: int, now: int, requested: int) -> None:
    channel.next_send = next_from(now, channel.interval)
    if channel.end:
        w.stages[channel.producer].next_end = channel.next_send
    slot = slot_of(w, channel, channel.sent)
    slot.code = code
    channel.sent += 1
    if code & c.BARE:
        channel.bare_sent += 1
    if channel.flow < 0:
        slot.visible = visible_from(now, channel.forward, requested)
        channel.arrived += 1
        return
    slot.visible = requested
    slot.set_out = now
    size_bytes = w.kinds[code >> c.KIND_SHIFT].size_bytes
    channel.carried += size_bytes
    depart(w.links, channel.flow, now, size_bytes)


def fits(w: World, channel: ChannelRow, code: int) -> bool:
    """Whether an element conforms to the shape that the program states."""
    if channel.counted < 0:
        return True
    level = min(code & (c.BARE - 1), channel.rank)
    is_bare = code & c.BARE
    empty = w.kinds[code >> c.KIND_SHIFT].empty if is_bare else 0
    more = 0 if is_bare else 1
    for number in range(level):
        dimension = w.dimensions[channel.counted + number]
        size = dimension.size + more
        more = 0
        if number >= empty or size:
            if dimension.claimed >= 0 and size != dimension.claimed:
                return False
            more = 1
    return True


def count(w: World, channel: ChannelRow, code: int) -> None:
    """Count an element in the groups that it closes; see ``AssumedSink``."""
    if channel.counted < 0:
        return
    level = min(code & (c.BARE - 1), channel.rank)
    empty = 0
    if code & c.BARE:
        empty = w.kinds[code >> c.KIND_SHIFT].empty
    else:
        w.dimensions[channel.counted].size += 1
    for number in range(level):
        dimension = w.dimensions[channel.counted + number]
        size = dimension.size
        if number >= empty or size:
            dimension.size = 0
            dimension.groups += 1
            dimension.least = min(dimension.least, size)
            dimension.most = max(dimension.most, size)
            w.dimensions[channel.counted + number + 1].size += 1


def close(stage: StageRow, channel: ChannelRow, now: int) -> None:
    """End a channel at clock ``now``, or later with registers."""
    ended = max(now, stage.next_end)
    channel.closed = closed_from(ended, channel.forward, channel.interval)


def arrive(w: World) -> bool:
    """Deliver elements that have left the links; False if the log is full before the last one.

    ``Boundary`` delivers the elements of tasks.
    """
    cycle = w.control.arrival_cycle
    for place in range(w.links.progress.arrivals):
        number = w.links.arrived[place]
        first, end = w.ends[number], w.ends[number + 1]
        if first == end:
            w.control.touched = 1
            continue
        flow = w.links.flows[number]
        while flow.arrived > 0:
            if lacks(w, end - first):
                return False
            for at in range(first, end):
                show(w, w.channels[w.ends[at]], cycle)
                wake_reader(w, w.ends[at])
            flow.arrived -= 1
    w.control.arrives = 0
    return True


def show(w: World, channel: ChannelRow, cycle: int) -> None:
    """Deliver the next element of a channel, which left the links at ``cycle``."""
    slot = slot_of(w, channel, channel.arrived)
    requested = slot.visible
    slot.visible = visible_from(cycle, channel.forward, requested)
    slot.late = slot.visible - visible_from(slot.set_out, channel.forward, requested)
    unit = w.stages[channel.producer].unit
    write(w, unit, CROSS, channel.number, slot.visible, 0, cycle, 0)
    channel.arrived += 1


def answer(w: World) -> None:
    """Wake stages whose bursts are complete; ``Region`` wakes tasks."""
    memory, tasks = w.memory, 0
    memory.progress.now_cycle = memory.progress.seen_cycle
    for place in range(memory.progress.finished):
        client = memory.clients[memory.done[place]]
        if client.stage < 0:
            memory.done[tasks] = memory.done[place]
            tasks += 1
            continue
        stage = w.stages[client.stage]
        waited = client.ready + 1 - stage.now
        stage.now += waited
        stage.off_chip_cycles += waited
        write(w, stage.unit, BURST, c.OUTSIDE, client.asked, 0, stage.now, waited)
        wake(w, client.stage)
    w.control.answered = tasks
    memory.progress.finished = 0
    memory.progress.seen_cycle = NEVER
