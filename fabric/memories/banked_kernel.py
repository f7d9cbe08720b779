"""The loop of the banked memory, compiled: clients hand over, channels choose.

In every cycle each client with a burst under way hands over one bundle, in client order. A channel
does what goes by a cycle when it knows who has come before: cuts between two calls change nothing.
"""

from __future__ import annotations

from functools import partial

from fabric.engine.machine_code import Counters, MachineCode
from fabric.memories import banked_bus, banked_channel, banked_commands, banked_windows
from fabric.memories import banked_columns as c
from fabric.memories.banked_bus import account, retire
from fabric.memories.banked_channel import serve
from fabric.memories.banked_windows import take

__all__ = ["advance", "settle"]


@partial(MachineCode, uses=(c, banked_bus, banked_channel, banked_commands, banked_windows))
def advance(horizon: int, budget: int, m: Counters, queues: Counters) -> tuple[int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It may return earlier, between two cycles: after so many requests that the host's signals have
    waited long enough, or where queues need more room.

    Args:
        horizon: the last cycle in which bundles are handed over.
        budget: about so many requests before it returns.
        m: see ``banked_columns``.
        queues: rings of the requests that wait outside of the windows, of reads and of writes of
            each channel.

    Returns:
        The last cycle to process: while less than that has been processed, there is more to do.
    """
    count = 0
    for client in range(m[c.CLIENTS]):
        if m[m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS + c.LEFT] > 0:
            m[m[c.ACTIVE_AT] + count] = client
            count += 1
    while m[c.CYCLE] < horizon and budget > 0 and not m[c.SHORT]:
        cycle = m[c.CYCLE]
        idle, unanswered = _ahead(count, m)
        if m[c.UNSERVED] == 0:
            cycle = max(cycle, min(idle, horizon))
        end = min(horizon, cycle + unanswered)
        before = m[c.UNSERVED]
        m[c.LONGEST] = 0
        first = m[c.CHANNELS_AT]
        last = first + m[c.CHANNELS] * c.CHANNEL_COLUMNS
        for ch in range(first, last, c.CHANNEL_COLUMNS):
            m[c.LONGEST] = max(m[c.LONGEST], m[ch + c.QUEUED_READS], m[ch + c.QUEUED_WRITES])
        while cycle < end and not m[c.SHORT]:
            cycle += 1
            count = _gather(count, cycle, m, queues)
        # Whoever had no room hands over in the same cycle when there is.
        cycle -= m[c.SHORT]
        budget -= max(1, m[c.UNSERVED] - before)
        for ch in range(first, last, c.CHANNEL_COLUMNS):
            if m[ch + c.NEXT] <= cycle + 2:
                budget -= 1
                serve(ch, cycle + 2, m, queues)
        for at in range(m[c.DONE_AT], m[c.DONE_AT] + m[c.FINISHED]):
            ready = m[m[c.CLIENTS_AT] + m[at] * c.CLIENT_COLUMNS + c.READY]
            horizon = min(horizon, ready + 1)
        m[c.CYCLE] = cycle
    return (horizon,)


def _ahead(count: int, m: Counters) -> tuple[int, int]:
    """Return the cycle before that of the next bundle, and how many cycles have no answer.

    In so many cycles no client sees its burst complete by a command that is yet to go. Data that
    are read come later than their command; of a write the last request has to be handed over.
    """
    before = c.FAR
    cycles = c.LEAST_ANSWER + m[c.CL] + m[c.BURST_CYCLES]
    ending = m[c.UNSERVED_WRITES]
    for at in range(m[c.ACTIVE_AT], m[c.ACTIVE_AT] + count):
        client = m[c.CLIENTS_AT] + m[at] * c.CLIENT_COLUMNS
        before = min(before, m[client + c.NEXT_BUNDLE] - 1)
        if m[client + c.WRITE]:
            ending -= m[client + c.OPEN] - m[client + c.LEFT]
            cycles = min(cycles, c.LEAST_ANSWER + m[client + c.LEFT] // m[c.PER_BUNDLE])
    return before, c.LEAST_ANSWER if ending else cycles


def _gather(count: int, cycle: int, m: Counters, queues: Counters) -> int:
    """Let each of ``count`` active clients hand over; return how many have more to hand over."""
    kept = 0
    active = m[c.ACTIVE_AT]
    for at in range(active, active + count):
        client = m[at]
        row = m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS
        if m[c.LONGEST] + m[c.PER_BUNDLE] > m[c.ROOM]:
            m[c.SHORT] = 1
        elif m[row + c.NEXT_BUNDLE] <= cycle:
            _hand_over(client, row, cycle, m, queues)
        m[active + kept] = client
        if m[row + c.LEFT] > 0:
            kept += 1
    return kept


def _hand_over(client: int, row: int, cycle: int, m: Counters, queues: Counters) -> None:
    """Let a client hand over a bundle."""
    write = m[row + c.WRITE]
    requests = min(m[c.PER_BUNDLE], m[row + c.LEFT])
    m[row + c.LEFT] -= requests
    m[row + c.NEXT_BUNDLE] = cycle + 1
    for _ in range(requests):
        number = (m[row + c.ROW_ADDRESS] >> m[c.REQUEST_BITS]) + m[row + c.IN_ROW]
        m[row + c.IN_ROW] += 1
        if m[row + c.IN_ROW] == m[row + c.ROW_REQUESTS]:
            m[row + c.IN_ROW] = 0
            m[row + c.ROW_ADDRESS] += m[row + c.PITCH]
        place = 0
        table = m[c.MAPPING_AT]
        while number > 0:
            place ^= m[table + (number & 255)]
            number >>= 8
            table += 256
        ch = m[c.CHANNELS_AT] + (place & c.CHANNEL_MASK) * c.CHANNEL_COLUMNS
        take(ch, cycle + 1, place, client, write, m, queues)


@partial(MachineCode, uses=(c, banked_bus))
def settle(cycle: int, m: Counters) -> tuple[int]:
    """Account for all cycles before ``cycle``, or as far as some channel has got: once, at last."""
    first = m[c.CHANNELS_AT]
    last = first + m[c.CHANNELS] * c.CHANNEL_COLUMNS
    for ch in range(first, last, c.CHANNEL_COLUMNS):
        cycle = max(cycle, m[ch + c.CLOCKED])
    word = cycle & -c.WORD
    for ch in range(first, last, c.CHANNEL_COLUMNS):
        account(ch, cycle, m)
        if word < cycle:
            retire(ch, word, cycle, m)
    return (cycle,)
