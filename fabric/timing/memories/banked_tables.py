"""The array of the banked memory's loop, and the mapping of addresses to locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.graph.hardware.dram import REQUEST_NUMBER_BITS, address_bits
from fabric.timing.memories import banked_columns as c
from fabric.timing.memories.banked_columns import BANK_BITS, BANK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.graph.hardware.memory_models import BankedDescription
    from fabric.timing.engine.tables import Counters

ROW_SHIFT: Final = BANK_SHIFT + BANK_BITS
"""Bits of a packed location; the channel is in the lowest ones."""

BYTES: Final = REQUEST_NUMBER_BITS // 8

BYTE_VALUES: Final = 256

_ROOM: Final = 256
"""Initial room for requests outside of a window."""

_LINE: Final = 8
"""Integers in a cache line of most hosts."""

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


class Location(NamedTuple):
    """Location of a request; ``column`` counts requests."""

    channel: int
    pseudo_channel: int
    bank_group: int
    bank: int
    row: int
    column: int


class AddressMapping:
    """The ``[hbm] mapping`` of addresses.

    Attributes:
        request_shift: low bits of an address within a request.
        tables: 256 entries for each byte of the request number, lowest byte first; their xor is
            ``channel | bank << 16 | row << 32``, with banks numbered within the channel.
        end_address: locations repeat from this address on.
    """

    def __init__(self, description: BankedDescription) -> None:
        self._bits: Final = address_bits(description.mapping, description.widths)
        self.request_shift: Final = description.request_bytes.bit_length() - 1
        banks = self._bits["bank"] + self._bits["bank_group"] + self._bits["pseudo_channel"]
        contributions = _contributions(self._bits["channel"], 0)
        contributions ^= _contributions(banks, BANK_SHIFT)
        contributions ^= _contributions(self._bits["row"], ROW_SHIFT)
        self.tables: Final = _tables(contributions)
        number_bits = max(mask.bit_length() for each in self._bits.values() for mask in each)
        self.end_address: Final = 1 << (number_bits + self.request_shift)

    def locate(self, address: int) -> Location:
        """Return the location of the request with ``address``."""
        number = address >> self.request_shift
        found = {
            field: sum((number & mask).bit_count() % 2 << bit for bit, mask in enumerate(masks))
            for field, masks in self._bits.items()
        }
        return Location(**found)


def _contributions(masks: Sequence[int], shift: int) -> Counters:
    """Return, by bit of a number, the bits from ``shift`` on that it flips by the xor ``masks``."""
    flips = [
        sum((mask >> number_bit & 1) << (shift + bit) for bit, mask in enumerate(masks))
        for number_bit in range(REQUEST_NUMBER_BITS)
    ]
    return np.array(flips, np.int64)


def _tables(contributions: Counters) -> Counters:
    """Return, by byte and value, the xor of its set bits' contributions."""
    tables = np.zeros((BYTES, BYTE_VALUES), np.int64)
    for byte, flips in enumerate(contributions.reshape(BYTES, 8)):
        for bit, flip in enumerate(flips):
            tables[byte, 1 << bit : 2 << bit] = tables[byte, : 1 << bit] ^ flip
    return tables.reshape(-1)


class Tables:
    """Settings and tables of a memory.

    Attributes:
        state: see ``banked_columns``.
        queues: requests outside of the windows.
        clients, channels, done, log: views of ``state``.
    """

    def __init__(self, description: BankedDescription, clients: int, logged: int) -> None:
        header = _header(description, clients, logged)
        self._parts: list[Counters] = [header]
        self._end = _lines(c.HEADER)
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
        self.state: Final = _aligned(self._parts)
        room = int(header[c.ROOM])
        self.queues: Final = np.zeros(len(channels) * 2 * room * c.QUEUED_COLUMNS, np.int64)
        self.clients: Final = table(self.state, c.CLIENTS_AT, clients, c.CLIENT_COLUMNS)
        self.channels: Final = table(self.state, c.CHANNELS_AT, len(channels), c.CHANNEL_COLUMNS)
        self.done: Final = table(self.state, c.DONE_AT, clients, 1)[:, 0]
        self.log: Final = table(self.state, c.LOG_AT, max(1, logged), c.LOG_COLUMNS)

    def _add(self, part: Counters) -> int:
        start = self._end
        self._parts.append(part)
        self._end += _lines(part.size)
        return start


def table(state: Counters, begins: int, rows: int, columns: int) -> Counters:
    """Return the table whose offset is at ``begins`` in the header of ``state``."""
    start = int(state[begins])
    return state[start : start + rows * columns].reshape(rows, columns)


def _lines(size: int) -> int:
    """Return ``size``, rounded up to whole cache lines."""
    return -(-size // _LINE) * _LINE


def _aligned(parts: Sequence[Counters]) -> Counters:
    """Concatenate parts, each at the start of a cache line, as slots are read by whole lines."""
    room = np.zeros(sum(_lines(part.size) for part in parts) + _LINE, np.int64)
    start = -(room.ctypes.data // room.itemsize) % _LINE
    state = room[start:]
    end = 0
    for part in parts:
        state[end : end + part.size] = part.reshape(-1)
        end += _lines(part.size)
    return state[:end]


def _header(description: BankedDescription, clients: int, logged: int) -> Counters:
    dram = description.dram
    bursts = description.request_bytes // dram.burst_bytes
    header = np.zeros(c.HEADER, np.int64)
    for key in _TIMING:
        header[getattr(c, key.upper())] = getattr(dram, f"{key}_cycles")
    # A command goes later than the one that it waits for.
    for column in (c.RP, c.RTP, c.RCD_READ, c.RCD_WRITE):
        header[column] = max(1, header[column])
    header[c.BURSTS] = bursts
    header[c.BURST_CYCLES] = dram.burst_cycles
    header[c.PSEUDO_GAP] = max(dram.ccd_s_cycles, dram.burst_cycles)
    header[c.GROUP_GAP] = max(dram.ccd_l_cycles, dram.burst_cycles)
    header[c.REFI] = dram.refi_cycles if description.refreshes else c.FAR
    entries = description.read_window_bursts, description.write_window_bursts
    header[c.READ_ENTRIES], header[c.WRITE_ENTRIES] = entries
    # A request of one burst has no entry any more while its row is being opened.
    slots = [number * (2 if bursts == 1 else 1) for number in entries]
    header[c.READ_SLOTS], header[c.WRITE_SLOTS] = slots
    header[c.SLOTS] = sum(slots)
    high = description.write_high_percent * description.write_window_bursts
    low = description.write_low_percent * description.write_window_bursts
    header[c.WRITE_HIGH], header[c.WRITE_LOW] = high // 100, -(-low // 100)
    header[c.FIRST_COME] = description.scheduler == "first come"
    header[c.CHANNELS] = description.channels
    header[c.GROUPS] = dram.bank_groups
    header[c.PSEUDO_CHANNELS] = dram.pseudo_channels
    header[c.CHANNEL_GROUPS] = dram.pseudo_channels * dram.bank_groups
    header[c.CHANNEL_BANKS] = header[c.CHANNEL_GROUPS] * dram.banks
    header[c.LANES] = c.CHANNEL_LANES + dram.pseudo_channels * c.PSEUDO_LANES
    # Farthest ahead of what is accounted for is the cycle in which a bus has turned.
    ahead = dram.cl_cycles + dram.cwl_cycles + dram.burst_cycles + dram.wtr_l_cycles
    header[c.RING_WORDS] = 1 << (ahead // c.WORD + 3).bit_length()
    header[c.PER_BUNDLE] = description.requests_per_bundle
    header[c.REQUEST_BITS] = description.request_bytes.bit_length() - 1
    header[c.LOGS] = logged
    header[c.CLIENTS] = clients
    header[c.PERIOD_BITS] = c.WORD_BITS
    header[c.ROOM] = max(_ROOM, 1 << (2 * description.requests_per_bundle).bit_length())
    return header


def _channels(description: BankedDescription, header: Counters) -> Counters:
    """Return the rows of channels; offsets are relative to the first block."""
    dram = description.dram
    channels = np.zeros((description.channels, c.CHANNEL_COLUMNS), np.int64)
    channels[:, [c.NEXT, c.WAITS_SINCE, c.QUEUES_SINCE, c.READ_COMES, c.WRITE_COMES]] = c.FAR
    channels[:, [c.ROW_KEY, c.COLUMN_KEY]] = c.EMPTY
    channels[:, c.NEXT_REFRESH] = header[c.REFI]
    channels[:, c.FREE_WRITE_SLOT] = header[c.READ_SLOTS]
    number = np.arange(description.channels)
    channels[:, c.NUMBER] = number
    slots = int(header[c.SLOTS])
    sizes = {
        c.BANKS_AT: int(header[c.CHANNEL_BANKS]) * c.BANK_COLUMNS,
        c.PSEUDOS_AT: dram.pseudo_channels * c.PSEUDO_COLUMNS,
        c.GATES_AT: 4 * int(header[c.CHANNEL_GROUPS]),
        c.SLOTS_AT: 3 * slots,
        c.REQUESTS_AT: slots * c.REQUEST_COLUMNS,
        c.BUSES_AT: int(header[c.RING_WORDS] * header[c.LANES]),
    }
    at = number * sum(map(_lines, sizes.values()))
    for column, size in sizes.items():
        channels[:, column] = at
        at = at + _lines(size)
    channels[:, c.ENDS_AT] = at
    return channels


def _blocks(description: BankedDescription, header: Counters, channels: Counters) -> Counters:
    dram = description.dram
    first = channels[0]
    blocks = np.zeros((len(channels), int(first[c.ENDS_AT] - first[c.BANKS_AT])), np.int64)

    def part(column: int, rows: int, columns: int) -> Counters:
        start = int(first[column] - first[c.BANKS_AT])
        its = blocks[:, start : start + rows * columns]
        return its.reshape(len(channels), rows, columns, copy=False)

    slots = int(header[c.SLOTS])
    pseudos = part(c.PSEUDOS_AT, dram.pseudo_channels, c.PSEUDO_COLUMNS)
    pseudos[:] = c.NEVER
    pseudo = np.arange(dram.pseudo_channels)
    pseudos[:, :, c.PSEUDO_LANE] = c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
    pseudos[:, :, c.FIRST_GROUP] = pseudo * dram.bank_groups
    ready, gates, order = np.moveaxis(part(c.SLOTS_AT, 3, slots), 1, 0)
    ready[:] = c.BLOCKED
    gates[:] = channels[:, [c.GATES_AT]]
    order[:] = c.EMPTY
    following = part(c.REQUESTS_AT, slots, c.REQUEST_COLUMNS)[:, :, c.FOLLOWING]
    following[:] = np.arange(1, slots + 1)
    following[:, [header[c.READ_SLOTS] - 1, -1]] = c.NONE
    banks = part(c.BANKS_AT, int(header[c.CHANNEL_BANKS]), c.BANK_COLUMNS)
    banks[:, :, [c.OPEN_ROW, c.FIRST]] = c.NONE
    group = np.arange(int(header[c.CHANNEL_BANKS])) // dram.banks
    banks[:, :, c.PSEUDO] = (
        channels[:, [c.PSEUDOS_AT]] + group // dram.bank_groups * c.PSEUDO_COLUMNS
    )
    banks[:, :, c.GATE_OF] = channels[:, [c.GATES_AT]] + group
    return blocks
