"""The array that the banked memory's compiled loop works on, as it is in cycle 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.memories import banked_columns as c
from fabric.memories.address_mapping import AddressMapping

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.hardware.banked import BankedDescription

__all__ = ["Tables", "table"]

_ROOM: Final = 256
"""For requests that wait outside of a window, at first."""

_TIMING: Final = (
    "cl",
    "cwl",
    "rcd_read",
    "rcd_write",
    "rp",
    "ras",
    "rc",
    "wr",
    "rtp",
    "rrd_s",
    "rrd_l",
    "wtr_s",
    "wtr_l",
    "faw",
    "rfc",
)
"""Settings that are cycles of the description."""


class Tables:
    """Settings and tables for a memory.

    Attributes:
        state: all of it; see ``banked_columns``.
        queues: of requests that wait outside of the windows.
        clients, channels, done, log: the parts of ``state`` that are looked at from outside.
    """

    def __init__(self, description: BankedDescription, clients: int, logged: int) -> None:
        """Have nothing under way.

        Args:
            description: of the memory.
            clients: how many there are.
            logged: so many commands are kept.
        """
        header = _header(description, clients, logged)
        self._parts: list[Counters] = [header]
        self._end = c.HEADER
        channels = _channels(description, header)
        header[c.CHANNELS_AT] = self._add(channels)
        channels[:, c.BANKS_AT :] = self._end + channels[:, c.BANKS_AT :]
        blocks = _blocks(description, header, channels)
        self._add(blocks)
        header[c.CLIENTS_AT] = self._add(np.zeros((clients, c.CLIENT_COLUMNS), np.int64))
        header[c.PERIODS_AT] = self._add(np.zeros((c.PERIODS, c.FATES), np.int64))
        header[c.MAPPING_AT] = self._add(AddressMapping(description).tables)
        header[c.ACTIVE_AT] = self._add(np.zeros(clients, np.int64))
        header[c.DONE_AT] = self._add(np.zeros(clients, np.int64))
        header[c.LOG_AT] = self._add(np.zeros((max(1, logged), c.LOG_COLUMNS), np.int64))
        self.state: Final = np.concatenate([part.reshape(-1) for part in self._parts])
        room = int(header[c.ROOM])
        self.queues: Final = np.zeros(len(channels) * 2 * room * c.QUEUED_COLUMNS, np.int64)
        self.clients: Final = table(self.state, c.CLIENTS_AT, clients, c.CLIENT_COLUMNS)
        self.channels: Final = table(self.state, c.CHANNELS_AT, len(channels), c.CHANNEL_COLUMNS)
        self.done: Final = table(self.state, c.DONE_AT, clients, 1)[:, 0]
        self.log: Final = table(self.state, c.LOG_AT, max(1, logged), c.LOG_COLUMNS)

    def _add(self, part: Counters) -> int:
        """Add a part and return where it begins."""
        start = self._end
        self._parts.append(part)
        self._end += part.size
        return start


def table(state: Counters, begins: int, rows: int, columns: int) -> Counters:
    """Return the rows of the table whose place is at ``begins`` in the header of ``state``."""
    start = int(state[begins])
    return state[start : start + rows * columns].reshape(rows, columns)


def _header(description: BankedDescription, clients: int, logged: int) -> Counters:
    """Return the settings, and what is kept between two calls."""
    made_of, timing = description.organization, description.timing
    bursts = description.request_bytes // made_of.burst_bytes
    window = max(description.read_window_bursts, description.write_window_bursts)
    groups = made_of.pseudo_channels * made_of.bank_groups
    header = np.zeros(c.HEADER, np.int64)
    for key in _TIMING:
        header[getattr(c, key.upper())] = getattr(timing, f"{key}_cycles")
    # The slot of a precharge is none of those of the activation after it.
    header[c.RP] = max(1, timing.rp_cycles)
    header[c.BURSTS] = bursts
    header[c.BURST_CYCLES] = timing.burst_cycles
    header[c.PSEUDO_GAP] = max(timing.ccd_s_cycles, timing.burst_cycles)
    header[c.GROUP_GAP] = max(timing.ccd_l_cycles, timing.burst_cycles)
    header[c.REFI] = timing.refi_cycles if description.refreshes else c.FAR
    header[c.READ_WINDOW] = description.read_window_bursts // bursts
    header[c.WRITE_WINDOW] = description.write_window_bursts // bursts
    header[c.ENTRIES] = 1 << (window - 1).bit_length()
    header[c.WRITE_ENTRIES] = description.write_window_bursts
    high = description.write_high_percent * description.write_window_bursts
    low = description.write_low_percent * description.write_window_bursts
    header[c.WRITE_HIGH], header[c.WRITE_LOW] = high // 100, -(-low // 100)
    header[c.FIRST_COME] = description.scheduler == "first come"
    header[c.CHANNELS] = description.channels
    header[c.CHANNEL_BANKS] = groups * made_of.banks
    header[c.PSEUDO_CHANNELS] = made_of.pseudo_channels
    lanes = c.CHANNEL_LANES + made_of.pseudo_channels * c.PSEUDO_LANES + groups * c.GROUP_LANES
    header[c.LANES] = lanes
    # Farthest ahead of a decision are the columns of a request that opens a row after all others.
    ahead = sum(vars(timing).values()) - timing.rfc_cycles - timing.refi_cycles
    ahead += window * (int(header[c.GROUP_GAP]) + timing.rrd_l_cycles + 3)
    # Activations are asked for as long as a fourth one counts.
    header[c.KEPT_WORDS] = timing.faw_cycles // c.WORD + 1
    header[c.RING_WORDS] = 1 << (ahead // c.WORD + 3 + int(header[c.KEPT_WORDS])).bit_length()
    header[c.PER_BUNDLE] = description.requests_per_bundle
    header[c.REQUEST_BITS] = description.request_bytes.bit_length() - 1
    header[c.LOGS] = logged
    header[c.CLIENTS] = clients
    header[c.PERIOD_BITS] = c.WORD_BITS
    header[c.ROOM] = max(_ROOM, 1 << (2 * description.requests_per_bundle).bit_length())
    return header


def _channels(description: BankedDescription, header: Counters) -> Counters:
    """Return the rows of channels; where their parts are is counted from the first block on."""
    made_of = description.organization
    channels = np.zeros((description.channels, c.CHANNEL_COLUMNS), np.int64)
    channels[:, [c.NEXT, c.WAITS_SINCE, c.QUEUES_SINCE]] = c.FAR
    channels[:, c.NEXT_REFRESH] = header[c.REFI]
    channels[:, c.FREE_READ_ENTRIES] = description.read_window_bursts
    channels[:, c.FREE_WRITE_ENTRIES] = description.write_window_bursts
    number = np.arange(description.channels)
    channels[:, c.NUMBER] = number
    window = int(header[c.READ_WINDOW] + header[c.WRITE_WINDOW])
    groups = made_of.pseudo_channels * made_of.bank_groups
    sizes = {
        c.BANKS_AT: int(header[c.CHANNEL_BANKS]) * c.BANK_COLUMNS,
        c.PSEUDOS_AT: made_of.pseudo_channels * c.PSEUDO_COLUMNS,
        c.GROUPS_AT: groups,
        c.BOUNDS_AT: window,
        c.REQUESTS_AT: window * c.REQUEST_COLUMNS,
        c.ENTRIES_AT: 2 * int(header[c.ENTRIES]),
        c.BUSES_AT: int(header[c.RING_WORDS] * header[c.LANES]),
    }
    at = number * sum(sizes.values())
    for column, size in sizes.items():
        channels[:, column] = at
        at = at + size
    channels[:, c.ENDS_AT] = at
    return channels


def _blocks(description: BankedDescription, header: Counters, channels: Counters) -> Counters:
    """Return what channels are made of, a block for each."""
    made_of = description.organization
    first = channels[0]
    blocks = np.zeros((len(channels), int(first[c.ENDS_AT] - first[c.BANKS_AT])), np.int64)

    def part(column: int) -> Counters:
        start, end = first[column : column + 2] - first[c.BANKS_AT]
        return blocks[:, start:end]

    part(c.PSEUDOS_AT)[:] = part(c.GROUPS_AT)[:] = part(c.ENTRIES_AT)[:] = c.NEVER
    part(c.BOUNDS_AT)[:] = c.EMPTY
    banks = part(c.BANKS_AT).reshape(len(channels), -1, c.BANK_COLUMNS)
    banks[:, :, c.OPEN_ROW] = c.NONE
    group = np.arange(int(header[c.CHANNEL_BANKS])) // made_of.banks
    pseudo = group // made_of.bank_groups
    banks[:, :, c.PSEUDO] = channels[:, [c.PSEUDOS_AT]] + pseudo * c.PSEUDO_COLUMNS
    banks[:, :, c.GROUP] = channels[:, [c.GROUPS_AT]] + group
    banks[:, :, c.PSEUDO_LANE] = c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
    group_lanes = c.CHANNEL_LANES + made_of.pseudo_channels * c.PSEUDO_LANES
    banks[:, :, c.GROUP_LANE] = group_lanes + group * c.GROUP_LANES
    part(c.BANKS_AT)[:] = banks.reshape(len(channels), -1)
    return blocks
