"""What a channel of the banked memory does: chooses a request, reserves its slots, refreshes.

Of the requests in its window it takes the one whose next command can go first, of equal ones the
oldest, and reserves the slots of all its commands: so it goes on from request to request, not from
cycle to cycle. Bounds of the others only grow, and are looked at again where they would decide.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import account, free_activation, free_column, free_slot
from fabric.memories.banked_commands import (
    activate,
    column_from,
    precharge,
    read_or_write,
    refresh,
)
from fabric.memories.banked_windows import admit, coming, leave, turn

__all__ = ["serve"]


def serve(ch: int, until: int, m: Counters, queues: Counters) -> None:
    """Let a channel go on while the next command of one of its requests goes by ``until``."""
    while m[ch + c.NEXT] <= until:
        if m[ch + c.NEXT] >= m[ch + c.NEXT_REFRESH]:
            refresh(ch, m)
            continue
        # Buses are rings: what is free is known from there on where the past is accounted for.
        account(ch, m[ch + c.NEXT], m)
        slot, cycle = _next(ch, m)
        comes, write = coming(ch, m, queues)
        # Who comes in before may go before.
        while comes < cycle - 1 and comes < until:
            new = admit(ch, comes, write, m, queues)
            mode = m[ch + c.MODE]
            turn(ch, comes + 1, m)
            if m[ch + c.MODE] != mode or m[c.FIRST_COME]:
                slot, cycle = _next(ch, m)
            elif write == mode:
                bound = _bound(ch, new, write, m)
                if bound < cycle:
                    slot, cycle = new, bound
            comes, write = coming(ch, m, queues)
        m[ch + c.NEXT] = min(cycle, comes + 1)
        if cycle <= until and cycle < m[ch + c.NEXT_REFRESH]:
            _commit(ch, slot, cycle, m)


def _next(ch: int, m: Counters) -> tuple[int, int]:
    """Return the request that has its turn, and the cycle of its next command."""
    write = m[ch + c.MODE]
    start = write * m[c.READ_WINDOW]
    end = start + m[c.READ_WINDOW + write]
    bounds = m[ch + c.BOUNDS_AT]
    if m[c.FIRST_COME]:
        oldest = c.EMPTY
        chosen = c.NONE
        for slot in range(start, end):
            its_age = m[bounds + slot] & c.AGE_MASK
            if m[bounds + slot] < c.EMPTY and its_age < oldest:
                oldest = its_age
                chosen = slot
        if chosen == c.NONE:
            return c.NONE, c.FAR
        return chosen, _bound(ch, chosen, write, m)
    while True:
        # The bound is above the age, and that above the slot: the least says all.
        least = c.EMPTY
        for at in range(bounds + start, bounds + end):
            least = min(least, m[at])
        if least == c.EMPTY:
            return c.NONE, c.FAR
        slot = least & c.SLOT_MASK
        cycle = _bound(ch, slot, write, m)
        if cycle == least >> c.BOUND_SHIFT:
            return slot, cycle


def _bound(ch: int, slot: int, write: int, m: Counters) -> int:
    """Return the first cycle in which the next command of a request can go."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    kept = m[ch + c.BOUNDS_AT] + slot
    bank = m[at + c.BANK]
    cycle: int = max(m[kept] >> c.BOUND_SHIFT, m[ch + c.CLOCKED], m[ch + c.MODE_FROM])
    opened = m[bank + c.OPEN_ROW]
    if opened == m[at + c.ROW]:
        cycle = free_column(ch, bank, max(cycle, column_from(bank, write, m)), m)
    elif opened == c.NONE:
        cycle = free_activation(ch, bank, max(cycle, m[bank + c.ACTIVATE_FROM]), m)
    else:
        cycle = free_slot(ch, c.ROW_SLOTS, max(cycle, m[bank + c.PRECHARGE_FROM]), m)
    if m[at + c.PUT_OFF] == m[ch + c.NEXT_REFRESH]:
        cycle = max(cycle, m[ch + c.NEXT_REFRESH])
    m[kept] = cycle << c.BOUND_SHIFT | (m[kept] & c.BELOW_BOUND)
    return cycle


def _commit(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Reserve the slots of all commands of a request, the first of them in ``cycle``.

    It is put off where they would not be over before the next refresh.
    """
    write = m[ch + c.MODE]
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    bank = m[at + c.BANK]
    wanted = m[at + c.ROW]
    opened = m[bank + c.OPEN_ROW]
    activation = c.NONE
    column = cycle
    if opened != wanted:
        activation = cycle
        if opened != c.NONE:
            activation = max(cycle + m[c.RP], m[bank + c.ACTIVATE_FROM])
            activation = free_activation(ch, bank, activation, m)
        column = max(activation + 1 + m[c.RCD_READ + write], column_from(bank, write, m))
        column = free_column(ch, bank, column, m)
    last = column
    for _ in range(m[c.BURSTS] - 1):
        last = free_column(ch, bank, last + m[c.GROUP_GAP], m)
    due = m[ch + c.NEXT_REFRESH]
    if last >= due:
        m[at + c.PUT_OFF] = due
        if c.NONE < activation < due:
            # Its row is opened for nothing, and stays open as long as rows have to.
            m[ch + c.HELD] = max(m[ch + c.HELD], activation + 1 + m[c.RAS])
        return
    account(ch, cycle, m)
    met = c.HITS
    if activation != c.NONE:
        met = c.MISSES
        if opened != c.NONE:
            met = c.CONFLICTS
            precharge(ch, bank, cycle, m)
        activate(ch, bank, wanted, activation, m)
        leave(ch, write, activation + 1, m)
    read_or_write(ch, bank, column, write, activation != c.NONE, m)
    ready = last if write else last + m[c.CL] + m[c.BURST_CYCLES]
    _serve_client(at, met, cycle, ready, m)
    m[ch + c.ROW_HITS + met - c.HITS] += 1
    m[ch + c.SERVED_READS + write] += 1
    m[ch + c.READS + write] -= 1
    m[c.UNSERVED] -= 1
    m[c.UNSERVED_WRITES] -= write
    m[m[ch + c.BOUNDS_AT] + slot] = c.EMPTY
    if m[ch + c.READS] + m[ch + c.WRITES] == 0:
        m[ch + c.WAITS_SINCE] = c.FAR
    turn(ch, cycle, m)


def _serve_client(at: int, met: int, cycle: int, ready: int, m: Counters) -> None:
    """Count a request, whose first command goes in ``cycle``, for its client."""
    client = m[at + c.CLIENT]
    row = m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS
    m[row + c.READY] = max(m[row + c.READY], ready)
    m[row + met] += 1
    m[row + c.QUEUED] += m[at + c.ADMITTED] - m[at + c.ARRIVED]
    m[row + c.WAITED] += cycle - m[at + c.ADMITTED]
    m[row + c.SERVED] += ready - cycle
    m[row + c.OPEN] -= 1
    if m[row + c.OPEN] == 0:
        m[m[c.DONE_AT] + m[c.FINISHED]] = client
        m[c.FINISHED] += 1
