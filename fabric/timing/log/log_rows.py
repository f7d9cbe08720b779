"""Events of a run as rows of integers, in buffers that are flushed when full, or kept.

An element sent and received by one operation each has a short row. Its row is long if its slot was
reserved, if it was requested for later, or if it was peeked.
"""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap
from struct import calcsize
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fabric.messages.causes import Step
from fabric.timing.engine.tables import Counters, Row, Table

if TYPE_CHECKING:
    from fabric.timing.engine.observer import Stamp


class LongRow(Row):
    """A transfer; -1 for future events. ``stop`` of a bare stop of level n is ~n."""

    channel: int
    element: int
    stop: int
    taken_order: int
    taken_cycle: int
    receive_wait_cycles: int
    sent_order: int
    sent_cycle: int
    send_wait_cycles: int
    requested_cycle: int
    reserved_order: int
    reserved_cycle: int
    seen_order: int
    seen_cycle: int


LONG_COLUMNS: Final = tuple(LongRow.__annotations__)

SHORT_COLUMNS: Final = LONG_COLUMNS[: LONG_COLUMNS.index("requested_cycle")]
"""Columns of a usual transfer."""

_LONG_OF_SHORT: Final = [
    SHORT_COLUMNS.index(name) for name in (
        *SHORT_COLUMNS, "channel", "sent_order", "sent_cycle", "taken_order", "taken_cycle"
    )
]  # fmt: skip
"""Long columns of short rows, without requests."""

OPERATION_COLUMNS: Final = (
    "operation", "unit", "order", "cycle", "wait_cycles", "channel", "amount"
)  # fmt: skip
"""Columns of everything else: amount is requests of a burst, bytes of an allocation,
the sending cycle of the element that was waited for."""

NUMBERED: Final = (Step.BURST, Step.ALLOCATE, Step.END, Step.RESERVE, Step.IDLE)
"""Operations other than transfers; a row has their index."""

BURST, ALLOCATE, END, RESERVE, IDLE = range(len(NUMBERED))

LATE, ARRIVAL, UNTIL, FINISH, CHOICE, SIZE, LINKS = range(len(NUMBERED), len(NUMBERED) + 7)
"""Not operations of their own, but what follows from other stamps than the clock before it. Of
LATE, ``wait_cycles`` is the number of the reading the amount counts from, -1 for cycle 0, UNKNOWN
for an integer that may be anything, and the cycle is the clock that was read; the amount of ARRIVAL
is an element, of UNTIL and LATE cycles. SIZE has the bytes of elements that shared links carry,
from the one on whose number stands in the place of an order until the next such row. LINKS has the
cycles, of the wait that ends in its cycle, in which shared links held an element up."""

UNKNOWN: Final = -2
"""An unknown reading."""

LEFT_OVER: Final = -2
"""Order of a dequeue after the consumer's operator had ended."""

_ROWS: Final = 1 << 17
"""Rows of a full segment."""


def as_long(table: Counters) -> NDArray[np.void]:
    """Return short or long rows as ``LongRow``."""
    if table.shape[1] < len(LONG_COLUMNS):
        table = table[:, _LONG_OF_SHORT]
        table[:, LONG_COLUMNS.index("requested_cycle")] = -1
    return Table(LongRow, np.ascontiguousarray(table)).rows


class Packed:
    """A buffer of rows of 64-bit integers.

    Attributes:
        written: rows before it are on disk.
    """

    __slots__ = ("buffer", "columns", "limit", "offset", "written")

    def __init__(self, columns: tuple[str, ...], rows: int) -> None:
        self.columns: Final = columns
        self.limit: Final = rows * calcsize(f"={len(columns)}q")
        # Memory that is not touched before it is used.
        self.buffer = memoryview(mmap(-1, self.limit))
        self.offset = 0
        self.written = 0

    def release(self) -> None:
        """Free the memory; unreachable channels may live longer."""
        self.buffer = memoryview(b"")


class Rows:
    """Rows since the last flush.

    Attributes:
        short, long: transfers.
        flush: writes the new rows and clears the buffers.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        self.short: Final = Packed(SHORT_COLUMNS, _ROWS)
        self.long: Final = Packed(LONG_COLUMNS, _ROWS)
        self.operations: list[tuple[int, int, int, int, int, int, int]] = []
        self.flush: Final = flush

    def operation(
        self,
        operation: int,
        unit: int,
        stamp: Stamp,
        channel: int = -1,
        amount: int = 0,
    ) -> None:
        """Record an operation other than a transfer."""
        order, cycle, wait_cycles = stamp
        self.operations.append((operation, unit, order, cycle, wait_cycles, channel, amount))
        if len(self.operations) >= _ROWS:
            self.flush()


class KeptRows:
    """Rows in memory, until they are taken."""

    def __init__(self) -> None:
        self.rows: Final = Rows(self._empty)
        self._transfers: list[Counters] = []
        self._operations: list[Counters] = []

    def take(self) -> tuple[list[Counters], Counters]:
        """Return and remove tables of short and of long rows, and operations."""
        self._empty()
        found = self._transfers, np.concatenate(self._operations)
        self._transfers, self._operations = [], []
        return found

    def _empty(self) -> None:
        rows = self.rows
        self._transfers += [_table(rows.short), _table(rows.long)]
        operations = np.array(rows.operations, np.int64)
        self._operations.append(operations.reshape(-1, len(OPERATION_COLUMNS)))
        rows.operations.clear()


def _table(packed: Packed) -> Counters:
    table = np.frombuffer(packed.buffer[: packed.offset], np.int64)
    packed.offset = 0
    return table.reshape(-1, len(packed.columns)).copy()
