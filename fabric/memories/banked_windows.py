"""Windows of a channel of the banked memory: who comes in, who leaves, and whose turn it is.

A window has an entry for each burst. It is free from the command of its burst on, or from the
activation that is made for it on: such a burst waits elsewhere for its row.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_bus import account, fill, keep_up

__all__ = ["admit", "classify", "coming", "leave", "release", "take"]


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
        m[ch + c.READ_COMES + write] = arrived
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


def coming(ch: int, m: Counters) -> tuple[int, int]:
    """Return when the next request comes to a window, and whether it writes; FAR: none does.

    It comes with its first burst; the others have the next entries that are free.
    """
    earliest = c.FAR
    kind = 0
    for write in range(2):
        if (
            m[ch + c.USED_READ_ENTRIES + write] < m[c.READ_ENTRIES + write]
            and m[ch + c.FREE_READ_SLOT + write] != c.NONE
        ):
            cycle = max(m[ch + c.READ_COMES + write], m[ch + c.READ_FREED + write])
            if cycle < earliest:
                earliest = cycle
                kind = write
    return earliest, kind


def admit(ch: int, cycle: int, write: int, m: Counters, queues: Counters) -> int:
    """Let the first one that waits outside of a window come in; return its slot."""
    keep_up(ch, cycle, m)
    slot: int = m[ch + c.FREE_READ_SLOT + write]
    head = _queued(ch, write, 0, m)
    client = queues[head + c.QUEUED_WHEN] & c.CLIENT_MASK
    waited = cycle - m[ch + c.READ_COMES + write]
    m[m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS + c.QUEUED] += waited
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[ch + c.FREE_READ_SLOT + write] = m[at + c.FOLLOWING]
    m[at + c.CLIENT] = client
    m[at + c.ADMITTED] = cycle
    m[at + c.STARTED] = c.FAR
    m[at + c.LEFT_BURSTS] = m[c.BURSTS]
    m[at + c.MET] = c.HITS
    _line_up(ch, slot, queues[head + c.QUEUED_WHERE], m)
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = max(m[ready], cycle + 1)
    m[ch + c.READS + write] += 1
    m[ch + c.USED_READ_ENTRIES + write] += m[c.BURSTS]
    m[ch + c.WAITS_SINCE] = min(m[ch + c.WAITS_SINCE], cycle + 1)
    _move_up(ch, write, cycle, m, queues)
    _turn(ch, cycle + 1, m)
    return slot


def _line_up(ch: int, slot: int, where: int, m: Counters) -> None:
    """Put a request behind all others in age, and among those to its bank."""
    if m[ch + c.SEQUENCE] > c.MOST_AGE:
        _count_ages_anew(ch, m)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    m[order] = c.INACTIVE | m[ch + c.SEQUENCE] << c.SLOT_BITS | slot
    m[ch + c.SEQUENCE] += 1
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    bank = m[ch + c.BANKS_AT] + (where & c.BANK_MASK) * c.BANK_COLUMNS
    m[at + c.BANK] = bank
    m[at + c.ROW] = where >> c.BANK_BITS
    m[at + c.FOLLOWING] = m[bank + c.FIRST]
    m[bank + c.FIRST] = slot
    classify(ch, slot, bank, m)


def _move_up(ch: int, write: int, cycle: int, m: Counters, queues: Counters) -> None:
    """Let the next one be the first in a queue."""
    m[ch + c.READ_HEAD + write] += 1
    m[ch + c.QUEUED_READS + write] -= 1
    m[ch + c.READ_COMES + write] = c.FAR
    if m[ch + c.QUEUED_READS + write]:
        head = _queued(ch, write, 0, m)
        m[ch + c.READ_COMES + write] = queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS
    since = min(m[ch + c.READ_COMES], m[ch + c.WRITE_COMES]) + 1
    if since > cycle:
        # The queues are empty for a while, or until a request of this cycle waits in the next one.
        account(ch, cycle + 1, m)
        m[ch + c.QUEUES_SINCE] = since


def classify(ch: int, slot: int, bank: int, m: Counters) -> None:
    """Say when the bank of a request can take its next command, and what else that waits for."""
    opened = m[bank + c.OPEN_ROW]
    row = m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.ROW]
    since = c.ACTIVATE_FROM if opened == c.NONE else c.PRECHARGE_FROM
    since = c.READ_FROM + int(slot >= m[c.READ_SLOTS]) if opened == row else since
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = m[bank + since]
    # A group has its gates in the order of these cycles of its banks.
    m[ready + m[c.SLOTS]] = m[bank + c.GATE_OF] + (since - c.READ_FROM) * m[c.CHANNEL_GROUPS]


def _count_ages_anew(ch: int, m: Counters) -> None:
    """Let the oldest request in the windows of a channel be of age 0, the next one of age 1."""
    first = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS]
    last = first + m[c.SLOTS]
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


def release(ch: int, write: int, cycle: int, m: Counters) -> None:
    """Let an entry of a window be free from ``cycle`` on."""
    m[ch + c.USED_READ_ENTRIES + write] -= 1
    m[ch + c.READ_FREED + write] = cycle
    _turn(ch, cycle + 1, m)


def leave(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Let a request that is served leave its slot."""
    write = int(slot >= m[c.READ_SLOTS])
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    bank = m[at + c.BANK]
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = c.BLOCKED
    m[ready + 2 * m[c.SLOTS]] = c.EMPTY
    other = m[bank + c.FIRST]
    if other == slot:
        m[bank + c.FIRST] = m[at + c.FOLLOWING]
    else:
        before = other
        while other != slot:
            before = m[ch + c.REQUESTS_AT] + other * c.REQUEST_COLUMNS
            other = m[before + c.FOLLOWING]
        m[before + c.FOLLOWING] = m[at + c.FOLLOWING]
    m[at + c.FOLLOWING] = m[ch + c.FREE_READ_SLOT + write]
    m[ch + c.FREE_READ_SLOT + write] = slot
    m[ch + c.READS + write] -= 1
    if m[ch + c.READS] + m[ch + c.WRITES] == 0:
        account(ch, cycle, m)
        m[ch + c.WAITS_SINCE] = c.FAR


def _turn(ch: int, cycle: int, m: Counters) -> None:
    """Let a channel turn to writing or reading; its commands go from ``cycle`` on then."""
    reads, writes = m[ch + c.USED_READ_ENTRIES], m[ch + c.USED_WRITE_ENTRIES]
    mode = 1
    if writes == 0:
        mode = 0
    elif reads > 0:
        mode = int(writes >= m[c.WRITE_LOW]) if m[ch + c.MODE] else int(writes > m[c.WRITE_HIGH])
    if mode != m[ch + c.MODE]:
        _begin(ch, mode, cycle, m)


def _begin(ch: int, mode: int, cycle: int, m: Counters) -> None:
    """Let a channel begin to write or read; its buses may have to turn."""
    m[ch + c.MODE] = mode
    m[ch + c.MODE_FROM] = cycle
    gates = m[ch + c.GATES_AT] + mode * m[c.CHANNEL_GROUPS]
    for number in range(m[c.PSEUDO_CHANNELS]):
        pseudo = m[ch + c.PSEUDOS_AT] + number * c.PSEUDO_COLUMNS
        turned = m[gates + m[pseudo + c.FIRST_GROUP]]
        first = max(cycle, m[pseudo + c.LAST_WRITE + mode] + m[c.BURST_CYCLES])
        fill(ch, m[pseudo + c.PSEUDO_LANE] + c.TURNS, first, turned - 1, m)
