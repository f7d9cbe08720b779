"""The compiled loop of the banked memory: clients hand over requests, channels issue commands.

In every cycle each port with a burst under way hands over one bundle, in port order. A channel
processes a cycle once all earlier requests have arrived, so results do not depend on call times.

A channel issues the earliest possible command. In one cycle, requests that have opened their row
come first, and then older requests. So the loop advances by commands, not by cycles.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.memories import banked_commands
from fabric.timing.memories import banked_rows as rows
from fabric.timing.memories.banked_commands import (
    account,
    activate,
    admit,
    coming,
    precharge,
    read_or_write,
    refresh,
    take,
)
from fabric.timing.memories.banked_rows import Channel, Port, World

LEAST_ANSWER: Final = 4
"""The least cycles from a channel's progress to the answer of a later command."""

CHANNEL_MASK: Final = (1 << rows.BANK_SHIFT) - 1
BARRED_SHIFT: Final = 40
BARRED: Final = rows.INACTIVE << BARRED_SHIFT


@partial(MachineCode, uses=(banked_commands,))
def advance(w: World, horizon: int, budget: int) -> tuple[int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    The function returns earlier after about ``budget`` requests, so that Python can handle signals,
    or if a queue is full.

    Returns:
        The last cycle to process; if fewer have been processed, call again.
    """
    memory = w.memory
    count = 0
    for number in range(w.ports.size):
        if w.ports[number].left > 0:
            w.active[count] = number
            count += 1
    while memory.cycle < horizon and budget > 0 and not memory.is_short:
        cycle = memory.cycle
        idle, unanswered = _ahead(w, count)
        if memory.unserved == 0:
            cycle = max(cycle, min(idle, horizon))
        end = min(horizon, cycle + unanswered)
        before = memory.unserved
        memory.longest = 0
        for number in range(w.windows.size):
            memory.longest = max(memory.longest, w.windows[number].queued)
        while cycle < end and not memory.is_short:
            cycle += 1
            count = _gather(w, count, cycle)
        # A cycle with a full queue is repeated after the queues have grown.
        cycle -= memory.is_short
        budget -= max(1, memory.unserved - before)
        for number in range(w.channels.size):
            channel = w.channels[number]
            if channel.next <= cycle + 2:
                budget -= 1
                _serve(w, channel, cycle + 2)
        for at in range(memory.finished):
            horizon = min(horizon, w.ports[w.done[at]].ready + 1)
        memory.cycle = cycle
    return (horizon,)


def _ahead(w: World, count: int) -> tuple[int, int]:
    """Return the cycle before the next bundle, and the number of cycles without an answer.

    Read data come later than their command, and a write is answered after its last request.
    """
    before = rows.FAR
    cycles = LEAST_ANSWER + w.dram.cl_cycles + w.dram.burst_cycles
    ending = w.memory.unserved_writes
    for at in range(count):
        port = w.ports[w.active[at]]
        before = min(before, port.next_bundle - 1)
        if port.write:
            ending -= port.open - port.left
            bundles = -(-port.left // w.memory.requests_per_bundle)
            cycles = min(cycles, LEAST_ANSWER - 1 + bundles)
    return before, LEAST_ANSWER if ending else cycles


def _gather(w: World, count: int, cycle: int) -> int:
    """Let each of ``count`` clients hand over a bundle; return how many have more."""
    memory = w.memory
    kept = 0
    for at in range(count):
        number = w.active[at]
        port = w.ports[number]
        if memory.longest + memory.requests_per_bundle > memory.room:
            memory.is_short = 1
        elif port.next_bundle <= cycle:
            _hand_over(w, number, port, cycle)
        w.active[kept] = number
        if port.left > 0:
            kept += 1
    return kept


def _hand_over(w: World, number: int, port: Port, cycle: int) -> None:
    requests = min(w.memory.requests_per_bundle, port.left)
    port.left -= requests
    port.next_bundle = cycle + 1
    for _ in range(requests):
        request = (port.row_address >> w.memory.request_bits) + port.in_row
        port.in_row += 1
        if port.in_row == port.row_requests:
            port.in_row = 0
            port.row_address += port.pitch
        place = 0
        values = 0
        while request > 0:
            place ^= w.mapping[values + (request & 255)]
            request >>= 8
            values += 256
        channel = w.channels[place & CHANNEL_MASK]
        window = w.windows[2 * channel.number + port.write]
        take(w, channel, window, cycle + 1, number, place >> rows.BANK_SHIFT)


def settle(w: World, cycle: int) -> int:
    """Count the cycles of buses, at least up to ``cycle``; return their end. Nothing runs later."""
    pseudos, resume = w.pseudos.rows, w.channels.rows["resume"]
    cycle = int(max(cycle, pseudos["counted"].max(), pseudos["data_end"].max(), resume.max()))
    for number in range(w.channels.size):
        account(w, w.channels[number], cycle)
    return cycle


def _serve(w: World, channel: Channel, until: int) -> None:
    """Advance a channel up to ``until``. All earlier requests have arrived."""
    row, column = channel.row_key, channel.column_key
    while channel.next <= until:
        due = channel.next_refresh
        if channel.next >= due and not channel.active:
            refresh(w, channel)
            row, column = rows.EMPTY, rows.EMPTY
            continue
        key = min(row, column)
        if key == rows.EMPTY or key >> rows.CYCLE_SHIFT >= due:
            row, column = _next(w, channel)
        comes, write = coming(w, channel)
        # A request that enters before the next command may precede it.
        while comes < min(min(row, column) >> rows.CYCLE_SHIFT, until) and (
            comes + 1 < due or channel.active
        ):
            writes, age = channel.writes, channel.age
            slot = admit(w, channel, comes, write)
            # Keys are void if the channel has turned or has renumbered the ages.
            if channel.writes != writes or channel.age <= age or w.memory.is_first_come:
                row, column = _next(w, channel)
            elif write == writes:
                row, column = _with(w, channel, slot, row, column)
            comes, write = coming(w, channel)
        cycle = min(row, column) >> rows.CYCLE_SHIFT
        channel.next = min(cycle, comes + 1)
        if cycle <= until and (cycle < due or channel.active):
            writes = channel.writes
            row, column = _issue(w, channel, row, column)
            if channel.writes != writes:
                row, column = rows.EMPTY, rows.EMPTY
    channel.row_key, channel.column_key = row, column


def _issue(w: World, channel: Channel, row: int, column: int) -> tuple[int, int]:
    """Issue the first command; return the keys of the next row command and the next column.

    A key is EMPTY if it is unknown. The key of the kind that was not issued stays the least if its
    cycle is before the next command of the issued kind, and its request is to another bank.
    """
    cycle = min(row, column) >> rows.CYCLE_SHIFT
    if column < row:
        slot = channel.first_slot + (column & rows.SLOT_MASK)
        read_or_write(w, channel, slot, cycle)
        # With the first-come scheduler, the next request may have been ready earlier.
        channel.rows_from = max(channel.rows_from, cycle)
        stays = row >> rows.CYCLE_SHIFT < channel.columns_from and _is_elsewhere(
            w, channel, row, slot
        )
        return (row if stays else rows.EMPTY), rows.EMPTY
    slot = channel.first_slot + (row & rows.SLOT_MASK)
    if w.banks[w.requests[slot].bank].open_row == rows.NONE:
        activate(w, channel, slot, cycle)
    else:
        precharge(w, channel, slot, cycle)
    channel.columns_from = max(channel.columns_from, cycle)
    stays = column >> rows.CYCLE_SHIFT < channel.rows_from and _is_elsewhere(
        w, channel, column, slot
    )
    return rows.EMPTY, (column if stays else rows.EMPTY)


def _is_elsewhere(w: World, channel: Channel, key: int, slot: int) -> bool:
    """Whether the request of a key is to another bank than the request in ``slot``."""
    other = channel.first_slot + (key & rows.SLOT_MASK)
    return w.requests[other].bank != w.requests[slot].bank


def _next(w: World, channel: Channel) -> tuple[int, int]:
    """Return the keys of the first row command and the first column, with their cycles.

    Requests that have opened their row continue while other requests wait for a refresh or turn.
    """
    writes = channel.writes
    row, column = _least(w, channel, writes, 0)
    if w.windows[2 * channel.number + 1 - writes].active:
        other_row, other_column = _least(w, channel, 1 - writes, rows.INACTIVE)
        row, column = min(row, other_row), min(column, other_column)
    if min(row, column) >> rows.CYCLE_SHIFT >= channel.next_refresh and channel.active:
        row, column = _least(w, channel, 0, rows.INACTIVE)
        other_row, other_column = _least(w, channel, 1, rows.INACTIVE)
        row, column = min(row, other_row), min(column, other_column)
    return row, column


def _with(w: World, channel: Channel, slot: int, row: int, column: int) -> tuple[int, int]:
    """Return the least keys, including the keys of a request that has entered."""
    new_row, new_column = _of_slot(w, channel, slot)
    if min(new_row, new_column) >> rows.CYCLE_SHIFT >= channel.next_refresh and channel.active:
        return row, column
    return min(row, new_row), min(column, new_column)


def _of_slot(w: World, channel: Channel, slot: int) -> tuple[int, int]:
    gate, order = w.gate[slot], w.order[slot]
    cycle = max(w.ready[slot], w.gates[gate], channel.turned)
    if gate < channel.row_gates:
        return rows.EMPTY, max(cycle, channel.columns_from) << rows.CYCLE_SHIFT | order
    return max(cycle, channel.rows_from) << rows.CYCLE_SHIFT | order, rows.EMPTY


def _least(w: World, channel: Channel, write: int, barred: int) -> tuple[int, int]:
    """Return the least keys in a window, without those that have the bit ``barred``."""
    window = w.windows[2 * channel.number + write]
    if w.memory.is_first_come:
        least = rows.EMPTY
        for slot in range(window.first_slot, window.end_slot):
            order = w.order[slot]
            least = min(least, order | (order & barred) << BARRED_SHIFT)
        if least >= BARRED:
            return rows.EMPTY, rows.EMPTY
        return _of_slot(w, channel, channel.first_slot + (least & rows.SLOT_MASK))
    since = 0 if barred else channel.turned
    row_gates = channel.row_gates
    rows_from = max(since, channel.rows_from)
    columns_from = max(since, channel.columns_from)
    row = rows.EMPTY
    column = rows.EMPTY
    # Each command compares all requests: without branches, eight at a time.
    for slot in range(window.first_slot, window.end_slot):
        gate = w.gate[slot]
        cycle = max(w.ready[slot], w.gates[gate])
        order = w.order[slot]
        order |= (order & barred) << BARRED_SHIFT
        row_key = max(cycle, rows_from) << rows.CYCLE_SHIFT | order
        column_key = max(cycle, columns_from) << rows.CYCLE_SHIFT | order
        row = min(row, rows.EMPTY if gate < row_gates else row_key)
        column = min(column, column_key if gate < row_gates else rows.EMPTY)
    return row, column
