"""Rows of the banked memory's compiled loop, and the world that has their tables.

A slot has an entry in each of ``ready``, ``order`` and ``gate``, and a request. The least key of a
window's slots is the next command: cycle, age and slot are the bits of a key, highest first.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple, Never, TypeAlias

from fabric.graph.hardware.dram import DramDescription
from fabric.timing.engine.tables import Counters, Row, Table

FAR: Final = 1 << 60
"""Later than any cycle."""

NONE: Final = -1

# Bits of a location: channel, bank in the channel, row.
BANK_SHIFT: Final = 16
BANK_BITS: Final = 16

# Bits of a queued request: port, cycle of arrival.
PORT_BITS: Final = 20
PORT_MASK: Final = (1 << PORT_BITS) - 1

# Bits of an order, lowest first: slot, age, and whether no row was opened for the request. A key is
# an order with a cycle in the higher bits.
SLOT_BITS: Final = 10
SLOT_MASK: Final = (1 << SLOT_BITS) - 1
INACTIVE: Final = 1 << 21
CYCLE_SHIFT: Final = 22
EMPTY: Final = 1 << 62
"""The order of a free slot, and a key without a command."""
BLOCKED: Final = EMPTY >> CYCLE_SHIFT
"""A cycle that no command reaches."""

# Commands, by which gates and requests are distinguished; the first two are columns.
READ: Final = 0
WRITE: Final = 1
ACTIVATE: Final = 2
PRECHARGE: Final = 3
REFRESH: Final = 4
PRECHARGE_ALL: Final = 5

# The row that a request has met.
HIT: Final = 0
MISS: Final = 1
CONFLICT: Final = 2
ROWS_MET: Final = 3

# Fates of a cycle of a data bus, in the order of ``BusCycles``.
DATA: Final = 0
REFRESHED: Final = 1
TURN: Final = 2
QUEUE: Final = 3
CONFLICTS: Final = 4
IDLE: Final = 5
FATES: Final = 6

PERIODS: Final = 512
"""The most periods of a run."""


class Memory(Row):
    """Settings and, from ``cycle`` on, the state."""

    bursts: int  # in a request
    requests_per_bundle: int
    request_bits: int
    write_high: int
    write_low: int
    is_first_come: int
    channel_groups: int
    channel_banks: int
    cycle: int
    unserved: int
    unserved_writes: int
    finished: int
    period_bits: int
    logged: int
    room: int  # of each queue
    longest: int  # length of a queue
    is_short: int  # 1 if a queue needs more room


class Port(Row):
    """A port; ``left`` requests are not handed over yet, ``open`` ones are not served."""

    next_bundle: int
    left: int
    open: int
    ready: int
    write: int
    row_address: int
    pitch: int
    row_requests: int
    in_row: int
    queued: int
    waited: int
    served: int


class Channel(Row):
    """A channel.

    The keys belong to the first row command and to the first column. They are EMPTY if unknown.
    """

    number: int
    next: int
    row_key: int
    column_key: int
    writes: int  # 1 if the channel writes, 0 if it reads
    turned: int  # cycle of the latest change between reading and writing
    rows_from: int  # first cycle of the next row command
    columns_from: int  # first cycle of the next read or write
    next_refresh: int
    resume: int  # after the latest refresh
    waits_since: int  # first cycle with requests in a window, or FAR
    queues_since: int  # first cycle with requests in a queue, or FAR
    requests: int
    active: int  # requests that have opened their row
    age: int
    first_bank: int
    first_pseudo: int
    first_slot: int
    first_gate: int
    row_gates: int


class Window(Row):
    """The reads or the writes of a channel, in the queue and in the window.

    A window has one entry for each burst. The entry is free after the burst's command, or after the
    activation for the burst. The burst then waits in its slot for the row, and is active.
    """

    number: int
    write: int
    first_slot: int
    end_slot: int
    entries: int
    used_entries: int
    freed: int
    free_slot: int
    active: int
    head: int
    queued: int
    comes: int
    served: int


class Pseudo(Row):
    """A pseudo channel: its latest columns, its latest three activations, and its bus."""

    read: int
    written: int
    activated: int
    activated_second: int
    activated_third: int
    first_gate: int
    counted: int  # cycles of the bus
    data_end: int
    turn: int  # first cycle of the latest turn
    turn_end: int
    turned: int  # end of an earlier turn


class Bank(Row):
    """A bank. ``held`` is the first cycle in which its row may be closed."""

    number: int
    pseudo: int
    gate: int
    newest: int  # the slot of a request to it
    open_row: int
    read_from: int
    write_from: int
    activate_from: int
    precharge_from: int  # BLOCKED until the request that the row was opened for is served
    held: int


class Request(Row):
    """A request in a slot."""

    write: int
    bank: int
    row: int
    port: int
    admitted: int
    started: int
    left_bursts: int
    met: int
    following: int  # an older request to the bank; in a free slot, the next free slot


class Queued(Row):
    """A request that waits for a slot: cycle and port, bank and row."""

    when: int
    where: int


class Command(Row):
    """A command of the log."""

    cycle: int
    channel: int
    what: int
    bank: int
    row: int


if TYPE_CHECKING:
    Dram: TypeAlias = DramDescription[Never]
else:

    class Dram(Row):
        """The parameters of the chips."""

        __annotations__ = {field.name: int for field in fields(DramDescription)}


class World(NamedTuple):
    """The tables."""

    memory: Memory
    dram: Dram
    ports: Table[Port]
    channels: Table[Channel]
    windows: Table[Window]  # two for each channel: reads, writes
    pseudos: Table[Pseudo]
    banks: Table[Bank]
    requests: Table[Request]  # by slot
    ready: Counters  # by slot, the first cycle in which its bank can take the next command
    order: Counters  # by slot, the order among equal cycles
    gate: Counters  # by slot, the gate of the next command
    gates: Counters  # by channel, command and group, the first cycle in which others allow it
    channels_met: Counters  # by channel, requests that have met each kind of row
    ports_met: Counters  # the same by port
    fates: Counters  # by channel, cycles of its buses with each fate
    periods: Counters  # by period, cycles of all buses with each fate
    mapping: Counters  # by byte and value of a request number, bits of the location that flip
    active: Counters  # clients that hand over requests
    done: Counters  # clients that were served; the first ``finished`` count
    queues: Table[Queued]  # a ring for each window
    log: Table[Command]  # the latest commands, a ring
