"""Windows of a channel of the banked memory: who comes in, who leaves, and whose turn it is.

A window has an entry for each burst. It is free from the command of its burst on, or from the
activation that is made for it on: such a burst waits elsewhere for its row.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import fill

__all__ = ["admit", "coming", "leave", "take", "turn"]


def take(
    ch: int, arrived: int, place: int, client: int, write: int, m: Counters, queues: Counters
) -> None:
    """Put a request behind the others that wait to come to the window of a channel."""
    queued = m[ch + c.QUEUED_READS + write]
    at = _queued(ch, write, queued, m)
    queues[at + c.QUEUED_WHEN] = arrived << c.CLIENT_BITS | client
    queues[at + c.QUEUED_WHERE] = place >> c.BANK_SHIFT
    if queued == 0:
        # Behind others it changes nothing before they have come in.
        m[ch + c.QUEUES_SINCE] = min(m[ch + c.QUEUES_SINCE], arrived + 1)
        m[ch + c.NEXT] = min(m[ch + c.NEXT], arrived + 1)
    m[ch + c.QUEUED_READS + write] = queued + 1
    m[c.LONGEST] = max(m[c.LONGEST], queued + 1)
    m[c.UNSERVED] += 1
    m[c.UNSERVED_WRITES] += write


def _queued(ch: int, write: int, number: int, m: Counters) -> int:
    """Return where the request is that has so many before it in a queue."""
    room: int = m[c.ROOM]
    at: int = m[ch + c.READ_HEAD + write] + number
    queue: int = m[ch + c.NUMBER] * 2 + write
    return (queue * room + (at & (room - 1))) * c.QUEUED_COLUMNS


def coming(ch: int, m: Counters, queues: Counters) -> tuple[int, int]:
    """Return when the next request comes to a window, and whether it writes; FAR: none does.

    It needs an entry for each of its bursts, and comes with the first of them.
    """
    earliest = c.FAR
    kind = 0
    for write in range(2):
        if m[ch + c.QUEUED_READS + write] and m[ch + c.FREE_READ_ENTRIES + write] >= m[c.BURSTS]:
            head = _queued(ch, write, 0, m)
            free = m[_entry(ch, write, m[ch + c.FIRST_READ_ENTRY + write], m)]
            cycle = max(queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS, free)
            if cycle < earliest:
                earliest = cycle
                kind = write
    return earliest, kind


def _entry(ch: int, write: int, number: int, m: Counters) -> int:
    """Return where the cycle stands from which on an entry is free; they are in its order."""
    size: int = m[c.ENTRIES]
    return m[ch + c.ENTRIES_AT] + write * size + (number & (size - 1))  # type: ignore[no-any-return]


def admit(ch: int, cycle: int, write: int, m: Counters, queues: Counters) -> int:
    """Let the first one that waits outside of a window come in; return its slot."""
    m[ch + c.FIRST_READ_ENTRY + write] += m[c.BURSTS]
    m[ch + c.FREE_READ_ENTRIES + write] -= m[c.BURSTS]
    slot: int = write * m[c.READ_WINDOW]
    bounds = m[ch + c.BOUNDS_AT]
    while m[bounds + slot] < c.EMPTY:
        slot += 1
    if m[ch + c.SEQUENCE] > c.MOST_AGE:
        _count_ages_anew(ch, m)
    age = m[ch + c.SEQUENCE]
    m[bounds + slot] = (cycle + 1) << c.BOUND_SHIFT | age << c.SLOT_BITS | slot
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    head = _queued(ch, write, 0, m)
    when = queues[head + c.QUEUED_WHEN]
    where = queues[head + c.QUEUED_WHERE]
    m[at + c.BANK] = m[ch + c.BANKS_AT] + (where & c.BANK_MASK) * c.BANK_COLUMNS
    m[at + c.ROW] = where >> c.BANK_BITS
    m[at + c.CLIENT] = when & c.CLIENT_MASK
    m[at + c.ARRIVED] = when >> c.CLIENT_BITS
    m[at + c.ADMITTED] = cycle
    m[at + c.PUT_OFF] = c.NONE
    m[ch + c.SEQUENCE] += 1
    m[ch + c.READ_HEAD + write] += 1
    m[ch + c.QUEUED_READS + write] -= 1
    m[ch + c.READS + write] += 1
    m[ch + c.WAITS_SINCE] = min(m[ch + c.WAITS_SINCE], cycle + 1)
    fill(ch, c.QUEUES, m[ch + c.QUEUES_SINCE], cycle, m)
    since = c.FAR
    for each in range(2):
        if m[ch + c.QUEUED_READS + each]:
            head = _queued(ch, each, 0, m)
            since = min(since, (queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS) + 1)
    m[ch + c.QUEUES_SINCE] = since
    return slot


def _count_ages_anew(ch: int, m: Counters) -> None:
    """Let the oldest request in the windows of a channel be of age 0, the next one of age 1."""
    first = m[ch + c.BOUNDS_AT]
    last = first + m[c.READ_WINDOW] + m[c.WRITE_WINDOW]
    number = 0
    following = 0
    while following <= c.AGE_MASK:
        oldest = following
        following = c.EMPTY
        for at in range(first, last):
            age = m[at] & c.AGE_MASK
            if m[at] < c.EMPTY and age == oldest:
                m[at] += (number << c.SLOT_BITS) - age
                number += 1
            elif m[at] < c.EMPTY and age > oldest:
                following = min(following, age)
    m[ch + c.SEQUENCE] = number


def leave(ch: int, write: int, cycle: int, m: Counters) -> None:
    """Let an entry of a window be free from ``cycle`` on; they are taken in that order."""
    first = m[ch + c.FIRST_READ_ENTRY + write]
    at = first + m[ch + c.FREE_READ_ENTRIES + write]
    while at > first and m[_entry(ch, write, at - 1, m)] > cycle:
        m[_entry(ch, write, at, m)] = m[_entry(ch, write, at - 1, m)]
        at -= 1
    m[_entry(ch, write, at, m)] = cycle
    m[ch + c.FREE_READ_ENTRIES + write] += 1


def turn(ch: int, cycle: int, m: Counters) -> None:
    """Let a channel turn to writing or reading; its commands go from ``cycle`` on then."""
    mode = 1
    if m[ch + c.WRITES] == 0:
        mode = 0
    elif m[ch + c.READS] > 0:
        first = m[ch + c.FIRST_WRITE_ENTRY]
        at = first
        end = first + m[ch + c.FREE_WRITE_ENTRIES]
        while at < end and m[_entry(ch, 1, at, m)] <= cycle:
            at += 1
        held = m[c.WRITE_ENTRIES] - (at - first)
        writes = m[ch + c.MODE]
        mode = int(held >= m[c.WRITE_LOW]) if writes else int(held > m[c.WRITE_HIGH])
    if mode != m[ch + c.MODE]:
        m[ch + c.MODE] = mode
        m[ch + c.MODE_FROM] = cycle
