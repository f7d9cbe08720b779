"""The compiled loop of the banked memory: clients hand over requests, channels issue commands.

In every cycle each client with a burst under way hands over one bundle, in client order. A channel
processes a cycle once all earlier requests are known, so the times of calls change nothing.

A channel issues the command that can go first; of equal ones, that of a request whose row was
opened for it, and then that of the oldest. So it advances by commands, not by cycles.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters
from fabric.timing.memories import banked_columns as c
from fabric.timing.memories import banked_commands
from fabric.timing.memories.banked_commands import (
    account,
    activate,
    admit,
    coming,
    keep_up,
    precharge,
    read_or_write,
    refresh,
    retire,
    take,
)


@partial(MachineCode, uses=(c, banked_commands))
def advance(horizon: int, budget: int, m: Counters, queues: Counters) -> tuple[int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It returns earlier after about ``budget`` requests, so that signals are handled, or if queues
    are full. ``queues`` are rings of waiting reads and writes of each channel.

    Returns:
        The last cycle to process; if fewer have been processed, call again.
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
    """Return the cycle before the next bundle, and the number of cycles without an answer.

    Read data come later than their command, and a write is answered after its last request.
    """
    before = c.FAR
    cycles = c.LEAST_ANSWER + m[c.CL] + m[c.BURST_CYCLES]
    ending = m[c.UNSERVED_WRITES]
    for at in range(m[c.ACTIVE_AT], m[c.ACTIVE_AT] + count):
        client = m[c.CLIENTS_AT] + m[at] * c.CLIENT_COLUMNS
        before = min(before, m[client + c.NEXT_BUNDLE] - 1)
        if m[client + c.WRITE]:
            ending -= m[client + c.OPEN] - m[client + c.LEFT]
            bundles = -(-m[client + c.LEFT] // m[c.PER_BUNDLE])
            cycles = min(cycles, c.LEAST_ANSWER - 1 + bundles)
    return before, c.LEAST_ANSWER if ending else cycles


def _gather(count: int, cycle: int, m: Counters, queues: Counters) -> int:
    """Let each of ``count`` clients hand over a bundle; return how many have more."""
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


@partial(MachineCode, uses=(c, banked_commands))
def settle(cycle: int, m: Counters) -> tuple[int]:
    """Count all cycles before ``cycle``, or up to the progress of the channels; called last."""
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


def serve(ch: int, until: int, m: Counters, queues: Counters) -> None:
    """Advance a channel up to ``until``; all earlier requests are known."""
    row, column = m[ch + c.ROW_KEY], m[ch + c.COLUMN_KEY]
    while m[ch + c.NEXT] <= until:
        due = m[ch + c.NEXT_REFRESH]
        if m[ch + c.NEXT] >= due and not _active(ch, m):
            refresh(ch, m)
            row, column = c.EMPTY, c.EMPTY
            continue
        known = min(row, column)
        if known == c.EMPTY or known >> c.CYCLE_SHIFT >= due:
            row, column = _next(ch, m)
        comes, write = coming(ch, m)
        # Who comes in before may go before.
        while comes < min(min(row, column) >> c.CYCLE_SHIFT, until) and (
            comes + 1 < due or _active(ch, m)
        ):
            mode = m[ch + c.MODE]
            age = m[ch + c.SEQUENCE]
            slot = admit(ch, comes, write, m, queues)
            # A key is worth nothing where a channel has turned, or counts ages anew.
            if m[ch + c.MODE] != mode or m[ch + c.SEQUENCE] <= age or m[c.FIRST_COME]:
                row, column = _next(ch, m)
            elif write == mode:
                row, column = _with(ch, slot, row, column, m)
            comes, write = coming(ch, m)
        cycle = min(row, column) >> c.CYCLE_SHIFT
        m[ch + c.NEXT] = min(cycle, comes + 1)
        if cycle <= until and (cycle < due or _active(ch, m)):
            keep_up(ch, cycle, m)
            mode = m[ch + c.MODE]
            row, column = _go(ch, row, column, m)
            if m[ch + c.MODE] != mode:
                row, column = c.EMPTY, c.EMPTY
    m[ch + c.ROW_KEY], m[ch + c.COLUMN_KEY] = row, column


def _go(ch: int, row: int, column: int, m: Counters) -> tuple[int, int]:
    """Issue the first command; return the keys of the next ones, EMPTY if unknown.

    Row commands and columns have separate slots: the second-best of the issued kind, for another
    bank, is next.
    """
    cycle = min(row, column) >> c.CYCLE_SHIFT
    if column < row:
        bank = read_or_write(ch, column & c.SLOT_MASK, cycle, m)
        # Whose turn comes now, in the order of coming, may have been ready for long.
        m[ch + c.ROWS_FROM] = max(m[ch + c.ROWS_FROM], cycle)
        follows = row >> c.CYCLE_SHIFT < m[ch + c.COLUMNS_FROM] and _bank(ch, row, m) != bank
        return (row if follows else c.EMPTY), c.EMPTY
    bank = _open_or_close(ch, row & c.SLOT_MASK, cycle, m)
    m[ch + c.COLUMNS_FROM] = max(m[ch + c.COLUMNS_FROM], cycle)
    follows = column >> c.CYCLE_SHIFT < m[ch + c.ROWS_FROM] and _bank(ch, column, m) != bank
    return c.EMPTY, (column if follows else c.EMPTY)


def _active(ch: int, m: Counters) -> int:
    return m[ch + c.ACTIVE_READS] + m[ch + c.ACTIVE_WRITES]  # type: ignore[no-any-return]


def _bank(ch: int, key: int, m: Counters) -> int:
    slot = key & c.SLOT_MASK
    return m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.BANK]  # type: ignore[no-any-return]


def _next(ch: int, m: Counters) -> tuple[int, int]:
    """Return the keys of the first row command and the first column, with their cycles.

    Requests whose row was opened for them may go even while others wait for a refresh or a turn.
    """
    writes = m[ch + c.MODE]
    row, column = _least(ch, writes, 0, m)
    if m[ch + c.ACTIVE_WRITES - writes]:
        other_row, other_column = _least(ch, 1 - writes, c.INACTIVE, m)
        row, column = min(row, other_row), min(column, other_column)
    if min(row, column) >> c.CYCLE_SHIFT >= m[ch + c.NEXT_REFRESH] and _active(ch, m):
        row, column = _least(ch, 0, c.INACTIVE, m)
        other_row, other_column = _least(ch, 1, c.INACTIVE, m)
        row, column = min(row, other_row), min(column, other_column)
    return row, column


def _with(ch: int, slot: int, row: int, column: int, m: Counters) -> tuple[int, int]:
    new_row, new_column = _of_slot(ch, slot, m)
    if min(new_row, new_column) >> c.CYCLE_SHIFT >= m[ch + c.NEXT_REFRESH] and _active(ch, m):
        return row, column
    return min(row, new_row), min(column, new_column)


def _of_slot(ch: int, slot: int, m: Counters) -> tuple[int, int]:
    at = m[ch + c.SLOTS_AT] + slot
    gate = m[at + m[c.SLOTS]]
    since = m[ch + c.MODE_FROM]
    cycle = max(m[at], m[gate], since)
    order = m[at + 2 * m[c.SLOTS]]
    if gate < m[ch + c.GATES_AT] + 2 * m[c.CHANNEL_GROUPS]:
        return c.EMPTY, max(cycle, m[ch + c.COLUMNS_FROM]) << c.CYCLE_SHIFT | order
    return max(cycle, m[ch + c.ROWS_FROM]) << c.CYCLE_SHIFT | order, c.EMPTY


def _least(ch: int, write: int, barred: int, m: Counters) -> tuple[int, int]:
    """Return the least keys in a window, without those that have the bit ``barred``."""
    slots = m[c.SLOTS]
    first = m[ch + c.SLOTS_AT] + write * m[c.READ_SLOTS]
    last = first + m[c.READ_SLOTS + write]
    if m[c.FIRST_COME]:
        least = c.EMPTY
        for at in range(first, last):
            order = m[at + 2 * slots]
            least = min(least, order | (order & barred) << c.BARRED_SHIFT)
        return (c.EMPTY, c.EMPTY) if least >= c.BARRED else _of_slot(ch, least & c.SLOT_MASK, m)
    since = 0 if barred else m[ch + c.MODE_FROM]
    columns = m[ch + c.GATES_AT] + 2 * m[c.CHANNEL_GROUPS]
    rows_from = max(since, m[ch + c.ROWS_FROM])
    columns_from = max(since, m[ch + c.COLUMNS_FROM])
    row = c.EMPTY
    column = c.EMPTY
    # Every request is looked at for every command: without branches, eight at a time.
    for at in range(first, last):
        gate = m[at + slots]
        cycle = max(m[at], m[gate])
        order = m[at + 2 * slots]
        order |= (order & barred) << c.BARRED_SHIFT
        row_key = max(cycle, rows_from) << c.CYCLE_SHIFT | order
        column_key = max(cycle, columns_from) << c.CYCLE_SHIFT | order
        row = min(row, c.EMPTY if gate < columns else row_key)
        column = min(column, column_key if gate < columns else c.EMPTY)
    return row, column


def _open_or_close(ch: int, slot: int, cycle: int, m: Counters) -> int:
    bank: int = m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.BANK]
    if m[bank + c.OPEN_ROW] == c.NONE:
        activate(ch, slot, cycle, m)
    else:
        precharge(ch, slot, cycle, m)
    return bank
