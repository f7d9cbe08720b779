"""Channels in the compiled loop, including those over shared links."""

from __future__ import annotations

from fabric.timing.compiled import columns as c
from fabric.timing.engine.channel_rule import (
    credit_part,
    next_from,
    set_out_at,
    shown_from,
    spent_at,
    usable_from,
    visible_from,
)
from fabric.timing.engine.tables import Counters
from fabric.timing.network.fair_share import LinkWorld, depart


def wake(other: int, stages: Counters, ready: Counters, control: Counters) -> None:
    """Make stage ``other`` ready."""
    row = other * c.STAGE_COLUMNS
    if stages[row + c.STATUS] != c.DRAINING:
        stages[row + c.STATUS] = c.READY
    stages[row + c.WAIT] = c.OUTSIDE
    ready[(control[c.READY_HEAD] + control[c.READY_COUNT]) & (ready.size - 1)] = other
    control[c.READY_COUNT] += 1


def wake_reader(
    ch: int, channels: Counters, stages: Counters, ready: Counters, control: Counters
) -> None:
    """Wake the reader of a channel, if it waits for it."""
    other = channels[ch * c.CHANNEL_COLUMNS + c.CONSUMER]
    if other < 0:
        control[c.TOUCHED] = 1
        return
    row = other * c.STAGE_COLUMNS
    status = stages[row + c.STATUS]
    waits = stages[row + c.WAIT]
    if (status == c.DRAINING and waits >= 0) or (status == c.NO_ELEMENT and waits == ch):
        wake(other, stages, ready, control)


def wake_writer(
    ch: int, channels: Counters, stages: Counters, ready: Counters, control: Counters
) -> None:
    """Wake the writer of a channel, if it waits for a credit."""
    other = channels[ch * c.CHANNEL_COLUMNS + c.PRODUCER]
    if other < 0:
        control[c.TOUCHED] = 1
        return
    row = other * c.STAGE_COLUMNS
    if stages[row + c.STATUS] == c.NO_CREDIT and stages[row + c.WAIT] == ch:
        wake(other, stages, ready, control)


def slot_of(ch: int, number: int, channels: Counters) -> int:
    """Return the slot of element ``number`` of a channel."""
    row = ch * c.CHANNEL_COLUMNS
    slot: int = (channels[row + c.BASE] + (number & channels[row + c.MASK])) * c.SLOT_COLUMNS
    return slot


def head(ch: int, channels: Counters) -> int:
    """Return the slot of the oldest element of a channel."""
    return slot_of(ch, channels[ch * c.CHANNEL_COLUMNS + c.TAKEN], channels)


def head_shown(ch: int, channels: Counters, slots: Counters) -> int:
    """Return the first cycle that shows the oldest element of a channel."""
    visible = slots[head(ch, channels) + c.VISIBLE]
    return shown_from(visible, channels[ch * c.CHANNEL_COLUMNS + c.NEXT_TAKE])


def see_end(ch: int, now: int, channels: Counters) -> int:
    """See the end of a channel, which has arrived; return the clock."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.ENDED] == 0:
        channels[row + c.ENDED] = 1
        waited = channels[row + c.CLOSED] - now
        if waited > 0:
            channels[row + c.EMPTY] += waited
            now += waited
    return now


def take(ch: int, now: int, channels: Counters, slots: Counters) -> None:
    """Dequeue the oldest element of a channel at clock ``now``."""
    row = ch * c.CHANNEL_COLUMNS
    slot = head(ch, channels)
    # The slot that was used so many elements before is needed again, or one more is.
    before = channels[row + c.TAKEN] - channels[row + c.PEAK]
    if before >= 0:
        at = slot_of(ch, before, channels)
        set_out = set_out_at(slots[slot + c.VISIBLE], channels[row + c.FORWARD])
        if channels[row + c.FLOW] >= 0:
            set_out = slots[slot + c.SET_OUT]
        if slots[at + c.USABLE] > set_out:
            channels[row + c.PEAK] += 1
    usable = usable_from(now, channels[row + c.BACKWARD])
    slots[slot + c.USABLE] = usable
    channels[row + c.LAST_CREDIT] = usable
    channels[row + c.NEXT_TAKE] = next_from(now, channels[row + c.INTERVAL])
    channels[row + c.TAKEN] += 1


def goes_on(ch: int, channels: Counters) -> bool:
    """Whether more elements may arrive in a channel."""
    row = ch * c.CHANNEL_COLUMNS
    return bool(channels[row + c.CLOSED] < 0 or channels[row + c.SENT] > channels[row + c.ARRIVED])


def has_credit(ch: int, channels: Counters) -> bool:
    """Whether the writer of a channel has a credit, usable now or later."""
    row = ch * c.CHANNEL_COLUMNS
    used = channels[row + c.SENT] + channels[row + c.RESERVED] - channels[row + c.TAKEN]
    return bool(used < channels[row + c.DEPTH])


def has_slot(ch: int, channels: Counters) -> bool:
    """Whether a slot is allocated for the credit; deep channels begin with few."""
    row = ch * c.CHANNEL_COLUMNS
    number = channels[row + c.SENT] + channels[row + c.RESERVED]
    size = channels[row + c.MASK] + 1
    return bool(number < size or size >= channels[row + c.DEPTH])


def spend(ch: int, now: int, channels: Counters, slots: Counters) -> int:
    """Spend a credit; return the clock, not before it is usable."""
    row = ch * c.CHANNEL_COLUMNS
    before = channels[row + c.SENT] + channels[row + c.RESERVED] - channels[row + c.DEPTH]
    usable = slots[slot_of(ch, before, channels) + c.USABLE] if before >= 0 else 0
    spent = spent_at(now, usable, channels[row + c.NEXT_SEND])
    returning = credit_part(spent - now, channels[row + c.BACKWARD])
    channels[row + c.FULL] += spent - now - returning
    channels[row + c.CREDIT] += returning
    return spent


def append(ch: int, visible: int, code: int, channels: Counters, slots: Counters) -> None:
    """Append an element to a channel."""
    row = ch * c.CHANNEL_COLUMNS
    slot = slot_of(ch, channels[row + c.SENT], channels)
    slots[slot + c.VISIBLE] = visible
    slots[slot + c.CODE] = code
    channels[row + c.SENT] += 1
    channels[row + c.ARRIVED] += 1
    if code & c.BARE:
        channels[row + c.BARE_SENT] += 1


def fits(ch: int, code: int, channels: Counters, dimensions: Counters, empties: Counters) -> bool:
    """Whether an element conforms to the shape that the program states."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.COUNTED] < 0:
        return True
    level = min(code & (c.BARE - 1), channels[row + c.RANK])
    is_bare = code & c.BARE
    empty = empties[code >> c.KIND_SHIFT] if is_bare else 0
    more = 0 if is_bare else 1
    row = channels[row + c.COUNTED] * c.DIMENSION_COLUMNS
    for dimension in range(level):
        size = dimensions[row + c.SIZE] + more
        more = 0
        if dimension >= empty or size:
            claimed = dimensions[row + c.CLAIMED]
            if claimed >= 0 and size != claimed:
                return False
            more = 1
        row += c.DIMENSION_COLUMNS
    return True


def count(ch: int, code: int, channels: Counters, dimensions: Counters, empties: Counters) -> None:
    """Count an element in the groups that it closes; see ``AssumedSink``."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.COUNTED] < 0:
        return
    level = min(code & (c.BARE - 1), channels[row + c.RANK])
    row = channels[row + c.COUNTED] * c.DIMENSION_COLUMNS
    empty = 0
    if code & c.BARE:
        empty = empties[code >> c.KIND_SHIFT]
    else:
        dimensions[row + c.SIZE] += 1
    for dimension in range(level):
        size = dimensions[row + c.SIZE]
        if dimension >= empty or size:
            dimensions[row + c.SIZE] = 0
            dimensions[row + c.GROUPS] += 1
            dimensions[row + c.LEAST] = min(dimensions[row + c.LEAST], size)
            dimensions[row + c.MOST] = max(dimensions[row + c.MOST], size)
            dimensions[row + c.DIMENSION_COLUMNS + c.SIZE] += 1
        row += c.DIMENSION_COLUMNS


def set_out(
    ch: int,
    now: int,
    requested: int,
    code: int,
    channels: Counters,
    slots: Counters,
    sizes: Counters,
    links: LinkWorld,
) -> None:
    """Send an element over links."""
    row = ch * c.CHANNEL_COLUMNS
    slot = slot_of(ch, channels[row + c.SENT], channels)
    slots[slot + c.VISIBLE] = requested
    slots[slot + c.CODE] = code
    slots[slot + c.SET_OUT] = now
    channels[row + c.SENT] += 1
    if code & c.BARE:
        channels[row + c.BARE_SENT] += 1
    size_bytes = sizes[code >> c.KIND_SHIFT]
    channels[row + c.CARRIED] += size_bytes
    depart(links, channels[row + c.FLOW], now, size_bytes)


def arrive(
    cycle: int,
    channels: Counters,
    slots: Counters,
    stages: Counters,
    ready: Counters,
    control: Counters,
    ends: Counters,
    links: LinkWorld,
) -> None:
    """Deliver elements that left the links at ``cycle``; ``Boundary`` delivers those of tasks."""
    control[c.ARRIVAL_CYCLE] = cycle
    for place in range(links.progress.arrivals):
        flow = links.arrived[place]
        elements = links.flows[flow].arrived
        if ends[flow] == ends[flow + 1]:
            control[c.TOUCHED] = 1
            continue
        links.flows[flow].arrived = 0
        for at in range(ends[flow], ends[flow + 1]):
            ch = ends[at]
            row = ch * c.CHANNEL_COLUMNS
            for _ in range(elements):
                slot = slot_of(ch, channels[row + c.ARRIVED], channels)
                requested = slots[slot + c.VISIBLE]
                forward = channels[row + c.FORWARD]
                visible = visible_from(cycle, forward, requested)
                unhindered = visible_from(slots[slot + c.SET_OUT], forward, requested)
                slots[slot + c.VISIBLE] = visible
                slots[slot + c.LATE] = visible - unhindered
                channels[row + c.ARRIVED] += 1
            wake_reader(ch, channels, stages, ready, control)
