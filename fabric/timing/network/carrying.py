"""Advances transfers over shared links, compiled, one event at a time.

A flow has at most one transfer under way. Between two events every transfer has a constant rate,
its max-min fair share. All numbers are integers, so that cycles are equal on every machine.

When transfers begin or end, ``reshare`` updates the shares from the changed links, with the result
of ``shares.fill``. Links become full in the order of their rates, equal ones by number. A link
depends only on earlier ones in that order. So links with a changed member are processed again, the
first differing one first.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.engine.machine_code import Counters, MachineCode
from fabric.timing.network import columns as n


def next_cycle(notes: Counters) -> int:
    """Return the cycle of the next event; NEVER if none."""
    cycle: int = notes[n.NEXT_CYCLE]
    return cycle + (1 if notes[n.NEXT_TICK] > 0 else 0)


def has_room(flow: int, flows: Counters) -> bool:
    """Whether one more element fits into the queue of a flow."""
    row = flow * n.FLOW_COLUMNS
    return bool(flows[row + n.SENT] - flows[row + n.THROUGH] <= flows[row + n.MASK])


def depart(
    flow: int,
    cycle: int,
    size_bytes: int,
    flows: Counters,
    waiting: Counters,
    live: Counters,
    notes: Counters,
) -> None:
    """Send ``size_bytes`` on one of the channels of a flow, not before ``cycle``.

    A broadcast begins once it was sent on all channels.
    """
    row = flow * n.FLOW_COLUMNS
    flows[row + n.SENDS] += 1
    if flows[row + n.SENDS] < flows[row + n.ENDS]:
        return
    flows[row + n.SENDS] = 0
    at = flows[row + n.BASE] + (flows[row + n.SENT] & flows[row + n.MASK])
    waiting[at * n.WAITING_COLUMNS + n.BEGIN_CYCLE] = cycle
    waiting[at * n.WAITING_COLUMNS + n.SIZE_BYTES] = size_bytes
    flows[row + n.SENT] += 1
    if flows[row + n.LIVE_AT] == n.NOBODY:
        flows[row + n.LIVE_AT] = notes[n.LIVE]
        live[notes[n.LIVE]] = flow
        notes[n.LIVE] += 1
        flows[row + n.DUE_CYCLE] = cycle
        flows[row + n.DUE_TICK] = 0
        note_due(flow, flows, notes)


def note_due(flow: int, flows: Counters, notes: Counters) -> None:
    """Make a flow's event the next one, if it is earlier."""
    row = flow * n.FLOW_COLUMNS
    cycle, tick = flows[row + n.DUE_CYCLE], flows[row + n.DUE_TICK]
    first = notes[n.NEXT_CYCLE]
    if cycle < first or (cycle == first and tick < notes[n.NEXT_TICK]):
        notes[n.NEXT_CYCLE] = cycle
        notes[n.NEXT_TICK] = tick


def note_through(flow: int, flows: Counters, arrived: Counters, notes: Counters) -> None:
    """Note that an element of a flow has arrived."""
    row = flow * n.FLOW_COLUMNS
    if flows[row + n.ARRIVED] == 0:
        arrived[notes[n.ARRIVALS]] = flow
        notes[n.ARRIVALS] += 1
    flows[row + n.ARRIVED] += 1
    flows[row + n.THROUGH] += 1


def load(flow: int, cycle: int, flows: Counters, waiting: Counters) -> bool:
    """Begin the next transfer; return whether it has bytes. Bare stops arrive immediately."""
    row = flow * n.FLOW_COLUMNS
    if flows[row + n.REST] == 0:
        if flows[row + n.SENT] == flows[row + n.THROUGH]:
            return False
        at = flows[row + n.BASE] + (flows[row + n.THROUGH] & flows[row + n.MASK])
        begin_cycle = waiting[at * n.WAITING_COLUMNS + n.BEGIN_CYCLE]
        if begin_cycle > cycle:
            flows[row + n.DUE_CYCLE] = begin_cycle
            flows[row + n.DUE_TICK] = 0
            return False
        flows[row + n.REST] = waiting[at * n.WAITING_COLUMNS + n.SIZE_BYTES]
    size_bytes = min(flows[row + n.REST], n.MOST_BYTES)
    flows[row + n.REST] -= size_bytes
    flows[row + n.LEFT] = size_bytes << n.PIECE_BITS
    return True


def pass_on(
    flow: int,
    flows: Counters,
    waiting: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    arrived: Counters,
    marked: Counters,
    touched: Counters,
    notes: Counters,
) -> bool:
    """Complete or begin the due transfer of a flow; return whether more is due."""
    row = flow * n.FLOW_COLUMNS
    was_under_way = flows[row + n.UNDER_WAY] != 0
    if was_under_way and flows[row + n.REST] == 0:
        note_through(flow, flows, arrived, notes)
    touch(flow, flows, touched, notes)
    goes = load(flow, notes[n.NOW_CYCLE], flows, waiting)
    while goes and flows[row + n.LEFT] == 0:
        note_through(flow, flows, arrived, notes)
        goes = load(flow, notes[n.NOW_CYCLE], flows, waiting)
    flows[row + n.UNDER_WAY] = 1 if goes else 0
    if goes and not was_under_way:
        join(flow, flows, taken, links, members, marked, notes)
    elif was_under_way and not goes:
        quit_links(flow, flows, taken, links, members, marked, notes)
    return goes or flows[row + n.SENT] > flows[row + n.THROUGH]


def carry_on(
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
) -> int:
    """Advance to the next event; return its cycle, by which elements have arrived.

    ``arrived`` is filled with flows that have arrivals; ``marked``, ``touched`` and ``differing``
    are scratch space. See ``columns`` for the tables.
    """
    cycle, tick = notes[n.NEXT_CYCLE], notes[n.NEXT_TICK]
    notes[n.NOW_CYCLE] = cycle
    notes[n.NOW_TICK] = tick
    notes[n.ARRIVALS] = 0
    place = 0
    while place < notes[n.LIVE]:
        flow = live[place]
        row = flow * n.FLOW_COLUMNS
        goes_on = True
        if flows[row + n.DUE_CYCLE] == cycle and flows[row + n.DUE_TICK] == tick:
            goes_on = pass_on(
                flow,
                flows,
                waiting,
                taken,
                links,
                members,
                arrived,
                marked,
                touched,
                notes,
            )
        if goes_on:
            place += 1
        else:
            notes[n.LIVE] -= 1
            last = live[notes[n.LIVE]]
            live[place] = last
            flows[last * n.FLOW_COLUMNS + n.LIVE_AT] = place
            flows[row + n.LIVE_AT] = n.NOBODY
    reshare(flows, taken, links, members, marked, touched, differing, notes)
    for place in range(notes[n.TOUCHES]):
        row = touched[place] * n.FLOW_COLUMNS
        flows[row + n.TOUCHED] = 0
        if flows[row + n.UNDER_WAY]:
            ticks = tick - (-flows[row + n.LEFT] // flows[row + n.RATE])
            flows[row + n.DUE_CYCLE] = cycle + (ticks >> n.TICK_BITS)
            flows[row + n.DUE_TICK] = ticks & (n.TICKS - 1)
    notes[n.TOUCHES] = 0
    notes[n.NEXT_CYCLE] = n.NEVER
    notes[n.NEXT_TICK] = 0
    for place in range(notes[n.LIVE]):
        note_due(live[place], flows, notes)
    return cycle + ((tick + n.TICKS - 1 - n.UNCOUNTED_TICKS) >> n.TICK_BITS)  # type: ignore[no-any-return]


@partial(MachineCode, uses=(n,))
def begin(
    flow: int,
    cycle: int,
    size_bytes: int,
    flows: Counters,
    waiting: Counters,
    live: Counters,
    notes: Counters,
) -> tuple[int, int]:
    """Send ``size_bytes`` on one of the channels of a flow; see ``depart``.

    Returns:
        1 if there is room, else 0; the cycle of the next event.
    """
    if not has_room(flow, flows):
        return 0, next_cycle(notes)
    depart(flow, cycle, size_bytes, flows, waiting, live, notes)
    return 1, next_cycle(notes)


@partial(MachineCode, uses=(n,))
def go_on(
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
) -> tuple[int, int, int]:
    """Advance to the next event; see ``carry_on``.

    Returns:
        The cycle of the arrivals, the number of flows with arrivals, the cycle of the next event.
    """
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
    return cycle, notes[n.ARRIVALS], next_cycle(notes)


def mark(link: int, links: Counters, marked: Counters, notes: Counters) -> None:
    """Mark a link for processing."""
    row = link * n.LINK_COLUMNS
    if links[row + n.MARKED] == 0:
        links[row + n.MARKED] = 1
        marked[notes[n.MARKS]] = link
        notes[n.MARKS] += 1


def touch(flow: int, flows: Counters, touched: Counters, notes: Counters) -> None:
    """Note that the rate of a flow may change, and its progress so far."""
    row = flow * n.FLOW_COLUMNS
    if flows[row + n.TOUCHED] == 0:
        flows[row + n.TOUCHED] = 1
        touched[notes[n.TOUCHES]] = flow
        notes[n.TOUCHES] += 1
        cycles = notes[n.NOW_CYCLE] - flows[row + n.SINCE_CYCLE]
        ticks = notes[n.NOW_TICK] - flows[row + n.SINCE_TICK]
        if flows[row + n.BY] != n.NOBODY:
            flows[row + n.LEFT] -= flows[row + n.RATE] * (cycles * n.TICKS + ticks)
        flows[row + n.SINCE_CYCLE] = notes[n.NOW_CYCLE]
        flows[row + n.SINCE_TICK] = notes[n.NOW_TICK]


def join(
    flow: int,
    flows: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    marked: Counters,
    notes: Counters,
) -> None:
    """Add a flow to its links, without a rate."""
    row = flow * n.FLOW_COLUMNS
    flows[row + n.BY] = n.NOBODY
    for at in range(flows[row + n.FIRST_LINK], flows[row + n.END_LINK]):
        link = taken[at * n.TAKEN_COLUMNS + n.LINK]
        its = link * n.LINK_COLUMNS
        place = links[its + n.FIRST_MEMBER] + links[its + n.MEMBERS]
        members[place] = at
        taken[at * n.TAKEN_COLUMNS + n.MEMBER] = place
        links[its + n.MEMBERS] += 1
        links[its + n.OPEN] += 1
        mark(link, links, marked, notes)


def quit_links(
    flow: int,
    flows: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    marked: Counters,
    notes: Counters,
) -> None:
    """Let a flow leave its links."""
    row = flow * n.FLOW_COLUMNS
    for at in range(flows[row + n.FIRST_LINK], flows[row + n.END_LINK]):
        link = taken[at * n.TAKEN_COLUMNS + n.LINK]
        its = link * n.LINK_COLUMNS
        links[its + n.MEMBERS] -= 1
        links[its + n.LOAD] -= flows[row + n.RATE]
        last = members[links[its + n.FIRST_MEMBER] + links[its + n.MEMBERS]]
        place = taken[at * n.TAKEN_COLUMNS + n.MEMBER]
        members[place] = last
        taken[last * n.TAKEN_COLUMNS + n.MEMBER] = place
        mark(link, links, marked, notes)
    flows[row + n.BY] = n.NOBODY


def open_up(
    flow: int,
    flows: Counters,
    taken: Counters,
    links: Counters,
    marked: Counters,
    touched: Counters,
    notes: Counters,
) -> None:
    """Clear the rate of a flow."""
    touch(flow, flows, touched, notes)
    row = flow * n.FLOW_COLUMNS
    flows[row + n.BY] = n.NOBODY
    for at in range(flows[row + n.FIRST_LINK], flows[row + n.END_LINK]):
        link = taken[at * n.TAKEN_COLUMNS + n.LINK]
        its = link * n.LINK_COLUMNS
        links[its + n.LOAD] -= flows[row + n.RATE]
        links[its + n.OPEN] += 1
        mark(link, links, marked, notes)


def give(
    flow: int,
    link: int,
    rate: int,
    flows: Counters,
    taken: Counters,
    links: Counters,
    marked: Counters,
    touched: Counters,
    notes: Counters,
) -> None:
    """Give a flow the rate at which a link is full."""
    touch(flow, flows, touched, notes)
    row = flow * n.FLOW_COLUMNS
    was_known = flows[row + n.BY] != n.NOBODY
    for at in range(flows[row + n.FIRST_LINK], flows[row + n.END_LINK]):
        other = taken[at * n.TAKEN_COLUMNS + n.LINK]
        its = other * n.LINK_COLUMNS
        if was_known:
            links[its + n.LOAD] -= flows[row + n.RATE]
        else:
            links[its + n.OPEN] -= 1
        links[its + n.LOAD] += rate
        if other != link:
            mark(other, links, marked, notes)
    flows[row + n.RATE] = rate
    flows[row + n.BY] = link


def stops_before(flow: int, level: int, link: int, flows: Counters) -> bool:
    """Whether a flow has its rate from another link that is full before this one, at ``level``."""
    row = flow * n.FLOW_COLUMNS
    by = flows[row + n.BY]
    if by in (n.NOBODY, link):
        return False
    rate = flows[row + n.RATE]
    return bool(rate < level or (rate == level and by < link))


def full_at(link: int, flows: Counters, taken: Counters, links: Counters, members: Counters) -> int:
    """Return the rate at which a link is full; NEVER where it is not."""
    row = link * n.LINK_COLUMNS
    count = links[row + n.MEMBERS]
    room = links[row + n.CAPACITY] - links[row + n.LOAD]
    # So much room could not be shared by all of them.
    if count == 0 or (
        links[row + n.LEVEL] == n.NEVER and links[row + n.OPEN] == 0 and room >= count
    ):
        return n.NEVER
    first = links[row + n.FIRST_MEMBER]
    level = links[row + n.CAPACITY] // count
    while True:
        room = links[row + n.CAPACITY]
        users = 0
        for place in range(first, first + count):
            flow = taken[members[place] * n.TAKEN_COLUMNS + n.FLOW]
            if stops_before(flow, level, link, flows):
                room -= flows[flow * n.FLOW_COLUMNS + n.RATE]
            else:
                users += 1
        if users == 0:
            return n.NEVER
        share = room // users
        if share == level:
            return level  # type: ignore[no-any-return]
        level = share


def look_again(
    link: int,
    waiting: int,
    flows: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    marked: Counters,
    touched: Counters,
    differing: Counters,
    notes: Counters,
) -> int:
    """Process a link with a changed member; return the number of differing links.

    Flows lose rates that the link no longer gives. If it has to give rates, it is a differing link.
    """
    row = link * n.LINK_COLUMNS
    level = full_at(link, flows, taken, links, members)
    first, count = links[row + n.FIRST_MEMBER], links[row + n.MEMBERS]
    differs = level != links[row + n.LEVEL]
    if differs and links[row + n.LEVEL] != n.NEVER:
        links[row + n.LEVEL] = n.NEVER
        for place in range(first, first + count):
            flow = taken[members[place] * n.TAKEN_COLUMNS + n.FLOW]
            if flows[flow * n.FLOW_COLUMNS + n.BY] == link:
                open_up(flow, flows, taken, links, marked, touched, notes)
    if level != n.NEVER and not differs:
        for place in range(first, first + count):
            flow = taken[members[place] * n.TAKEN_COLUMNS + n.FLOW]
            gives = flows[flow * n.FLOW_COLUMNS + n.BY] == link
            if not gives and not stops_before(flow, level, link, flows):
                differs = True
    links[row + n.FULL_AT] = level if differs else n.NEVER
    if links[row + n.FULL_AT] != n.NEVER and links[row + n.WAITS] == 0:
        links[row + n.WAITS] = 1
        differing[waiting] = link
        waiting += 1
    return waiting


def reshare(
    flows: Counters,
    taken: Counters,
    links: Counters,
    members: Counters,
    marked: Counters,
    touched: Counters,
    differing: Counters,
    notes: Counters,
) -> None:
    """Update the shares after links were marked."""
    waiting = 0
    while True:
        while notes[n.MARKS] > 0:
            notes[n.MARKS] -= 1
            link = marked[notes[n.MARKS]]
            links[link * n.LINK_COLUMNS + n.MARKED] = 0
            waiting = look_again(
                link,
                waiting,
                flows,
                taken,
                links,
                members,
                marked,
                touched,
                differing,
                notes,
            )
        level = n.NEVER
        first = n.NOBODY
        kept = 0
        for place in range(waiting):
            link = differing[place]
            at = links[link * n.LINK_COLUMNS + n.FULL_AT]
            if at == n.NEVER:
                links[link * n.LINK_COLUMNS + n.WAITS] = 0
            else:
                if at < level or (at == level and link < first):
                    level = at
                    first = link
                differing[kept] = link
                kept += 1
        waiting = kept
        if level == n.NEVER:
            return
        row = first * n.LINK_COLUMNS
        links[row + n.LEVEL] = level
        links[row + n.FULL_AT] = n.NEVER
        start = links[row + n.FIRST_MEMBER]
        for place in range(start, start + links[row + n.MEMBERS]):
            flow = taken[members[place] * n.TAKEN_COLUMNS + n.FLOW]
            gives = flows[flow * n.FLOW_COLUMNS + n.BY] == first
            if not gives and not stops_before(flow, level, first, flows):
                give(flow, first, level, flows, taken, links, marked, touched, notes)
