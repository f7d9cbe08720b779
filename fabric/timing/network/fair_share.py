"""Advances transfers over shared links, compiled, one event at a time.

A flow has at most one transfer under way. Between two events every transfer has a constant rate,
its max-min fair share. All numbers are integers, so that cycles are equal on every machine.

When transfers begin or end, ``reshare`` updates the shares, beginning with changed links. Links
become full in the order of their rates, or of their numbers if the rates are equal. A link depends
only on earlier links. So links with a changed member are processed again, in that order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table

TICK_BITS: Final = 18
"""A cycle has 2 ** TICK_BITS ticks."""

TICKS: Final = 1 << TICK_BITS

PIECE_BITS: Final = 40
"""A byte has 2 ** PIECE_BITS pieces."""

MOST_BYTES: Final = 2**22
"""The largest transfer; larger elements are several transfers."""

UNCOUNTED_TICKS: Final = 3050
"""A transfer may end this many ticks (1 / 86 cycle) after a cycle and count as ending with it.

Rates are rounded down and ends are rounded up, so a transfer that fills its last cycle ends some
ticks later.
"""

NEVER: Final = 1 << 62
"""An infinite cycle or rate."""

NONE: Final = -1


class Flow(Row):
    """Elements that take one route or tree, in order. Its queue is a ring of ``queue`` rows."""

    first_crossing: int
    end_crossing: int
    ends: int  # Channels that it leads to
    sends: int  # Channels that have sent the next element, while others have not
    base: int
    mask: int
    sent: int
    through: int
    live_at: int  # Its place in ``live``, or NONE
    under_way: int
    rest: int  # Bytes of its element after the transfer under way
    left: int  # Pieces of the transfer left at ``since``
    since_cycle: int
    since_tick: int
    rate: int  # Pieces a tick
    by: int  # The link that gives it this rate; NONE if the rate is not known
    due_cycle: int  # When a transfer begins, or ends at this rate
    due_tick: int
    touched: int
    arrived: int  # Elements that arrived in the latest event


class Crossing(Row):
    """A flow on a link."""

    link: int
    member: int  # Its place in ``members`` if a transfer is under way
    flow: int


class Link(Row):
    """A link with a limited rate."""

    capacity: int  # Pieces a tick
    first_member: int
    members: int
    level: int  # The rate that it gives; NEVER if it is not full
    open: int  # Members with an unknown rate
    load: int  # Rates of the other members
    marked: int
    full_at: int  # The rate at which it will be full, or NEVER
    waits: int


class Queued(Row):
    """An element in the queue of a flow."""

    begin_cycle: int
    size_bytes: int


class Progress(Row):
    """The latest event, the next one, and the lengths of lists."""

    live: int
    now_cycle: int
    now_tick: int
    next_cycle: int
    next_tick: int
    arrivals: int
    touches: int
    marks: int


class LinkWorld(NamedTuple):
    """Shared links and their flows."""

    flows: Table[Flow]
    queue: Table[Queued]
    crossings: Table[Crossing]
    links: Table[Link]
    members: Counters  # crossings of transfers under way, by link
    live: Counters  # flows with elements
    arrived: Counters  # flows with arrivals in the latest event
    marked: Counters  # scratch space, like ``touched`` and ``differing``
    touched: Counters
    differing: Counters
    progress: Progress


def next_cycle(w: LinkWorld) -> int:
    """Return the cycle of the next event; NEVER if none."""
    return w.progress.next_cycle + (1 if w.progress.next_tick > 0 else 0)


def has_room(w: LinkWorld, number: int) -> bool:
    flow = w.flows[number]
    return flow.sent - flow.through <= flow.mask


def depart(w: LinkWorld, number: int, cycle: int, size_bytes: int) -> None:
    """Send ``size_bytes`` on one of the channels of a flow, not before ``cycle``.

    A broadcast begins once it was sent on all channels.
    """
    flow = w.flows[number]
    flow.sends += 1
    if flow.sends < flow.ends:
        return
    flow.sends = 0
    queued = w.queue[flow.base + (flow.sent & flow.mask)]
    queued.begin_cycle = cycle
    queued.size_bytes = size_bytes
    flow.sent += 1
    if flow.live_at == NONE:
        flow.live_at = w.progress.live
        w.live[w.progress.live] = number
        w.progress.live += 1
        flow.due_cycle = cycle
        flow.due_tick = 0
        note_due(w, flow)


def note_due(w: LinkWorld, flow: Flow) -> None:
    """Make a flow's event the next one, if it is earlier."""
    progress = w.progress
    if flow.due_cycle < progress.next_cycle or (
        flow.due_cycle == progress.next_cycle and flow.due_tick < progress.next_tick
    ):
        progress.next_cycle = flow.due_cycle
        progress.next_tick = flow.due_tick


def note_through(w: LinkWorld, number: int) -> None:
    flow = w.flows[number]
    if flow.arrived == 0:
        w.arrived[w.progress.arrivals] = number
        w.progress.arrivals += 1
    flow.arrived += 1
    flow.through += 1


def load(w: LinkWorld, flow: Flow) -> bool:
    """Begin the next transfer if it is due; return whether it has begun."""
    if flow.rest == 0:
        if flow.sent == flow.through:
            return False
        queued = w.queue[flow.base + (flow.through & flow.mask)]
        if queued.begin_cycle > w.progress.now_cycle:
            flow.due_cycle = queued.begin_cycle
            flow.due_tick = 0
            return False
        flow.rest = queued.size_bytes
    size_bytes = min(flow.rest, MOST_BYTES)
    flow.rest -= size_bytes
    flow.left = size_bytes << PIECE_BITS
    return True


def pass_on(w: LinkWorld, number: int) -> bool:
    """Complete or begin the due transfer of a flow; return whether the flow has more elements."""
    flow = w.flows[number]
    was_under_way = flow.under_way != 0
    if was_under_way and flow.rest == 0:
        note_through(w, number)
    touch(w, number)
    has_begun = load(w, flow)
    while has_begun and flow.left == 0:
        # Bare stops have no bytes and arrive immediately.
        note_through(w, number)
        has_begun = load(w, flow)
    flow.under_way = 1 if has_begun else 0
    if has_begun and not was_under_way:
        join(w, flow)
    elif was_under_way and not has_begun:
        quit_links(w, flow)
    return has_begun or flow.sent > flow.through


def advance_links(w: LinkWorld) -> int:
    """Advance to the next event; return the cycle in which flows in ``arrived`` have arrivals."""
    progress = w.progress
    cycle, tick = progress.next_cycle, progress.next_tick
    progress.now_cycle = cycle
    progress.now_tick = tick
    progress.arrivals = 0
    place = 0
    while place < progress.live:
        number = w.live[place]
        flow = w.flows[number]
        is_live = True
        if flow.due_cycle == cycle and flow.due_tick == tick:
            is_live = pass_on(w, number)
        if is_live:
            place += 1
        else:
            progress.live -= 1
            last = w.live[progress.live]
            w.live[place] = last
            w.flows[last].live_at = place
            flow.live_at = NONE
    reshare(w)
    for place in range(progress.touches):
        flow = w.flows[w.touched[place]]
        flow.touched = 0
        if flow.under_way:
            ticks = tick - (-flow.left // flow.rate)
            flow.due_cycle = cycle + (ticks >> TICK_BITS)
            flow.due_tick = ticks & (TICKS - 1)
    progress.touches = 0
    progress.next_cycle = NEVER
    progress.next_tick = 0
    for place in range(progress.live):
        note_due(w, w.flows[w.live[place]])
    return cycle + ((tick + TICKS - 1 - UNCOUNTED_TICKS) >> TICK_BITS)


@MachineCode
def advance(w: LinkWorld) -> tuple[int, int]:
    """Advance to the next event; return its cycle, and the number of flows with arrivals."""
    cycle = advance_links(w)
    return cycle, w.progress.arrivals


def mark(w: LinkWorld, number: int) -> None:
    link = w.links[number]
    if link.marked == 0:
        link.marked = 1
        w.marked[w.progress.marks] = number
        w.progress.marks += 1


def touch(w: LinkWorld, number: int) -> None:
    """Note the progress of a flow, before its rate may change."""
    flow, progress = w.flows[number], w.progress
    if flow.touched == 0:
        flow.touched = 1
        w.touched[progress.touches] = number
        progress.touches += 1
        cycles = progress.now_cycle - flow.since_cycle
        ticks = progress.now_tick - flow.since_tick
        if flow.by != NONE:
            flow.left -= flow.rate * (cycles * TICKS + ticks)
        flow.since_cycle = progress.now_cycle
        flow.since_tick = progress.now_tick


def join(w: LinkWorld, flow: Flow) -> None:
    """Add a flow to its links, without a rate."""
    flow.by = NONE
    for at in range(flow.first_crossing, flow.end_crossing):
        crossing = w.crossings[at]
        link = w.links[crossing.link]
        crossing.member = link.first_member + link.members
        w.members[crossing.member] = at
        link.members += 1
        link.open += 1
        mark(w, crossing.link)


def quit_links(w: LinkWorld, flow: Flow) -> None:
    for at in range(flow.first_crossing, flow.end_crossing):
        crossing = w.crossings[at]
        link = w.links[crossing.link]
        link.members -= 1
        link.load -= flow.rate
        last = w.members[link.first_member + link.members]
        w.members[crossing.member] = last
        w.crossings[last].member = crossing.member
        mark(w, crossing.link)
    flow.by = NONE


def give(w: LinkWorld, number: int, by: int, rate: int) -> None:
    """Give a flow the rate at which the link ``by`` is full; no rate if ``by`` is NONE."""
    touch(w, number)
    flow = w.flows[number]
    for at in range(flow.first_crossing, flow.end_crossing):
        crossing = w.crossings[at]
        link = w.links[crossing.link]
        if flow.by == NONE:
            link.open -= 1
        else:
            link.load -= flow.rate
        if by == NONE:
            link.open += 1
        else:
            link.load += rate
        if crossing.link != by:
            mark(w, crossing.link)
    flow.rate = rate
    flow.by = by


def stops_before(flow: Flow, level: int, link: int) -> bool:
    """Whether a flow has its rate from a link earlier than ``link``, which is full at ``level``."""
    if flow.by in (NONE, link):
        return False
    return flow.rate < level or (flow.rate == level and flow.by < link)


def flow_at(w: LinkWorld, place: int) -> int:
    return w.crossings[w.members[place]].flow


def full_at(w: LinkWorld, number: int) -> int:
    """Return the rate at which a link is full; NEVER if it is not full."""
    link = w.links[number]
    count = link.members
    room = link.capacity - link.load
    # The link has room for one more piece a tick of each member, so it is not full.
    if count == 0 or (link.level == NEVER and link.open == 0 and room >= count):
        return NEVER
    first = link.first_member
    level = link.capacity // count
    while True:
        room = link.capacity
        users = 0
        for place in range(first, first + count):
            flow = w.flows[flow_at(w, place)]
            if stops_before(flow, level, number):
                room -= flow.rate
            else:
                users += 1
        if users == 0:
            return NEVER
        share = room // users
        if share == level:
            return level
        level = share


def process(w: LinkWorld, number: int, waiting: int) -> int:
    """Process a link with a changed member; return the number of links in ``differing``.

    Flows lose rates that the link no longer gives. ``differing`` has links that must give rates.
    """
    link = w.links[number]
    level = full_at(w, number)
    first, count = link.first_member, link.members
    differs = level != link.level
    if differs and link.level != NEVER:
        link.level = NEVER
        for place in range(first, first + count):
            if w.flows[flow_at(w, place)].by == number:
                give(w, flow_at(w, place), NONE, 0)
    if level != NEVER and not differs:
        for place in range(first, first + count):
            flow = w.flows[flow_at(w, place)]
            if flow.by != number and not stops_before(flow, level, number):
                differs = True
    link.full_at = level if differs else NEVER
    if link.full_at != NEVER and link.waits == 0:
        link.waits = 1
        w.differing[waiting] = number
        waiting += 1
    return waiting


def reshare(w: LinkWorld) -> None:
    """Update the shares after links were marked."""
    waiting = 0
    while True:
        while w.progress.marks > 0:
            w.progress.marks -= 1
            number = w.marked[w.progress.marks]
            w.links[number].marked = 0
            waiting = process(w, number, waiting)
        level = NEVER
        first = NONE
        kept = 0
        for place in range(waiting):
            number = w.differing[place]
            link = w.links[number]
            if link.full_at == NEVER:
                link.waits = 0
            else:
                if link.full_at < level or (link.full_at == level and number < first):
                    level = link.full_at
                    first = number
                w.differing[kept] = number
                kept += 1
        waiting = kept
        if level == NEVER:
            return
        full = w.links[first]
        full.level = level
        full.full_at = NEVER
        for place in range(full.first_member, full.first_member + full.members):
            number = flow_at(w, place)
            flow = w.flows[number]
            if flow.by != first and not stops_before(flow, level, first):
                give(w, number, first, level)
