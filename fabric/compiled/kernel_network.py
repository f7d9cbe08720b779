"""Channels in the compiled loop whose elements go over links that others use, too.

What the links do is in ``fabric.network``, for tasks as here.
"""

from __future__ import annotations

from fabric.compiled import columns as c
from fabric.compiled.kernel_channels import slot_of, wake_reader
from fabric.engine.channel_rule import visible_from
from fabric.engine.machine_code import Counters
from fabric.network import columns as n
from fabric.network.carrying import depart

__all__ = ["arrive", "set_out"]


def set_out(
    ch: int,
    now: int,
    requested: int,
    code: int,
    channels: Counters,
    slots: Counters,
    sizes: Counters,
    flows: Counters,
    waiting: Counters,
    live: Counters,
    notes: Counters,
) -> None:
    """Send an element on its way."""
    row = ch * c.CHANNEL_COLUMNS
    slot = slot_of(ch, channels[row + c.SENT], channels)
    slots[slot + c.VISIBLE] = requested
    slots[slot + c.CODE] = code
    slots[slot + c.SET_OUT] = now
    channels[row + c.SENT] += 1
    if code & c.BARE:
        channels[row + c.BARE_SENT] += 1
    size_bytes = sizes[code >> c.KIND_SHIFT]
    channels[row + c.CARRIED] += size_bytes
    depart(channels[row + c.FLOW], now, size_bytes, flows, waiting, live, notes)


def arrive(
    cycle: int,
    channels: Counters,
    slots: Counters,
    stages: Counters,
    ready: Counters,
    control: Counters,
    ends: Counters,
    flows: Counters,
    arrived: Counters,
    notes: Counters,
) -> None:
    """Let consumers have what is through the links at ``cycle``.

    Of what tasks have sent the loop knows nothing: that is left to who hands it over.
    """
    control[c.ARRIVAL_CYCLE] = cycle
    for place in range(notes[n.ARRIVALS]):
        flow = arrived[place]
        elements = flows[flow * n.FLOW_COLUMNS + n.ARRIVED]
        if ends[flow] == ends[flow + 1]:
            control[c.TOUCHED] = 1
            continue
        flows[flow * n.FLOW_COLUMNS + n.ARRIVED] = 0
        for at in range(ends[flow], ends[flow + 1]):
            ch = ends[at]
            row = ch * c.CHANNEL_COLUMNS
            for _ in range(elements):
                slot = slot_of(ch, channels[row + c.ARRIVED], channels)
                requested = slots[slot + c.VISIBLE]
                forward = channels[row + c.FORWARD]
                visible = visible_from(cycle, forward, requested)
                unhindered = visible_from(slots[slot + c.SET_OUT], forward, requested)
                slots[slot + c.VISIBLE] = visible
                slots[slot + c.LATE] = visible - unhindered
                channels[row + c.ARRIVED] += 1
            wake_reader(ch, channels, stages, ready, control)
