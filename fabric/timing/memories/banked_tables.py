"""The tables of the banked memory's loop, and the mapping of addresses to locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fabric.graph.hardware.dram import REQUEST_NUMBER_BITS, address_bits
from fabric.timing.engine.tables import Table
from fabric.timing.memories import banked_rows as rows
from fabric.timing.memories.banked_rows import BANK_BITS, BANK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.graph.hardware.memory_models import BankedDescription
    from fabric.timing.engine.tables import Counters

_ROW_SHIFT: Final = BANK_SHIFT + BANK_BITS
"""First bit of the row in a packed location; the channel and the bank have the lower bits."""

_FIELD: Final = (1 << BANK_SHIFT) - 1

_BYTES: Final = REQUEST_NUMBER_BITS // 8

_BYTE_VALUES: Final = 256

_NEVER: Final = -(1 << 40)
"""A cycle long before any other."""

_LINE: Final = 8
"""Integers in a cache line of most hosts."""

_PERIOD_BITS: Final = 5
"""A period has 2 ** 5 cycles at first."""

_ROOM: Final = 256
"""Initial room for requests outside of a window."""


class Locations(NamedTuple):
    """Locations of requests; banks are numbered within their channel."""

    channels: Counters
    banks: Counters
    rows: Counters


class AddressMapping:
    """The ``[hbm] mapping`` of addresses.

    Attributes:
        tables: 256 entries for each byte of the request number, lowest byte first; their xor is
            ``channel | bank << 16 | row << 32``.
    """

    def __init__(self, description: BankedDescription) -> None:
        bits = address_bits(description.mapping, description.widths)
        banks = bits["bank"] + bits["bank_group"] + bits["pseudo_channel"]
        contributions = _contributions(bits["channel"], 0)
        contributions ^= _contributions(banks, BANK_SHIFT)
        contributions ^= _contributions(bits["row"], _ROW_SHIFT)
        self.tables: Final = _tables(contributions)
        self._request_shift: Final = description.request_bytes.bit_length() - 1

    def locate(self, addresses: Counters) -> Locations:
        """Return the locations of the requests with these addresses."""
        numbers = addresses >> self._request_shift
        packed = np.zeros_like(numbers)
        for byte in range(_BYTES):
            packed ^= self.tables[byte * _BYTE_VALUES + (numbers >> 8 * byte & _BYTE_VALUES - 1)]
        return Locations(packed & _FIELD, packed >> BANK_SHIFT & _FIELD, packed >> _ROW_SHIFT)


def _contributions(masks: Sequence[int], shift: int) -> Counters:
    """Return, by bit of a request number, the bits from ``shift`` on that flip in the location."""
    flips = [
        sum((mask >> number_bit & 1) << (shift + bit) for bit, mask in enumerate(masks))
        for number_bit in range(REQUEST_NUMBER_BITS)
    ]
    return np.array(flips, np.int64)


def _tables(contributions: Counters) -> Counters:
    """Return, by byte and value, the xor of the contributions of the bits set in the value."""
    tables = np.zeros((_BYTES, _BYTE_VALUES), np.int64)
    for byte, flips in enumerate(contributions.reshape(_BYTES, 8)):
        for bit, flip in enumerate(flips):
            tables[byte, 1 << bit : 2 << bit] = tables[byte, : 1 << bit] ^ flip
    return tables.reshape(-1)


def world_of(description: BankedDescription, ports: int, logged: int) -> rows.World:
    """Return the tables of a memory that keeps the latest ``logged`` commands."""
    dram = description.dram
    groups = dram.pseudo_channels * dram.bank_groups
    channels = description.channels
    memory = _memory(description, groups)
    slots = _slots(description)
    world = rows.World(
        memory=memory,
        dram=_dram(description),
        ports=Table.zeros(rows.Port, ports),
        channels=Table.zeros(rows.Channel, channels),
        windows=Table.zeros(rows.Window, 2 * channels),
        pseudos=Table.zeros(rows.Pseudo, channels * dram.pseudo_channels),
        banks=Table.zeros(rows.Bank, channels * groups * dram.banks),
        requests=Table.zeros(rows.Request, channels * sum(slots)),
        ready=_aligned(channels * sum(slots), rows.BLOCKED),
        order=_aligned(channels * sum(slots), rows.EMPTY),
        gate=_aligned(channels * sum(slots), 0),
        gates=np.zeros(channels * 4 * groups, np.int64),
        channels_met=np.zeros(channels * rows.ROWS_MET, np.int64),
        ports_met=np.zeros(ports * rows.ROWS_MET, np.int64),
        fates=np.zeros(channels * rows.FATES, np.int64),
        periods=np.zeros(rows.PERIODS * rows.FATES, np.int64),
        mapping=AddressMapping(description).tables,
        active=np.zeros(ports, np.int64),
        done=np.zeros(ports, np.int64),
        queues=Table.zeros(rows.Queued, 2 * channels * memory.room),
        log=Table.zeros(rows.Command, logged),
    )
    _begin_channels(world, sum(slots))
    _begin_windows(world, description, slots)
    _begin_banks(world, dram.bank_groups, dram.banks)
    return world


def _aligned(size: int, value: int) -> Counters:
    """Return integers that begin with a cache line, as slots are read by whole lines."""
    room = np.full(size + _LINE, value, np.int64)
    start = -(room.ctypes.data // room.itemsize) % _LINE
    return room[start : start + size]


def _memory(description: BankedDescription, groups: int) -> rows.Memory:
    dram = description.dram
    memory = Table.zeros(rows.Memory, 1)[0]
    memory.bursts = description.request_bytes // dram.burst_bytes
    memory.requests_per_bundle = description.requests_per_bundle
    memory.request_bits = description.request_bytes.bit_length() - 1
    memory.write_high = description.write_high_percent * description.write_window_bursts // 100
    memory.write_low = -(-description.write_low_percent * description.write_window_bursts // 100)
    memory.is_first_come = int(description.scheduler == "first come")
    memory.channel_groups = groups
    memory.channel_banks = groups * dram.banks
    memory.period_bits = _PERIOD_BITS
    memory.room = max(_ROOM, 1 << (2 * description.requests_per_bundle).bit_length())
    return memory


def _dram(description: BankedDescription) -> rows.Dram:
    """Return the parameters, adjusted for the loop."""
    values = dict(vars(description.dram))
    # A command is issued at least one cycle after the command that it waits for.
    for key in ("rp_cycles", "rtp_cycles", "rcd_read_cycles", "rcd_write_cycles"):
        values[key] = max(1, values[key])
    for key in ("ccd_s_cycles", "ccd_l_cycles"):
        values[key] = max(values["burst_cycles"], values[key])
    if not description.refreshes:
        values["refi_cycles"] = rows.FAR
    kind: Any = rows.Dram
    row: rows.Dram = kind(np.array(list(values.values()), np.int64), 0)
    return row


def _slots(description: BankedDescription) -> tuple[int, int]:
    """Return the slots of a channel's reads and of its writes.

    A request of one burst frees its entry while its row is being opened, but needs its slot.
    """
    slots = 2 if description.request_bytes == description.dram.burst_bytes else 1
    return slots * description.read_window_bursts, slots * description.write_window_bursts


def _begin_channels(world: rows.World, slots: int) -> None:
    memory, dram = world.memory, world.dram
    channels, pseudos = world.channels.rows, world.pseudos.rows
    number = np.arange(len(channels))
    channels["number"] = number
    for column in ("next", "waits_since", "queues_since"):
        channels[column] = rows.FAR
    channels["row_key"] = channels["column_key"] = rows.EMPTY
    channels["next_refresh"] = dram.refi_cycles
    channels["first_bank"] = number * memory.channel_banks
    channels["first_pseudo"] = number * dram.pseudo_channels
    channels["first_slot"] = number * slots
    channels["first_gate"] = number * 4 * memory.channel_groups
    channels["row_gates"] = channels["first_gate"] + rows.ACTIVATE * memory.channel_groups
    channel, pseudo = np.divmod(np.arange(len(pseudos)), dram.pseudo_channels)
    for column in ("read", "written", "activated", "activated_second", "activated_third"):
        pseudos[column] = _NEVER
    pseudos["first_gate"] = channels["first_gate"][channel] + pseudo * dram.bank_groups


def _begin_windows(
    world: rows.World, description: BankedDescription, slots: tuple[int, int]
) -> None:
    windows, requests = world.windows.rows, world.requests.rows
    windows["number"] = np.arange(len(windows))
    windows["write"] = np.arange(len(windows)) % 2
    channels = world.channels.size
    windows["entries"][::2] = description.read_window_bursts
    windows["entries"][1::2] = description.write_window_bursts
    ends = np.cumsum(slots * channels)
    windows["end_slot"] = ends
    windows["first_slot"] = windows["free_slot"] = ends - slots * channels
    windows["comes"] = rows.FAR
    requests["write"] = np.repeat(windows["write"], slots * channels)
    requests["following"] = np.arange(1, len(requests) + 1)
    requests["following"][ends - 1] = rows.NONE


def _begin_banks(world: rows.World, bank_groups: int, banks_in_group: int) -> None:
    banks, channels = world.banks.rows, world.channels.rows
    channel, bank = np.divmod(np.arange(len(banks)), world.memory.channel_banks)
    group = bank // banks_in_group
    banks["number"] = bank
    banks["open_row"] = banks["newest"] = rows.NONE
    banks["pseudo"] = channels["first_pseudo"][channel] + group // bank_groups
    banks["gate"] = channels["first_gate"][channel] + group
