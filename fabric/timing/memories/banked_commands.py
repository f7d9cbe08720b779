"""Commands of a channel of the banked memory, its windows and its buses.

A command delays others: each has a first cycle in which it can be issued. A gate has this cycle for
all banks of a group, and a bank has its own cycles.

A window has one entry per burst. The entry is free after the burst's command, or after the
activation for the burst. After an activation, the burst waits in its slot for the row.

The cycles of a bus are counted before the state of its channel changes.
"""

from __future__ import annotations

from typing import Final

from fabric.timing.memories import banked_rows as rows
from fabric.timing.memories.banked_rows import Bank, Channel, Pseudo, Queued, Request, Window, World

AGE_MASK: Final = (rows.INACTIVE - 1) & ~rows.SLOT_MASK
MOST_AGE: Final = AGE_MASK >> rows.SLOT_BITS
BANK_MASK: Final = (1 << rows.BANK_BITS) - 1


def precharge(w: World, channel: Channel, slot: int, cycle: int) -> None:
    """Close the row that is open in the bank of a request."""
    request = w.requests[slot]
    request.started = min(request.started, cycle)
    request.met = rows.CONFLICT
    bank = w.banks[request.bank]
    _note(w, channel, rows.PRECHARGE, cycle, bank)
    bank.open_row = rows.NONE
    bank.activate_from = max(bank.activate_from, cycle + w.dram.rp_cycles)
    channel.rows_from = cycle + 1
    _classify_all(w, bank)


def activate(w: World, channel: Channel, slot: int, cycle: int) -> None:
    """Open a row for a request. The command takes two cycles; the bank counts from the second."""
    dram = w.dram
    request = w.requests[slot]
    request.started = min(request.started, cycle)
    request.met = max(request.met, rows.MISS)
    bank = w.banks[request.bank]
    pseudo = w.pseudos[bank.pseudo]
    counts = cycle + 1
    channel.rows_from = cycle + 2
    until = cycle + dram.rrd_s_cycles
    if dram.faw_cycles > 4 * dram.rrd_s_cycles:
        # This is the fourth activation since ``activated_third``. The fifth has to wait.
        until = max(until, pseudo.activated_third + dram.faw_cycles)
        pseudo.activated_third = pseudo.activated_second
        pseudo.activated_second = pseudo.activated
        pseudo.activated = cycle
    _delay_groups(w, pseudo, rows.ACTIVATE, until)
    _delay(w, bank, rows.ACTIVATE, cycle + dram.rrd_l_cycles)
    bank.open_row = request.row
    bank.read_from = counts + dram.rcd_read_cycles
    bank.write_from = counts + dram.rcd_write_cycles
    # A row is not closed before it has served the request that it is opened for.
    bank.precharge_from = rows.BLOCKED
    bank.held = counts + dram.ras_cycles
    bank.activate_from = cycle + dram.rc_cycles
    _note(w, channel, rows.ACTIVATE, counts, bank)
    w.order[slot] -= rows.INACTIVE
    window = w.windows[2 * channel.number + request.write]
    window.active += 1
    channel.active += 1
    _release(w, channel, window, counts)
    _classify_all(w, bank)


def _delay(w: World, bank: Bank, what: int, until: int) -> None:
    """Delay a command in the group of a bank."""
    gate = bank.gate + what * w.memory.channel_groups
    w.gates[gate] = max(w.gates[gate], until)


def _delay_groups(w: World, pseudo: Pseudo, what: int, until: int) -> None:
    """Delay a command in all groups of a pseudo channel."""
    first = pseudo.first_gate + what * w.memory.channel_groups
    for gate in range(first, first + w.dram.bank_groups):
        w.gates[gate] = max(w.gates[gate], until)


def read_or_write(w: World, channel: Channel, slot: int, cycle: int) -> None:
    """Read or write the next burst of a request."""
    dram = w.dram
    request = w.requests[slot]
    request.started = min(request.started, cycle)
    write = request.write
    window = w.windows[2 * channel.number + write]
    bank = w.banks[request.bank]
    pseudo = w.pseudos[bank.pseudo]
    _note(w, channel, write, cycle, bank)
    account(w, channel, cycle)
    pseudo.data_end = cycle + dram.burst_cycles
    channel.columns_from = cycle + 1
    _delay_groups(w, pseudo, write, cycle + dram.ccd_s_cycles)
    _delay(w, bank, write, cycle + dram.ccd_l_cycles)
    if write:
        written = cycle + dram.cwl_cycles + dram.burst_cycles
        _delay_groups(w, pseudo, rows.READ, written + dram.wtr_s_cycles)
        _delay(w, bank, rows.READ, written + dram.wtr_l_cycles)
        pseudo.written = cycle
        bank.held = max(bank.held, written + dram.wr_cycles)
    else:
        # The bus has to turn before a write.
        turned = cycle + dram.cl_cycles + dram.burst_cycles + 2 - dram.cwl_cycles
        _delay_groups(w, pseudo, rows.WRITE, turned)
        pseudo.read = cycle
        bank.held = max(bank.held, cycle + dram.rtp_cycles)
    if w.order[slot] & rows.INACTIVE:
        _release(w, channel, window, cycle)
    else:
        w.order[slot] += rows.INACTIVE
        bank.precharge_from = bank.held
        window.active -= 1
        channel.active -= 1
    request.left_bursts -= 1
    if request.left_bursts == 0:
        _leave(w, channel, window, slot)
        _serve_port(w, channel, window, request, cycle)
    if bank.precharge_from != rows.BLOCKED:
        bank.precharge_from = bank.held
    if bank.newest != slot or request.following != rows.NONE:
        # Other requests to the bank may need another row.
        _classify_all(w, bank)


def _classify_all(w: World, bank: Bank) -> None:
    """Update the requests to a bank after its state has changed."""
    slot = bank.newest
    while slot != rows.NONE:
        request = w.requests[slot]
        _classify(w, slot, request, bank)
        slot = request.following


def _classify(w: World, slot: int, request: Request, bank: Bank) -> None:
    """Update the next command of a request, and when its bank can take the command."""
    if bank.open_row == rows.NONE:
        what, ready = rows.ACTIVATE, bank.activate_from
    elif bank.open_row != request.row:
        what, ready = rows.PRECHARGE, bank.precharge_from
    elif request.write:
        what, ready = rows.WRITE, bank.write_from
    else:
        what, ready = rows.READ, bank.read_from
    w.ready[slot] = ready
    w.gate[slot] = bank.gate + what * w.memory.channel_groups


def _serve_port(w: World, channel: Channel, window: Window, request: Request, cycle: int) -> None:
    """Count a request when its last column is issued, in ``cycle``."""
    memory, port = w.memory, w.ports[request.port]
    ready = cycle if request.write else cycle + w.dram.cl_cycles + w.dram.burst_cycles
    w.channels_met[channel.number * rows.ROWS_MET + request.met] += 1
    w.ports_met[request.port * rows.ROWS_MET + request.met] += 1
    window.served += 1
    memory.unserved -= 1
    memory.unserved_writes -= request.write
    port.ready = max(port.ready, ready)
    port.waited += request.started - request.admitted
    port.served += ready - request.started
    port.open -= 1
    if port.open == 0:
        w.done[memory.finished] = request.port
        memory.finished += 1


def refresh(w: World, channel: Channel) -> None:
    """Close all banks of a channel as soon as their rows allow, and refresh them."""
    due = channel.next_refresh
    account(w, channel, due)
    closed = max(due, channel.rows_from)
    banks = range(channel.first_bank, channel.first_bank + w.memory.channel_banks)
    for number in banks:
        if w.banks[number].open_row != rows.NONE:
            closed = max(closed, w.banks[number].held)
    begin = closed + w.dram.rp_cycles
    end = begin + w.dram.rfc_cycles
    _note(w, channel, rows.PRECHARGE_ALL, closed, w.banks[channel.first_bank])
    _note(w, channel, rows.REFRESH, begin, w.banks[channel.first_bank])
    channel.rows_from = end
    for number in banks:
        bank = w.banks[number]
        bank.open_row = rows.NONE
        bank.activate_from = end
        _classify_all(w, bank)
    channel.resume = end
    channel.next = max(channel.next, end)
    channel.next_refresh = due + w.dram.refi_cycles


def _note(w: World, channel: Channel, what: int, cycle: int, bank: Bank) -> None:
    if w.log.size:
        command = w.log[w.memory.logged % w.log.size]
        command.cycle = cycle
        command.channel = channel.number
        command.what = what
        command.bank = bank.number
        command.row = bank.open_row
        w.memory.logged += 1


def take(w: World, channel: Channel, window: Window, arrived: int, port: int, where: int) -> None:
    """Append a request to the queue in front of a window."""
    queued = _queued(w, window, window.queued)
    queued.when = arrived << rows.PORT_BITS | port
    queued.where = where
    if window.queued == 0:
        # A request behind others has no effect before they have left the queue.
        window.comes = arrived
        channel.queues_since = min(channel.queues_since, arrived + 1)
        channel.next = min(channel.next, arrived + 1)
    window.queued += 1
    w.memory.longest = max(w.memory.longest, window.queued)
    w.memory.unserved += 1
    w.memory.unserved_writes += window.write


def _queued(w: World, window: Window, number: int) -> Queued:
    room = w.memory.room
    return w.queues[window.number * room + ((window.head + number) & (room - 1))]


def coming(w: World, channel: Channel) -> tuple[int, int]:
    """Return the cycle in which the next request enters a window, and whether it writes.

    The cycle is FAR if no request can enter. The first burst needs a free entry. The other bursts
    of the request take the next entries.
    """
    read = _enters(w.windows[2 * channel.number])
    write = _enters(w.windows[2 * channel.number + 1])
    return (read, 0) if read <= write else (write, 1)


def _enters(window: Window) -> int:
    if window.used_entries >= window.entries or window.free_slot == rows.NONE:
        return rows.FAR
    return max(window.comes, window.freed)


def admit(w: World, channel: Channel, cycle: int, write: int) -> int:
    """Move the first waiting request into its window; return its slot."""
    window = w.windows[2 * channel.number + write]
    slot = window.free_slot
    queued = _queued(w, window, 0)
    request = w.requests[slot]
    window.free_slot = request.following
    request.port = queued.when & rows.PORT_MASK
    request.admitted = cycle
    request.started = rows.FAR
    request.left_bursts = w.memory.bursts
    request.met = rows.HIT
    w.ports[request.port].queued += cycle - window.comes
    _line_up(w, channel, slot, request, queued.where)
    w.ready[slot] = max(w.ready[slot], cycle + 1)
    channel.requests += 1
    window.used_entries += w.memory.bursts
    channel.waits_since = min(channel.waits_since, cycle + 1)
    _move_up(w, channel, window, cycle)
    _turn(w, channel, cycle + 1)
    return slot


def _line_up(w: World, channel: Channel, slot: int, request: Request, where: int) -> None:
    """Append a request in age order, and put it among the requests to its bank."""
    if channel.age > MOST_AGE:
        _renumber(w, channel)
    w.order[slot] = rows.INACTIVE | channel.age << rows.SLOT_BITS | (slot - channel.first_slot)
    channel.age += 1
    request.bank = channel.first_bank + (where & BANK_MASK)
    request.row = where >> rows.BANK_BITS
    bank = w.banks[request.bank]
    request.following = bank.newest
    bank.newest = slot
    _classify(w, slot, request, bank)


def _move_up(w: World, channel: Channel, window: Window, cycle: int) -> None:
    """Remove the first request from a queue."""
    window.head += 1
    window.queued -= 1
    window.comes = rows.FAR
    if window.queued:
        window.comes = _queued(w, window, 0).when >> rows.PORT_BITS
    number = 2 * channel.number
    since = min(w.windows[number].comes, w.windows[number + 1].comes) + 1
    if since > cycle:
        # The queues are empty, or their first requests arrive in this cycle or later.
        account(w, channel, cycle + 1)
        channel.queues_since = since


def _renumber(w: World, channel: Channel) -> None:
    """Number the ages in the windows of a channel from 0, in the same order."""
    end = w.windows[2 * channel.number + 1].end_slot
    age = 0
    following = 0
    while following <= AGE_MASK:
        oldest = following
        following = rows.EMPTY
        for slot in range(channel.first_slot, end):
            old = w.order[slot] & AGE_MASK
            if w.order[slot] < rows.EMPTY and old == oldest:
                w.order[slot] += (age << rows.SLOT_BITS) - old
                age += 1
            elif w.order[slot] < rows.EMPTY and old > oldest:
                following = min(following, old)
    channel.age = age


def _release(w: World, channel: Channel, window: Window, cycle: int) -> None:
    """Free an entry of a window from ``cycle`` on."""
    window.used_entries -= 1
    window.freed = cycle
    _turn(w, channel, cycle + 1)


def _leave(w: World, channel: Channel, window: Window, slot: int) -> None:
    """Free the slot of a served request."""
    request = w.requests[slot]
    bank = w.banks[request.bank]
    w.ready[slot] = rows.BLOCKED
    w.order[slot] = rows.EMPTY
    if bank.newest == slot:
        bank.newest = request.following
    else:
        before = w.requests[bank.newest]
        while before.following != slot:
            before = w.requests[before.following]
        before.following = request.following
    request.following = window.free_slot
    window.free_slot = slot
    channel.requests -= 1
    if channel.requests == 0:
        channel.waits_since = rows.FAR


def _turn(w: World, channel: Channel, cycle: int) -> None:
    """Turn a channel to writing or reading, if this is due, from ``cycle`` on."""
    reads = w.windows[2 * channel.number].used_entries
    writes = w.windows[2 * channel.number + 1].used_entries
    mode = 1
    if writes == 0:
        mode = 0
    elif reads > 0 and channel.writes:
        mode = int(writes >= w.memory.write_low)
    elif reads > 0:
        mode = int(writes > w.memory.write_high)
    if mode != channel.writes:
        channel.writes = mode
        channel.turned = cycle
        _note_turns(w, channel, cycle)


def _note_turns(w: World, channel: Channel, cycle: int) -> None:
    """Note the cycles in which the buses of a channel turn.

    ``turned`` is the end of an earlier turn that ends before this one begins.
    """
    dram = w.dram
    # A channel turns at most two cycles after the command that makes it turn.
    account(w, channel, cycle - 2)
    gates = channel.writes * w.memory.channel_groups
    for number in range(channel.first_pseudo, channel.first_pseudo + dram.pseudo_channels):
        pseudo = w.pseudos[number]
        latest = pseudo.read if channel.writes else pseudo.written
        first = max(cycle, latest + dram.burst_cycles)
        end = w.gates[gates + pseudo.first_gate]
        if first < end:
            if first > pseudo.turn_end:
                pseudo.turned = pseudo.turn_end
                pseudo.turn = first
            pseudo.turn = min(pseudo.turn, first)
            pseudo.turn_end = max(pseudo.turn_end, end)


def account(w: World, channel: Channel, cycle: int) -> None:
    """Count the cycles of a channel's buses before ``cycle``, which are final.

    A bus that still carries data is counted later.
    """
    for number in range(channel.first_pseudo, channel.first_pseudo + w.dram.pseudo_channels):
        pseudo = w.pseudos[number]
        while pseudo.data_end <= cycle and pseudo.counted < cycle:
            first = pseudo.counted
            fate, end = _fate(channel, pseudo, first)
            pseudo.counted = min(end, cycle)
            _count(w, channel, fate, first, pseudo.counted)


def _fate(channel: Channel, pseudo: Pseudo, cycle: int) -> tuple[int, int]:
    """Return the fate of a cycle of a bus, and the cycle up to which it lasts."""
    # Opened rows are still read after the refresh is due.
    due = channel.next_refresh if channel.active else rows.FAR
    if cycle < pseudo.data_end:
        return rows.DATA, pseudo.data_end
    if cycle < channel.resume:
        return rows.REFRESHED, channel.resume
    if cycle >= due:
        return rows.REFRESHED, rows.FAR
    if cycle < pseudo.turned:
        return rows.TURN, min(due, pseudo.turned)
    end = due if cycle >= pseudo.turn else min(due, pseudo.turn)
    fate = rows.IDLE
    if pseudo.turn <= cycle < pseudo.turn_end:
        fate, end = rows.TURN, min(end, pseudo.turn_end)
    elif cycle >= channel.queues_since:
        fate = rows.QUEUE
    elif cycle >= channel.waits_since:
        fate, end = rows.CONFLICTS, min(end, channel.queues_since)
    else:
        end = min(end, channel.queues_since, channel.waits_since)
    return fate, end


def _count(w: World, channel: Channel, fate: int, first: int, end: int) -> None:
    """Count the cycles from ``first`` to ``end`` in the channel and in their periods."""
    while (end - 1) >> w.memory.period_bits >= rows.PERIODS:
        _halve(w)
    w.fates[channel.number * rows.FATES + fate] += end - first
    while first < end:
        period = first >> w.memory.period_bits
        cycles = min(end, (period + 1) << w.memory.period_bits) - first
        w.periods[period * rows.FATES + fate] += cycles
        first += cycles


def _halve(w: World) -> None:
    """Join the periods in pairs."""
    w.memory.period_bits += 1
    half = rows.PERIODS // 2 * rows.FATES
    for at in range(half):
        pair = at + at // rows.FATES * rows.FATES
        w.periods[at] = w.periods[pair] + w.periods[pair + rows.FATES]
    for at in range(half, 2 * half):
        w.periods[at] = 0
