"""Commands of a channel of the banked memory: what each takes, and what has to wait for it."""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import account, fill, free_column, keep_four, mark
from fabric.memories.banked_windows import leave

__all__ = ["activate", "column_from", "precharge", "read_or_write", "refresh"]


def column_from(bank: int, write: int, m: Counters) -> int:
    """Return the first cycle for a column of the open row: its row, and the bus that turns."""
    opened: int = m[bank + c.READ_FROM + write]
    return max(opened, _turned(bank, write, m))


def _turned(bank: int, write: int, m: Counters) -> int:
    """Return the first cycle for a column of its kind after those of the other."""
    pseudo = m[bank + c.PSEUDO]
    if write:
        gap: int = m[c.CL] + m[c.BURST_CYCLES] + 2 - m[c.CWL]
        return m[pseudo + c.LAST_READ] + gap  # type: ignore[no-any-return]
    written: int = m[c.CWL] + m[c.BURST_CYCLES]
    turned: int = m[pseudo + c.LAST_WRITE] + written + m[c.WTR_S]
    in_group: int = m[m[bank + c.GROUP]] + written + m[c.WTR_L]
    return max(turned, in_group)


def precharge(ch: int, bank: int, cycle: int, m: Counters) -> None:
    """Close the row of a bank."""
    mark(ch, c.ROW_SLOTS, cycle, 1, m)
    _note(ch, c.PRECHARGES, cycle, bank, m)


def activate(ch: int, bank: int, row: int, cycle: int, m: Counters) -> None:
    """Open a row in the slots from ``cycle`` on; it counts from the second one on."""
    mark(ch, c.ROW_SLOTS, cycle, 3, m)
    counts = cycle + 1
    pseudo_lane = m[bank + c.PSEUDO_LANE]
    _bar(ch, pseudo_lane + c.NO_ACTIVATION, counts, m[c.RRD_S], m)
    if m[c.RRD_L] > m[c.RRD_S]:
        _bar(ch, m[bank + c.GROUP_LANE] + c.GROUP_NO_ACTIVATION, counts, m[c.RRD_L], m)
    if m[c.FAW] > 4 * m[c.RRD_S]:
        mark(ch, pseudo_lane + c.ACTIVATED, counts, 1, m)
        keep_four(ch, pseudo_lane, counts, m)
    m[bank + c.OPEN_ROW] = row
    m[bank + c.READ_FROM] = counts + m[c.RCD_READ]
    m[bank + c.WRITE_FROM] = counts + m[c.RCD_WRITE]
    m[bank + c.PRECHARGE_FROM] = counts + m[c.RAS]
    m[bank + c.ACTIVATE_FROM] = cycle + m[c.RC]
    _note(ch, c.ACTIVATES, counts, bank, m)


def read_or_write(ch: int, bank: int, cycle: int, write: int, opens: bool, m: Counters) -> None:
    """Read or write the bursts of a request, the first of them in ``cycle``.

    Args:
        ch: the channel.
        bank: of it.
        cycle: a free one.
        write: 1 where it writes.
        opens: the row has been opened for it: its first burst has left the window.
        m: see ``banked_columns``.
    """
    pseudo = m[bank + c.PSEUDO]
    pseudo_lane = m[bank + c.PSEUDO_LANE]
    if m[pseudo + c.LAST_READ - write] < m[pseudo + c.LAST_WRITE + write]:
        first = m[pseudo + c.LAST_WRITE + write] + m[c.BURST_CYCLES]
        turned = min(cycle, _turned(bank, write, m))
        fill(ch, pseudo_lane + c.TURNS, first, turned - 1, m)
    last = cycle
    for burst in range(m[c.BURSTS]):
        if burst:
            last = free_column(ch, bank, last + m[c.GROUP_GAP], m)
        mark(ch, c.COLUMN_SLOTS, last, 1, m)
        _bar(ch, pseudo_lane + c.NO_COLUMN, last, m[c.PSEUDO_GAP], m)
        _bar(ch, m[bank + c.GROUP_LANE] + c.NO_COLUMN, last, m[c.GROUP_GAP], m)
        fill(ch, pseudo_lane + c.CARRIES, last, last + m[c.BURST_CYCLES] - 1, m)
        # The one for which a row is opened has waited elsewhere since.
        if burst or not opens:
            leave(ch, write, last, m)
        _note(ch, c.READS_COLUMN + write, last, bank, m)
    if write:
        m[pseudo + c.LAST_WRITE] = max(m[pseudo + c.LAST_WRITE], last)
        group = m[bank + c.GROUP]
        m[group] = max(m[group], last)
        held = last + m[c.CWL] + m[c.BURST_CYCLES] + m[c.WR]
    else:
        m[pseudo + c.LAST_READ] = max(m[pseudo + c.LAST_READ], last)
        held = last + m[c.RTP]
    m[bank + c.PRECHARGE_FROM] = max(m[bank + c.PRECHARGE_FROM], held)


def _bar(ch: int, lane: int, cycle: int, gap: int, m: Counters) -> None:
    """Bar from a lane what is less than ``gap`` cycles before or after ``cycle``."""
    if 2 * gap <= c.WORD:
        mark(ch, lane, cycle - gap + 1, (1 << (2 * gap - 1)) - 1, m)
    else:
        fill(ch, lane, cycle - gap + 1, cycle + gap - 1, m)


def refresh(ch: int, m: Counters) -> None:
    """Close all banks of a channel as soon as their rows allow, and refresh them."""
    due = m[ch + c.NEXT_REFRESH]
    account(ch, due, m)
    closed = max(due, m[ch + c.CLOCKED], m[ch + c.HELD])
    first = m[ch + c.BANKS_AT]
    end_of_banks = first + m[c.CHANNEL_BANKS] * c.BANK_COLUMNS
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        if m[bank + c.OPEN_ROW] != c.NONE:
            closed = max(closed, m[bank + c.PRECHARGE_FROM])
    begin = closed + m[c.RP]
    end = begin + m[c.RFC]
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        m[bank + c.OPEN_ROW] = c.NONE
        m[bank + c.ACTIVATE_FROM] = end
    _note(ch, c.PRECHARGES_ALL, closed, first, m)
    _note(ch, c.REFRESHES, begin, first, m)
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
