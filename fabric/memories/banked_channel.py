"""What a channel of the banked memory does: chooses a request, reserves its slots, refreshes.

Of the requests in its window it takes the one whose next command can go first, of equal ones the
oldest, and reserves the slots of all its commands: so it goes on from request to request, not from
cycle to cycle. Bounds of the others only grow, and are looked at again where they would decide.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import (
    account,
    fill_one,
    free_activation,
    free_column,
    free_slot,
)
from fabric.memories.banked_commands import activate, column_from, note, read_or_write, refresh
from fabric.memories.banked_windows import admit, coming, leave, turn

__all__ = ["serve"]


def serve(
    ch: int,
    until: int,
    finished: int,
    clients: Counters,
    channels: Counters,
    pseudos: Counters,
    groups: Counters,
    banks: Counters,
    windows: Counters,
    bounds: Counters,
    entries: Counters,
    queues: Counters,
    buses: Counters,
    periods: Counters,
    done: Counters,
    log: Counters,
    control: Counters,
    s: Counters,
) -> int:
    """Let a channel go on while the next command of one of its requests goes by ``until``.

    Returns:
        How many clients are done.
    """
    row = ch * c.CHANNEL_COLUMNS
    while channels[row + c.NEXT] <= until:
        slot, cycle = _next(ch, channels, pseudos, groups, banks, windows, bounds, buses, s)
        comes, write = coming(ch, channels, entries, queues, control, s)
        # Who comes in before may go before.
        while comes < cycle - 1 and comes < until:
            new = admit(ch, comes, write, channels, windows, bounds, queues, buses, control, s)
            mode = channels[row + c.MODE]
            turn(ch, comes + 1, channels, entries, s)
            if channels[row + c.MODE] != mode or s[c.FIRST_COME]:
                slot, cycle = _next(ch, channels, pseudos, groups, banks, windows, bounds, buses, s)
            elif write == mode:
                bound = _bound(
                    ch, new, write, channels, pseudos, groups, banks, windows, bounds, buses, s
                )
                if bound < cycle:
                    slot, cycle = new, bound
            comes, write = coming(ch, channels, entries, queues, control, s)
        channels[row + c.NEXT] = min(cycle, comes + 1)
        if cycle <= until:
            if cycle >= channels[row + c.NEXT_REFRESH]:
                refresh(ch, channels, banks, buses, periods, log, control, s)
            else:
                finished = _commit(
                    ch,
                    slot,
                    cycle,
                    finished,
                    clients,
                    channels,
                    pseudos,
                    groups,
                    banks,
                    windows,
                    bounds,
                    entries,
                    buses,
                    periods,
                    done,
                    log,
                    control,
                    s,
                )
    return finished


def _next(
    ch: int,
    channels: Counters,
    pseudos: Counters,
    groups: Counters,
    banks: Counters,
    windows: Counters,
    bounds: Counters,
    buses: Counters,
    s: Counters,
) -> tuple[int, int]:
    """Return the request that has its turn, and the cycle of its next command."""
    write = channels[ch * c.CHANNEL_COLUMNS + c.MODE]
    start = ch * (s[c.READ_WINDOW] + s[c.WRITE_WINDOW]) + write * s[c.READ_WINDOW]
    end = start + s[c.READ_WINDOW + write]
    chosen = -1
    best = c.FAR
    age = c.FAR
    if s[c.FIRST_COME]:
        for slot in range(start, end):
            if bounds[slot] < c.FAR and windows[slot * c.REQUEST_COLUMNS + c.AGE] < age:
                chosen = slot
                age = windows[slot * c.REQUEST_COLUMNS + c.AGE]
        if chosen >= 0:
            best = _bound(
                ch, chosen, write, channels, pseudos, groups, banks, windows, bounds, buses, s
            )
        return chosen, best
    for slot in range(start, end):
        if bounds[slot] <= best and bounds[slot] < c.FAR:
            cycle = _bound(
                ch, slot, write, channels, pseudos, groups, banks, windows, bounds, buses, s
            )
            its_age = windows[slot * c.REQUEST_COLUMNS + c.AGE]
            if cycle < best or (cycle == best and its_age < age):
                best = cycle
                chosen = slot
                age = its_age
    return chosen, best


def _bound(
    ch: int,
    slot: int,
    write: int,
    channels: Counters,
    pseudos: Counters,
    groups: Counters,
    banks: Counters,
    windows: Counters,
    bounds: Counters,
    buses: Counters,
    s: Counters,
) -> int:
    """Return the first cycle in which the next command of a request can go."""
    row = ch * c.CHANNEL_COLUMNS
    at = slot * c.REQUEST_COLUMNS
    bank = (ch * s[c.CHANNEL_BANKS] + windows[at + c.BANK]) * c.BANK_COLUMNS
    cycle: int = max(bounds[slot], channels[row + c.CLOCKED], channels[row + c.MODE_FROM])
    opened = banks[bank + c.OPEN_ROW]
    pseudo_lane = banks[bank + c.PSEUDO_LANE]
    if opened == windows[at + c.ROW]:
        cycle = max(cycle, column_from(bank, write, pseudos, groups, banks, s))
        cycle = free_column(ch, pseudo_lane, banks[bank + c.GROUP_LANE], cycle, buses, s)
    elif opened == c.NO_ROW:
        cycle = max(cycle, banks[bank + c.ACTIVATE_FROM])
        cycle = free_activation(ch, pseudo_lane, banks[bank + c.GROUP_LANE], cycle, buses, s)
    else:
        cycle = max(cycle, banks[bank + c.PRECHARGE_FROM])
        cycle = free_slot(ch, c.ROW_SLOTS, cycle, buses, s)
    bounds[slot] = cycle
    if windows[at + c.PUT_OFF] == channels[row + c.NEXT_REFRESH]:
        cycle = max(cycle, channels[row + c.NEXT_REFRESH])
    return cycle


def _commit(  # noqa: PLR0915 - one request, command after command
    ch: int,
    slot: int,
    cycle: int,
    finished: int,
    clients: Counters,
    channels: Counters,
    pseudos: Counters,
    groups: Counters,
    banks: Counters,
    windows: Counters,
    bounds: Counters,
    entries: Counters,
    buses: Counters,
    periods: Counters,
    done: Counters,
    log: Counters,
    control: Counters,
    s: Counters,
) -> int:
    """Reserve the slots of all commands of a request, the first of them in ``cycle``.

    It is put off where they would not be over before the next refresh.

    Returns:
        How many clients are done.
    """
    row = ch * c.CHANNEL_COLUMNS
    write = channels[row + c.MODE]
    at = slot * c.REQUEST_COLUMNS
    number = windows[at + c.BANK]
    bank = (ch * s[c.CHANNEL_BANKS] + number) * c.BANK_COLUMNS
    wanted = windows[at + c.ROW]
    opened = banks[bank + c.OPEN_ROW]
    pseudo_lane = banks[bank + c.PSEUDO_LANE]
    group_lane = banks[bank + c.GROUP_LANE]
    activation = c.NONE
    column = cycle
    if opened != wanted:
        activation = cycle
        if opened != c.NO_ROW:
            activation = max(cycle + s[c.RP], banks[bank + c.ACTIVATE_FROM])
            activation = free_activation(ch, pseudo_lane, group_lane, activation, buses, s)
        column = activation + 1 + s[c.RCD_READ + write]
        column = max(column, column_from(bank, write, pseudos, groups, banks, s))
        column = free_column(ch, pseudo_lane, group_lane, column, buses, s)
    last = column
    for _ in range(s[c.BURSTS] - 1):
        last = free_column(ch, pseudo_lane, group_lane, last + s[c.GROUP_GAP], buses, s)
    if last >= channels[row + c.NEXT_REFRESH]:
        windows[at + c.PUT_OFF] = channels[row + c.NEXT_REFRESH]
        if c.NONE < activation < channels[row + c.NEXT_REFRESH]:
            # Its row is opened for nothing, and stays open as long as rows have to.
            held = activation + 1 + s[c.RAS]
            channels[row + c.HELD] = max(channels[row + c.HELD], held)
        return finished
    account(ch, cycle, channels, buses, periods, control, s)
    client = windows[at + c.CLIENT] * c.CLIENT_COLUMNS
    met = c.HITS
    if activation != c.NONE:
        met = c.MISSES
        if opened != c.NO_ROW:
            met = c.CONFLICTS
            fill_one(ch, c.ROW_SLOTS, cycle, buses, s)
            note(ch, c.PRECHARGES, cycle, number, opened, log, control, s)
        activate(ch, bank, activation, channels, banks, buses, s)
        leave(ch, write, activation + 1, channels, entries, s)
        banks[bank + c.OPEN_ROW] = wanted
        note(ch, c.ACTIVATES, activation + 1, number, wanted, log, control, s)
    read_or_write(
        ch,
        bank,
        column,
        write,
        activation != c.NONE,
        channels,
        pseudos,
        groups,
        banks,
        entries,
        buses,
        log,
        control,
        s,
    )
    ready = last if write else last + s[c.CL] + s[c.BURST_CYCLES]
    clients[client + c.READY] = max(clients[client + c.READY], ready)
    clients[client + met] += 1
    clients[client + c.QUEUED] += windows[at + c.ADMITTED] - windows[at + c.ARRIVED]
    clients[client + c.WAITED] += cycle - windows[at + c.ADMITTED]
    clients[client + c.SERVED] += ready - cycle
    clients[client + c.OPEN] -= 1
    if clients[client + c.OPEN] == 0:
        done[finished] = windows[at + c.CLIENT]
        finished += 1
    channels[row + c.ROW_HITS + met - c.HITS] += 1
    channels[row + c.SERVED_READS + write] += 1
    channels[row + c.READS + write] -= 1
    control[c.UNSERVED] -= 1
    control[c.UNSERVED_WRITES] -= write
    bounds[slot] = c.FAR
    if channels[row + c.READS] + channels[row + c.WRITES] == 0:
        channels[row + c.WAITS_SINCE] = c.FAR
    turn(ch, cycle, channels, entries, s)
    return finished
