"""Commands of a channel of the banked memory: what each takes, and what has to wait for it.

Commands go in the order of their cycles: what others have to wait for is the cycle from which on
they can go. A gate is what all banks of a group share; their own cycles are kept with the bank.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_bus import account, fill
from fabric.memories.banked_windows import classify, leave, release

__all__ = ["activate", "precharge", "read_or_write", "refresh"]


def precharge(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Close the row that is open in the bank of a request."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank = m[at + c.BANK]
    _note(ch, c.PRECHARGES, cycle, bank, m)
    m[at + c.MET] = c.CONFLICTS
    m[bank + c.OPEN_ROW] = c.NONE
    m[bank + c.ACTIVATE_FROM] = max(m[bank + c.ACTIVATE_FROM], cycle + m[c.RP])
    m[ch + c.ROWS_FROM] = cycle + 1
    _classify_all(ch, bank, m)


def activate(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Open a row for a request in the slots from ``cycle`` on; it counts from the second one on."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank = m[at + c.BANK]
    pseudo = m[bank + c.PSEUDO]
    m[at + c.MET] = max(m[at + c.MET], c.MISSES)
    counts = cycle + 1
    m[ch + c.ROWS_FROM] = cycle + 2
    until = cycle + m[c.RRD_S]
    if m[c.FAW] > 4 * m[c.RRD_S]:
        # The fourth activation from this one on.
        four = pseudo + c.ACTIVATED
        until = max(until, m[four + 1] + m[c.FAW])
        for each in range(3):
            m[four + each] = m[four + each + 1]
        m[four + 3] = cycle
    gates = m[ch + c.GATES_AT] + 2 * m[c.CHANNEL_GROUPS] + m[pseudo + c.FIRST_GROUP]
    for gate in range(gates, gates + m[c.GROUPS]):
        m[gate] = max(m[gate], until)
    gate = m[bank + c.GATE_OF] + 2 * m[c.CHANNEL_GROUPS]
    m[gate] = max(m[gate], cycle + m[c.RRD_L])
    m[bank + c.OPEN_ROW] = m[at + c.ROW]
    m[bank + c.READ_FROM] = counts + m[c.RCD_READ]
    m[bank + c.WRITE_FROM] = counts + m[c.RCD_WRITE]
    # A row is not closed before it has served the request that it is opened for.
    m[bank + c.PRECHARGE_FROM] = c.BLOCKED
    m[bank + c.HELD] = counts + m[c.RAS]
    m[bank + c.ACTIVATE_FROM] = cycle + m[c.RC]
    _note(ch, c.ACTIVATES, counts, bank, m)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    write = int(slot >= m[c.READ_SLOTS])
    m[order] -= c.INACTIVE
    m[ch + c.ACTIVE_READS + write] += 1
    release(ch, write, counts, m)
    _classify_all(ch, bank, m)


def read_or_write(ch: int, slot: int, cycle: int, m: Counters) -> int:
    """Read or write the next burst of a request; return its bank."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank: int = m[at + c.BANK]
    write = int(slot >= m[c.READ_SLOTS])
    pseudo = m[bank + c.PSEUDO]
    _note(ch, c.READS_COLUMN + write, cycle, bank, m)
    last = cycle + m[c.BURST_CYCLES] - 1
    fill(ch, m[pseudo + c.PSEUDO_LANE] + c.CARRIES, cycle, last, m)
    _shut_columns(ch, bank, write, cycle, m)
    m[pseudo + c.LAST_READ - write] = cycle
    held = cycle + (m[c.CWL] + m[c.BURST_CYCLES] + m[c.WR] if write else m[c.RTP])
    m[bank + c.HELD] = max(m[bank + c.HELD], held)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    if m[order] & c.INACTIVE:
        release(ch, write, cycle, m)
    else:
        m[order] += c.INACTIVE
        m[bank + c.PRECHARGE_FROM] = m[bank + c.HELD]
        m[ch + c.ACTIVE_READS + write] -= 1
    m[at + c.LEFT_BURSTS] -= 1
    if m[at + c.LEFT_BURSTS] == 0:
        leave(ch, slot, cycle, m)
        ready = cycle if write else cycle + m[c.CL] + m[c.BURST_CYCLES]
        _serve_client(ch, at, write, ready, m)
    if m[bank + c.PRECHARGE_FROM] != c.BLOCKED:
        m[bank + c.PRECHARGE_FROM] = m[bank + c.HELD]
    if m[bank + c.FIRST] != slot or m[at + c.FOLLOWING] != c.NONE:
        # Others may want another row.
        _classify_all(ch, bank, m)
    return bank


def _shut_columns(ch: int, bank: int, write: int, cycle: int, m: Counters) -> None:
    """Let columns wait after one in ``cycle``: for their slot, and for the bus, which may turn."""
    m[ch + c.COLUMNS_FROM] = cycle + 1
    groups = m[c.CHANNEL_GROUPS]
    first = m[ch + c.GATES_AT] + m[m[bank + c.PSEUDO] + c.FIRST_GROUP]
    alike = first + write * groups
    for gate in range(alike, alike + m[c.GROUPS]):
        m[gate] = max(m[gate], cycle + m[c.PSEUDO_GAP])
    own = m[bank + c.GATE_OF] + write * groups
    m[own] = max(m[own], cycle + m[c.GROUP_GAP])
    other = first + (1 - write) * groups
    own = m[bank + c.GATE_OF] + (1 - write) * groups
    if write:
        written = cycle + m[c.CWL] + m[c.BURST_CYCLES]
        m[own] = max(m[own], written + m[c.WTR_L])
        turned = written + m[c.WTR_S]
    else:
        turned = cycle + m[c.CL] + m[c.BURST_CYCLES] + 2 - m[c.CWL]
    for gate in range(other, other + m[c.GROUPS]):
        m[gate] = max(m[gate], turned)


def _classify_all(ch: int, bank: int, m: Counters) -> None:
    """Look at the requests to a bank again, whose state has changed."""
    slot = m[bank + c.FIRST]
    while slot != c.NONE:
        classify(ch, slot, bank, m)
        slot = m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.FOLLOWING]


def _serve_client(ch: int, at: int, write: int, ready: int, m: Counters) -> None:
    """Count a request that is served, for its channel and its client."""
    client = m[at + c.CLIENT]
    row = m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS
    met = m[at + c.MET]
    m[ch + c.ROW_HITS + met - c.HITS] += 1
    m[ch + c.SERVED_READS + write] += 1
    m[c.UNSERVED] -= 1
    m[c.UNSERVED_WRITES] -= write
    m[row + c.READY] = max(m[row + c.READY], ready)
    m[row + met] += 1
    m[row + c.WAITED] += m[at + c.STARTED] - m[at + c.ADMITTED]
    m[row + c.SERVED] += ready - m[at + c.STARTED]
    m[row + c.OPEN] -= 1
    if m[row + c.OPEN] == 0:
        m[m[c.DONE_AT] + m[c.FINISHED]] = client
        m[c.FINISHED] += 1


def refresh(ch: int, m: Counters) -> None:
    """Close all banks of a channel as soon as their rows allow, and refresh them."""
    due = m[ch + c.NEXT_REFRESH]
    account(ch, due, m)
    closed = max(due, m[ch + c.ROWS_FROM])
    first = m[ch + c.BANKS_AT]
    end_of_banks = first + m[c.CHANNEL_BANKS] * c.BANK_COLUMNS
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        if m[bank + c.OPEN_ROW] != c.NONE:
            closed = max(closed, m[bank + c.HELD])
    begin = closed + m[c.RP]
    end = begin + m[c.RFC]
    _note(ch, c.PRECHARGES_ALL, closed, first, m)
    _note(ch, c.REFRESHES, begin, first, m)
    m[ch + c.ROWS_FROM] = end
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        m[bank + c.OPEN_ROW] = c.NONE
        m[bank + c.ACTIVATE_FROM] = end
        _classify_all(ch, bank, m)
    m[ch + c.RESUME] = end
    account(ch, end, m)
    m[ch + c.NEXT] = max(m[ch + c.NEXT], end)
    m[ch + c.NEXT_REFRESH] = due + m[c.REFI]


def _note(ch: int, what: int, cycle: int, bank: int, m: Counters) -> None:
    """Write a command down, where somebody wants to know."""
    if m[c.LOGS]:
        at = m[c.LOG_AT] + (m[c.LOGGED] % m[c.LOGS]) * c.LOG_COLUMNS
        m[at + c.LOG_CYCLE] = cycle
        m[at + c.LOG_CHANNEL] = m[ch + c.NUMBER]
        m[at + c.LOG_WHAT] = what
        m[at + c.LOG_BANK] = (bank - m[ch + c.BANKS_AT]) // c.BANK_COLUMNS
        m[at + c.LOG_ROW] = m[bank + c.OPEN_ROW]
        m[c.LOGGED] += 1
