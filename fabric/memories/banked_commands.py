"""Commands of a channel of the banked memory: what each takes, and what has to wait for it."""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import account, fill, fill_one, free_column, keep_four
from fabric.memories.banked_windows import leave

__all__ = ["activate", "column_from", "note", "read_or_write", "refresh"]


def column_from(
    bank: int, write: int, pseudos: Counters, groups: Counters, banks: Counters, s: Counters
) -> int:
    """Return the first cycle for a column of the open row: its row, and the bus that turns."""
    opened: int = banks[bank + c.WRITE_FROM if write else bank + c.READ_FROM]
    return max(opened, _turned(bank, write, pseudos, groups, banks, s))


def _turned(
    bank: int, write: int, pseudos: Counters, groups: Counters, banks: Counters, s: Counters
) -> int:
    """Return the first cycle for a column of its kind after those of the other."""
    pseudo = banks[bank + c.PSEUDO] * c.PSEUDO_COLUMNS
    if write:
        gap: int = s[c.CL] + s[c.BURST_CYCLES] + 2 - s[c.CWL]
        after: int = pseudos[pseudo + c.LAST_READ] + gap
        return after
    written: int = s[c.CWL] + s[c.BURST_CYCLES]
    turned: int = pseudos[pseudo + c.LAST_WRITE] + written + s[c.WTR_S]
    in_group: int = groups[banks[bank + c.GROUP]] + written + s[c.WTR_L]
    return max(turned, in_group)


def activate(
    ch: int,
    bank: int,
    cycle: int,
    channels: Counters,
    banks: Counters,
    buses: Counters,
    s: Counters,
) -> None:
    """Open a row in the slots from ``cycle`` on; it counts from the second one on."""
    pseudo_lane = banks[bank + c.PSEUDO_LANE]
    fill(ch, c.ROW_SLOTS, cycle, cycle + 1, channels, buses, s)
    counts = cycle + 1
    short = s[c.RRD_S] - 1
    barred = pseudo_lane + c.NO_ACTIVATION
    fill(ch, barred, counts - short, counts + short, channels, buses, s)
    if s[c.RRD_L] > s[c.RRD_S]:
        long = s[c.RRD_L] - 1
        in_group = banks[bank + c.GROUP_LANE] + c.GROUP_NO_ACTIVATION
        fill(ch, in_group, counts - long, counts + long, channels, buses, s)
    if s[c.FAW] > 4 * s[c.RRD_S]:
        fill_one(ch, pseudo_lane + c.ACTIVATED, counts, buses, s)
        keep_four(ch, pseudo_lane, counts, channels, buses, s)
    banks[bank + c.READ_FROM] = counts + s[c.RCD_READ]
    banks[bank + c.WRITE_FROM] = counts + s[c.RCD_WRITE]
    banks[bank + c.PRECHARGE_FROM] = counts + s[c.RAS]
    banks[bank + c.ACTIVATE_FROM] = cycle + s[c.RC]


def read_or_write(
    ch: int,
    bank: int,
    cycle: int,
    write: int,
    opens: bool,
    channels: Counters,
    pseudos: Counters,
    groups: Counters,
    banks: Counters,
    entries: Counters,
    buses: Counters,
    log: Counters,
    control: Counters,
    s: Counters,
) -> None:
    """Read or write the bursts of a request, the first of them in ``cycle``."""
    pseudo_lane = banks[bank + c.PSEUDO_LANE]
    group_lane = banks[bank + c.GROUP_LANE]
    pseudo = banks[bank + c.PSEUDO] * c.PSEUDO_COLUMNS
    last_of_kind = pseudos[pseudo + c.LAST_WRITE if write else pseudo + c.LAST_READ]
    last_of_other = pseudos[pseudo + c.LAST_READ if write else pseudo + c.LAST_WRITE]
    if last_of_other > last_of_kind:
        first = last_of_other + s[c.BURST_CYCLES]
        turned = min(cycle, _turned(bank, write, pseudos, groups, banks, s))
        fill(ch, pseudo_lane + c.TURNS, first, turned - 1, channels, buses, s)
    near, near_in_group = s[c.PSEUDO_GAP] - 1, s[c.GROUP_GAP] - 1
    number = bank // c.BANK_COLUMNS - ch * s[c.CHANNEL_BANKS]
    last = cycle
    for burst in range(s[c.BURSTS]):
        if burst:
            last = free_column(ch, pseudo_lane, group_lane, last + s[c.GROUP_GAP], buses, s)
        fill_one(ch, c.COLUMN_SLOTS, last, buses, s)
        fill(ch, pseudo_lane + c.NO_COLUMN, last - near, last + near, channels, buses, s)
        barred = group_lane + c.NO_COLUMN
        fill(ch, barred, last - near_in_group, last + near_in_group, channels, buses, s)
        carries = pseudo_lane + c.CARRIES
        fill(ch, carries, last, last + s[c.BURST_CYCLES] - 1, channels, buses, s)
        # The one for which a row is opened has waited elsewhere since.
        if burst or not opens:
            leave(ch, write, last, channels, entries, s)
        what = c.READS_COLUMN + write
        note(ch, what, last, number, banks[bank + c.OPEN_ROW], log, control, s)
    if write:
        pseudos[pseudo + c.LAST_WRITE] = max(pseudos[pseudo + c.LAST_WRITE], last)
        group = banks[bank + c.GROUP]
        groups[group] = max(groups[group], last)
        held = last + s[c.CWL] + s[c.BURST_CYCLES] + s[c.WR]
    else:
        pseudos[pseudo + c.LAST_READ] = max(pseudos[pseudo + c.LAST_READ], last)
        held = last + s[c.RTP]
    banks[bank + c.PRECHARGE_FROM] = max(banks[bank + c.PRECHARGE_FROM], held)


def refresh(
    ch: int,
    channels: Counters,
    banks: Counters,
    buses: Counters,
    periods: Counters,
    log: Counters,
    control: Counters,
    s: Counters,
) -> None:
    """Close all banks of a channel as soon as their rows allow, and refresh them."""
    row = ch * c.CHANNEL_COLUMNS
    due = channels[row + c.NEXT_REFRESH]
    account(ch, due, channels, buses, periods, control, s)
    first = ch * s[c.CHANNEL_BANKS]
    closed = max(due, channels[row + c.CLOCKED], channels[row + c.HELD])
    for each in range(first, first + s[c.CHANNEL_BANKS]):
        bank = each * c.BANK_COLUMNS
        if banks[bank + c.OPEN_ROW] != c.NO_ROW:
            closed = max(closed, banks[bank + c.PRECHARGE_FROM])
    begin = closed + s[c.RP]
    end = begin + s[c.RFC]
    for each in range(first, first + s[c.CHANNEL_BANKS]):
        bank = each * c.BANK_COLUMNS
        banks[bank + c.OPEN_ROW] = c.NO_ROW
        banks[bank + c.ACTIVATE_FROM] = end
    note(ch, c.PRECHARGES_ALL, closed, 0, 0, log, control, s)
    note(ch, c.REFRESHES, begin, 0, 0, log, control, s)
    channels[row + c.RESUME] = end
    account(ch, end, channels, buses, periods, control, s)
    channels[row + c.NEXT] = end
    channels[row + c.NEXT_REFRESH] = due + s[c.REFI]


def note(
    ch: int,
    what: int,
    cycle: int,
    bank: int,
    row: int,
    log: Counters,
    control: Counters,
    s: Counters,
) -> None:
    """Write a command down, where somebody wants to know."""
    if s[c.LOGS]:
        at = (control[c.LOGGED] * c.LOG_COLUMNS) % log.size
        log[at + c.LOG_CYCLE] = cycle
        log[at + c.LOG_CHANNEL] = ch
        log[at + c.LOG_WHAT] = what
        log[at + c.LOG_BANK] = bank
        log[at + c.LOG_ROW] = row
        control[c.LOGGED] += 1
