"""The shares of links anew, where transfers have begun or ended; compiled.

What ``shares.fill`` finds for all, this finds from what has changed: most events change few rates.
Links become full one after the other, in the order of the rates at which they do, equal ones by
number. What a link does hangs on what came before it in that order alone. So a link is looked at
again where a member of it has changed, and the first of those that differ goes first: nothing later
changes what it has found.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.network import columns as n

__all__ = ["join", "quit_links", "reshare", "touch"]


def mark(link: int, links: Counters, marked: Counters, notes: Counters) -> None:
    """Note that a link is to be looked at."""
    row = link * n.LINK_COLUMNS
    if links[row + n.MARKED] == 0:
        links[row + n.MARKED] = 1
        marked[notes[n.MARKS]] = link
        notes[n.MARKS] += 1


def touch(flow: int, flows: Counters, touched: Counters, notes: Counters) -> None:
    """Note that the rate of a flow may change, and what has come of its transfer so far."""
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
    """Let a flow be under way on its links, at a rate that is not known yet."""
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
    """Let the rate of a flow be unknown."""
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
    """Let a flow have the rate at which a link is full."""
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
    """Whether a flow has its rate of another link that is full before this one, at ``level``."""
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
    """Look at a link of which a member has changed; return how many differ now.

    Whom it gave a rate that it does not give now has none. Where it is to give one to more, or
    another one, it is among those that differ.
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
    """Give all that is under way its share again, where links are marked."""
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
