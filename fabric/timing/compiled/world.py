"""Tables of the compiled loop, and the values in their columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from fabric.timing.engine.log import Entry
from fabric.timing.engine.tables import Counters, Row, Table
from fabric.timing.memories.flat import FlatWorld
from fabric.timing.network.fair_share import LinkWorld

OUTSIDE: Final = -1
"""No stage, reader, flow or transition."""


class StageRow(Row):
    """One operator."""

    now: int
    busy: int
    flops: int
    state: int
    pc: int
    end: int  # of its stretch of operations
    status: int
    wait: int  # The channel, or OUTSIDE
    first_input: int
    inputs: int
    first_output: int
    outputs: int
    arrival: int  # Cycle of the input popped last
    marks: int  # Noted arrivals; see ``InputRow``
    drain: int  # Cycle in which its operator ended
    times: int  # Rounds of a repetition that are done
    unit: int
    waited: int  # Cycles for the element that it dequeues next
    client: int  # Its port at the memory in the loop, or OUTSIDE
    off_chip_cycles: int
    off_chip_bytes: int
    next_look: int
    next_end: int


# Status of a stage.
READY: Final = 0
NO_ELEMENT: Final = 1
NO_CREDIT: Final = 2
PACED: Final = 3
DRAINING: Final = 4
STUCK: Final = 5
FINISHED: Final = 6
OFF_CHIP: Final = 7
SUBMITS: Final = 8  # A burst to a memory outside of the loop
WAITS_FOR_PACE: Final = 9  # Noted by the clock


class InputRow(Row):
    """An input of a stage, and one of the stage's noted arrivals."""

    channel: int
    seen: int  # The last code
    mark_cycle: int
    mark_port: int


class ChannelRow(Row):
    """A channel. Its slots are a ring that begins at ``base``."""

    depth: int
    forward: int
    backward: int
    base: int
    mask: int
    sent: int
    reserved: int
    taken: int
    closed: int
    ended: int
    empty: int
    full: int
    credit: int
    bare_sent: int
    left_over: int
    peak: int
    last_credit: int
    producer: int
    consumer: int
    counted: int  # Its first dimension, or OUTSIDE
    rank: int
    interval: int
    wait: int  # 1 if a unit that has waited for a slot looks at its inputs a cycle later
    end: int  # 1 if the end is sent and seen like an element
    next_send: int
    next_take: int
    flow: int
    arrived: int
    links: int
    carried: int
    number: int  # In edge order
    seen: int  # 1 if the consumer has seen the next element


class Slot(Row):
    """A slot of a channel.

    On shared links ``visible`` is the requested cycle until the element arrives.
    """

    visible: int
    code: int
    usable: int
    set_out: int
    late: int


class Dimension(Row):
    """A dimension of a stream with a shape stated in the program."""

    size: int
    groups: int
    least: int
    most: int
    claimed: int


class StateRow(Row):
    """A state of an automaton: the kind of its wait, and the awaited input."""

    kind: int
    port: int
    carries: int
    last_code: int
    last_transition: int


PEEK: Final = 0
POP: Final = 1
END: Final = 2
STARVE: Final = 3


class Known(Row):
    """An entry of the hash table of transitions."""

    follower: int  # The state + 1; 0 if the entry is empty
    code: int
    transition: int


STATE_FACTOR: Final = 0x9E3779B1
CODE_FACTOR: Final = 0x85EBCA77
CODE_SHIFT: Final = 29


class Transition(Row):
    """A stretch of operations, and the state after them."""

    start: int
    stop: int
    next: int


class Operation(Row):
    """An operation.

    A TAKE without an earlier look has the amount AT_ONCE. A REPEAT has the length of its body in
    ``port`` and the number of rounds in ``amount``.
    """

    what: int
    port: int
    sends: int
    source: int  # The input that the sent number is from, or -1
    amount: int
    stamp: int


TAKE: Final = 0
CHARGE: Final = 1
COMPUTE: Final = 2
NOTE: Final = 3
UNTIL: Final = 4
LAST_WORK: Final = UNTIL
SEND: Final = 5
SEND_AT: Final = 6
RESERVE: Final = 7
PUT: Final = 8
LAST_SEND: Final = PUT
MARK: Final = 9
HOLD: Final = 10
BURST: Final = 11
CHECK: Final = 12
REPEAT: Final = 13

AT_ONCE: Final = 1

STAMPS: Final = 4
"""The most clock readings of an operator at a time."""


class Kind(Row):
    """A kind of values; ``empty`` is the empty dimension of a bare stop."""

    empty: int
    size_bytes: int


class Change(Row):
    """A change of on-chip use."""

    cycle: int
    size_bytes: int


class BurstSize(Row):
    """The size of a tile."""

    rows: int
    row_bytes: int


class Control(Row):
    """State of the loop, and counts of rows."""

    ready_head: int
    ready_count: int
    unknown_state: int
    unknown_code: int
    changes: int
    live: int  # Stages that have not ended
    touched: int  # 1 if there are elements or credits for tasks
    submitted: int  # 1 if a stage submits a burst to a memory outside of the loop
    answered: int  # Number of tasks in the memory's ``done``
    outward: int  # 1 if a stage waits for a task
    too_far: int  # 1 if a stage waits for the pace
    entries: int
    arrives: int  # 1 while elements that have left the links are delivered
    arrival_cycle: int
    horizon_cycle: int  # Up to which links and memory advance while all stages wait
    quiet_cycle: int  # The horizon after the next event of links or memory


class World(NamedTuple):
    """Stages, channels and automata.

    Attributes:
        outputs: channels, or OUTSIDE, stage by stage.
        stamps: clock readings, STAMPS for each stage.
        ready: a ring of stages.
        log: the buffer of ``Log``; empty if the run has none.
        ends: by flow ``f``, an index: its first channel is ``ends[ends[f]]``.
    """

    stages: Table[StageRow]
    channels: Table[ChannelRow]
    slots: Table[Slot]
    dimensions: Table[Dimension]
    inputs: Table[InputRow]
    outputs: Counters
    stamps: Counters
    states: Table[StateRow]
    known: Table[Known]
    transitions: Table[Transition]
    operations: Table[Operation]
    kinds: Table[Kind]
    bursts: Table[BurstSize]
    ready: Counters
    ledger: Table[Change]
    log: Table[Entry]
    control: Control
    ends: Counters
    links: LinkWorld
    memory: FlatWorld


# Reasons why the loop returns.
AT_REST: Final = 0  # All stages wait; in a stage, no reason to return
UNKNOWN_CODE: Final = 1  # ``control`` has a state and a code without a transition
BUDGET_SPENT: Final = 2
SLOTS_FULL: Final = 3  # A channel needs more slots
BUFFER_FULL: Final = 4  # The table of changes or the log is full
UNFIT: Final = 5  # The run has to begin again as tasks
QUEUE_FULL: Final = 6  # The flow of a channel needs a longer queue

STEP_ENTRIES: Final = 8
"""The most rows of the log that one step of a stage writes."""

FAR: Final = 1 << 60
"""At more cycles or FLOPs the run begins again as tasks, with Python's unbounded integers."""

# An element as a number: kind, number in a tile, bare stop, level of its stop.
LEVEL_BITS: Final = 7
BARE: Final = 1 << LEVEL_BITS
NUMBER_SHIFT: Final = 8
NUMBER_BITS: Final = 31
KIND_SHIFT: Final = NUMBER_SHIFT + NUMBER_BITS
NUMBER_MASK: Final = ((1 << NUMBER_BITS) - 1) << NUMBER_SHIFT
ENDED_CODE: Final = -1

R = TypeVar("R", bound=Row)


class GrowingTable(Generic[R]):
    """A table that is replaced by a larger one when it is full."""

    def __init__(self, row: type[R], room: int = 64) -> None:
        self.table: Table[R] = Table.zeros(row, room)
        self.count = 0

    def extend(self, rows: Sequence[Sequence[int]]) -> int:
        """Add ``rows`` and return the number of the first."""
        first = self.reserve(len(rows))
        width = len(self.table.row.__annotations__)
        self.table.cells[first * width : self.count * width] = [*chain.from_iterable(rows)]
        return first

    def reserve(self, rows: int) -> int:
        """Add ``rows`` zero rows and return the number of the first."""
        first, table = self.count, self.table
        self.count += rows
        while self.count > table.size:
            table = Table(table.row, np.concatenate([table.cells, np.zeros_like(table.cells)]))
        self.table = table
        return first
