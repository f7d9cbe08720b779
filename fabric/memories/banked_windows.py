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
    ch: int,
    arrived: int,
    place: int,
    client: int,
    write: int,
    channels: Counters,
    queues: Counters,
    control: Counters,
) -> None:
    """Put a request behind the others that wait to come to the window of a channel."""
    row = ch * c.CHANNEL_COLUMNS
    queued = channels[row + c.QUEUED_READS + write]
    at = _queued(ch, write, queued, channels, control)
    queues[at + c.QUEUED_WHEN] = arrived << c.CLIENT_BITS | client
    queues[at + c.QUEUED_WHERE] = place >> c.BANK_SHIFT
    if queued == 0:
        # Behind others it changes nothing before they have come in.
        channels[row + c.QUEUES_SINCE] = min(channels[row + c.QUEUES_SINCE], arrived + 1)
        channels[row + c.NEXT] = min(channels[row + c.NEXT], arrived + 1)
    channels[row + c.QUEUED_READS + write] = queued + 1
    control[c.LONGEST] = max(control[c.LONGEST], queued + 1)
    control[c.UNSERVED] += 1
    control[c.UNSERVED_WRITES] += write


def _queued(ch: int, write: int, number: int, channels: Counters, control: Counters) -> int:
    """Return where the request is that has so many before it in a queue."""
    room: int = control[c.ROOM]
    at: int = channels[ch * c.CHANNEL_COLUMNS + c.READ_HEAD + write] + number
    return ((ch * 2 + write) * room + (at & (room - 1))) * c.QUEUED_COLUMNS


def coming(
    ch: int,
    channels: Counters,
    entries: Counters,
    queues: Counters,
    control: Counters,
    s: Counters,
) -> tuple[int, int]:
    """Return when the next request comes to a window, and whether it writes; FAR: none does.

    It needs an entry for each of its bursts, and comes with the first of them.
    """
    row = ch * c.CHANNEL_COLUMNS
    size = s[c.ENTRIES]
    earliest = c.FAR
    kind = 0
    for write in range(2):
        if channels[row + c.QUEUED_READS + write] and (
            channels[row + c.FREE_READ_ENTRIES + write] >= s[c.BURSTS]
        ):
            head = _queued(ch, write, 0, channels, control)
            entry = channels[row + c.FIRST_READ_ENTRY + write] & (size - 1)
            free = entries[(ch * 2 + write) * size + entry]
            cycle = max(queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS, free)
            if cycle < earliest:
                earliest = cycle
                kind = write
    return earliest, kind


def admit(
    ch: int,
    cycle: int,
    write: int,
    channels: Counters,
    windows: Counters,
    bounds: Counters,
    queues: Counters,
    buses: Counters,
    control: Counters,
    s: Counters,
) -> int:
    """Let the first one that waits outside of a window come in; return its slot."""
    row = ch * c.CHANNEL_COLUMNS
    channels[row + c.FIRST_READ_ENTRY + write] += s[c.BURSTS]
    channels[row + c.FREE_READ_ENTRIES + write] -= s[c.BURSTS]
    slot: int = ch * (s[c.READ_WINDOW] + s[c.WRITE_WINDOW]) + write * s[c.READ_WINDOW]
    while bounds[slot] < c.FAR:
        slot += 1
    at = slot * c.REQUEST_COLUMNS
    head = _queued(ch, write, 0, channels, control)
    when = queues[head + c.QUEUED_WHEN]
    where = queues[head + c.QUEUED_WHERE]
    windows[at + c.BANK] = where & c.BANK_MASK
    windows[at + c.ROW] = where >> c.BANK_BITS
    windows[at + c.CLIENT] = when & c.CLIENT_MASK
    windows[at + c.ARRIVED] = when >> c.CLIENT_BITS
    windows[at + c.ADMITTED] = cycle
    windows[at + c.PUT_OFF] = c.NONE
    windows[at + c.AGE] = channels[row + c.SEQUENCE]
    bounds[slot] = cycle + 1
    channels[row + c.SEQUENCE] += 1
    channels[row + c.READ_HEAD + write] += 1
    channels[row + c.QUEUED_READS + write] -= 1
    channels[row + c.READS + write] += 1
    channels[row + c.WAITS_SINCE] = min(channels[row + c.WAITS_SINCE], cycle + 1)
    fill(ch, c.QUEUES, channels[row + c.QUEUES_SINCE], cycle, channels, buses, s)
    since = c.FAR
    for each in range(2):
        if channels[row + c.QUEUED_READS + each]:
            head = _queued(ch, each, 0, channels, control)
            since = min(since, (queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS) + 1)
    channels[row + c.QUEUES_SINCE] = since
    return slot


def leave(
    ch: int, write: int, cycle: int, channels: Counters, entries: Counters, s: Counters
) -> None:
    """Let an entry of a window be free from ``cycle`` on; they are taken in that order."""
    row = ch * c.CHANNEL_COLUMNS
    size = s[c.ENTRIES]
    base = (ch * 2 + write) * size
    first = channels[row + c.FIRST_READ_ENTRY + write]
    at = first + channels[row + c.FREE_READ_ENTRIES + write]
    while at > first and entries[base + ((at - 1) & (size - 1))] > cycle:
        entries[base + (at & (size - 1))] = entries[base + ((at - 1) & (size - 1))]
        at -= 1
    entries[base + (at & (size - 1))] = cycle
    channels[row + c.FREE_READ_ENTRIES + write] += 1


def turn(ch: int, cycle: int, channels: Counters, entries: Counters, s: Counters) -> None:
    """Let a channel turn to writing or reading; its commands go from ``cycle`` on then."""
    row = ch * c.CHANNEL_COLUMNS
    mode = 1
    if channels[row + c.WRITES] == 0:
        mode = 0
    elif channels[row + c.READS] > 0:
        size = s[c.ENTRIES]
        base = (ch * 2 + 1) * size
        first = channels[row + c.FIRST_WRITE_ENTRY]
        at = first
        end = first + channels[row + c.FREE_WRITE_ENTRIES]
        while at < end and entries[base + (at & (size - 1))] <= cycle:
            at += 1
        held = s[c.WRITE_ENTRIES] - (at - first)
        writes = channels[row + c.MODE]
        mode = int(held >= s[c.WRITE_LOW]) if writes else int(held > s[c.WRITE_HIGH])
    if mode != channels[row + c.MODE]:
        channels[row + c.MODE] = mode
        channels[row + c.MODE_FROM] = cycle
