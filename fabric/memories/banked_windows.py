"""Windows of a channel of the banked memory: who comes in, who leaves, and whose turn it is.

A window has an entry for each burst. It is free from the command of its burst on, or from the
activation that is made for it on: such a burst waits elsewhere for its row.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import account

__all__ = ["admitted", "leave", "take", "turn"]


def take(
    ch: int,
    arrived: int,
    place: int,
    client: int,
    write: int,
    channels: Counters,
    nodes: Counters,
    control: Counters,
) -> None:
    """Put a request behind the others that wait to come to the window of a channel."""
    row = ch * c.CHANNEL_COLUMNS
    control[c.UNSERVED] += 1
    control[c.UNSERVED_WRITES] += write
    node = control[c.FREE_NODE]
    at = node * c.NODE_COLUMNS
    control[c.FREE_NODE] = nodes[at + c.NODE_NEXT]
    control[c.FREE_NODES] -= 1
    nodes[at + c.NODE_ARRIVED] = arrived
    nodes[at + c.NODE_PLACE] = place
    nodes[at + c.NODE_CLIENT] = client
    if channels[row + c.QUEUED_READS + write] == 0:
        channels[row + c.READ_HEAD + write] = node
        channels[row + c.QUEUES_SINCE] = min(channels[row + c.QUEUES_SINCE], arrived + 1)
    else:
        tail = channels[row + c.READ_TAIL + write]
        nodes[tail * c.NODE_COLUMNS + c.NODE_NEXT] = node
    channels[row + c.READ_TAIL + write] = node
    channels[row + c.QUEUED_READS + write] += 1
    channels[row + c.NEXT] = min(channels[row + c.NEXT], arrived + 1)


def admitted(
    ch: int,
    before: int,
    channels: Counters,
    windows: Counters,
    bounds: Counters,
    entries: Counters,
    nodes: Counters,
    buses: Counters,
    periods: Counters,
    control: Counters,
    s: Counters,
) -> bool:
    """Let the request that comes first to a window come, if that is earlier than ``before``.

    It needs an entry for each of its bursts; it comes with the first of them.
    """
    row = ch * c.CHANNEL_COLUMNS
    size = s[c.ENTRIES]
    kind = c.NONE
    earliest = before
    for write in range(2):
        if channels[row + c.QUEUED_READS + write] and (
            channels[row + c.FREE_READ_ENTRIES + write] >= s[c.BURSTS]
        ):
            head = channels[row + c.READ_HEAD + write] * c.NODE_COLUMNS
            entry = channels[row + c.FIRST_READ_ENTRY + write] & (size - 1)
            free = entries[(ch * 2 + write) * size + entry]
            cycle = max(nodes[head + c.NODE_ARRIVED], free)
            if cycle < earliest:
                earliest = cycle
                kind = write
    if kind == c.NONE:
        return False
    account(ch, earliest + 1, channels, buses, periods, control, s)
    channels[row + c.FIRST_READ_ENTRY + kind] += s[c.BURSTS]
    channels[row + c.FREE_READ_ENTRIES + kind] -= s[c.BURSTS]
    slot = ch * (s[c.READ_WINDOW] + s[c.WRITE_WINDOW]) + kind * s[c.READ_WINDOW]
    while bounds[slot] < c.FAR:
        slot += 1
    node = channels[row + c.READ_HEAD + kind]
    head = node * c.NODE_COLUMNS
    at = slot * c.REQUEST_COLUMNS
    windows[at + c.BANK] = (nodes[head + c.NODE_PLACE] >> c.BANK_SHIFT) & c.BANK_MASK
    windows[at + c.ROW] = nodes[head + c.NODE_PLACE] >> c.ROW_SHIFT
    windows[at + c.CLIENT] = nodes[head + c.NODE_CLIENT]
    windows[at + c.ARRIVED] = nodes[head + c.NODE_ARRIVED]
    windows[at + c.ADMITTED] = earliest
    windows[at + c.PUT_OFF] = c.NONE
    windows[at + c.AGE] = channels[row + c.SEQUENCE]
    bounds[slot] = earliest + 1
    channels[row + c.SEQUENCE] += 1
    channels[row + c.READ_HEAD + kind] = nodes[head + c.NODE_NEXT]
    channels[row + c.QUEUED_READS + kind] -= 1
    channels[row + c.READS + kind] += 1
    channels[row + c.WAITS_SINCE] = min(channels[row + c.WAITS_SINCE], earliest + 1)
    channels[row + c.QUEUES_SINCE] = c.FAR
    for each in range(2):
        if channels[row + c.QUEUED_READS + each]:
            first = channels[row + c.READ_HEAD + each] * c.NODE_COLUMNS
            since = nodes[first + c.NODE_ARRIVED] + 1
            channels[row + c.QUEUES_SINCE] = min(channels[row + c.QUEUES_SINCE], since)
    nodes[head + c.NODE_NEXT] = control[c.FREE_NODE]
    control[c.FREE_NODE] = node
    control[c.FREE_NODES] += 1
    turn(ch, earliest + 1, channels, entries, s)
    return True


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
        channels[row + c.NEXT] = cycle
