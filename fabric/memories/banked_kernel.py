"""The loop of the banked memory, compiled: clients hand over, channels choose.

In every cycle each client with a burst under way hands over one bundle, in client order. Requests
are worked off in the order of their cycles, whatever the cuts between two calls: before a request
comes to a channel, the channel has done what goes no later.
"""

from __future__ import annotations

from functools import partial

from fabric.engine.machine_code import Counters, MachineCode
from fabric.memories import banked_buses, banked_channel, banked_commands, banked_windows
from fabric.memories import banked_columns as c
from fabric.memories.banked_buses import account
from fabric.memories.banked_channel import serve
from fabric.memories.banked_windows import take

__all__ = ["advance", "settle"]


@partial(MachineCode, uses=(c, banked_buses, banked_channel, banked_commands, banked_windows))
def advance(  # noqa: C901 - one loop over all there is
    horizon: int,
    budget: int,
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
    mapping: Counters,
    active: Counters,
    done: Counters,
    log: Counters,
    control: Counters,
    settings: Counters,
) -> tuple[int, int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It may return earlier, between two cycles: after so many requests that the host's signals have
    waited long enough, or where there is no room for more of them.

    Args:
        horizon: the last cycle in which bundles are handed over.
        budget: about so many requests before it returns.
        finished: how many clients are done already; 0 unless it goes on.
        clients: see ``banked_columns``, as all tables.
        channels: with what each has counted.
        pseudos: of all channels, one after the other; likewise the following.
        groups: cycle of the last write.
        banks: what is open, and from when on what may follow.
        windows: requests among which channels choose.
        bounds: of these, the cycle before which the next command does not go; FAR: there is none.
        entries: of windows, one for each burst: rings of the cycles from which on they are free.
        queues: rings of the requests that wait outside of the windows.
        buses: a ring of words of lanes, of each channel.
        periods: what became of the data buses, one period of the run after the other.
        mapping: tables of the address mapping.
        active: scratch space, one entry a client.
        done: filled with the clients whose bursts are served.
        log: a ring of commands, where they are logged.
        control: what is kept between calls.
        settings: the description.

    Returns:
        How many clients are done; the last cycle to process: while less than that has been
        processed, there is more to do.
    """
    number = clients.size // c.CLIENT_COLUMNS
    count = 0
    for client in range(number):
        if clients[client * c.CLIENT_COLUMNS + c.LEFT] > 0:
            active[count] = client
            count += 1
    # No answer to a request that is yet to be chosen comes before so many cycles have passed.
    of_writes = (settings[c.BURSTS] - 1) * settings[c.GROUP_GAP] + 2
    of_reads = of_writes + settings[c.CL] + settings[c.BURST_CYCLES]
    cycle = control[c.CYCLE]
    while cycle < horizon and budget > 0 and not control[c.SHORT]:
        following = horizon
        writing = control[c.UNSERVED_WRITES]
        for at in range(count):
            row = active[at] * c.CLIENT_COLUMNS
            following = min(following, clients[row + c.NEXT_BUNDLE] - 1)
            writing += clients[row + c.WRITE]
        if control[c.UNSERVED] == 0:
            cycle = max(cycle, following)
        end = min(horizon, cycle + (of_writes if writing else of_reads))
        control[c.LONGEST] = 0
        for ch in range(settings[c.CHANNELS]):
            row = ch * c.CHANNEL_COLUMNS
            queued = max(channels[row + c.QUEUED_READS], channels[row + c.QUEUED_WRITES])
            control[c.LONGEST] = max(control[c.LONGEST], queued)
        before = control[c.UNSERVED]
        while cycle < end and not control[c.SHORT]:
            cycle += 1
            count = _gather(
                count, cycle, active, clients, channels, queues, mapping, control, settings
            )
        # Whoever had no room hands over in the same cycle when there is.
        cycle -= control[c.SHORT]
        budget -= max(1, control[c.UNSERVED] - before)
        for ch in range(settings[c.CHANNELS]):
            if channels[ch * c.CHANNEL_COLUMNS + c.NEXT] <= cycle + 2:
                budget -= 1
                finished = serve(
                    ch,
                    cycle + 2,
                    finished,
                    clients,
                    channels,
                    pseudos,
                    groups,
                    banks,
                    windows,
                    bounds,
                    entries,
                    queues,
                    buses,
                    periods,
                    done,
                    log,
                    control,
                    settings,
                )
        for at in range(finished):
            ready = clients[done[at] * c.CLIENT_COLUMNS + c.READY]
            horizon = min(horizon, ready + 1)
    control[c.CYCLE] = cycle
    return finished, horizon


def _gather(
    count: int,
    cycle: int,
    active: Counters,
    clients: Counters,
    channels: Counters,
    queues: Counters,
    mapping: Counters,
    control: Counters,
    settings: Counters,
) -> int:
    """Let each of ``count`` active clients hand over; return how many have more to hand over."""
    kept = 0
    for at in range(count):
        client = active[at]
        row = client * c.CLIENT_COLUMNS
        if control[c.LONGEST] + settings[c.PER_BUNDLE] > control[c.ROOM]:
            control[c.SHORT] = 1
        elif clients[row + c.NEXT_BUNDLE] <= cycle:
            _hand_over(client, cycle, clients, channels, queues, mapping, control, settings)
        active[kept] = client
        if clients[row + c.LEFT] > 0:
            kept += 1
    return kept


def _hand_over(
    client: int,
    cycle: int,
    clients: Counters,
    channels: Counters,
    queues: Counters,
    mapping: Counters,
    control: Counters,
    settings: Counters,
) -> None:
    """Let a client hand over a bundle."""
    row = client * c.CLIENT_COLUMNS
    write = clients[row + c.WRITE]
    requests = min(settings[c.PER_BUNDLE], clients[row + c.LEFT])
    clients[row + c.LEFT] -= requests
    clients[row + c.NEXT_BUNDLE] = cycle + 1
    for _ in range(requests):
        block = clients[row + c.ROW_ADDRESS] >> settings[c.REQUEST_BITS]
        block += clients[row + c.IN_ROW]
        clients[row + c.IN_ROW] += 1
        if clients[row + c.IN_ROW] == clients[row + c.ROW_REQUESTS]:
            clients[row + c.IN_ROW] = 0
            clients[row + c.ROW_ADDRESS] += clients[row + c.PITCH]
        place = 0
        at = 0
        while block > 0:
            place ^= mapping[at + (block & 255)]
            block >>= 8
            at += 256
        ch = place & c.CHANNEL_MASK
        take(ch, cycle + 1, place, client, write, channels, queues, control)


@partial(MachineCode, uses=(c, banked_buses))
def settle(
    cycle: int,
    channels: Counters,
    buses: Counters,
    periods: Counters,
    control: Counters,
    settings: Counters,
) -> tuple[int]:
    """Account for all cycles before ``cycle``, or as far as some channel has got."""
    for ch in range(settings[c.CHANNELS]):
        cycle = max(cycle, channels[ch * c.CHANNEL_COLUMNS + c.CLOCKED])
    for ch in range(settings[c.CHANNELS]):
        account(ch, cycle, channels, buses, periods, control, settings)
    return (cycle,)
