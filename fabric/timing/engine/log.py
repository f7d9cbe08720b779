"""The log of a run: one row for each operation of a unit, from tasks and from the compiled loop.

Rows of one unit are in the order of its operations; the host decides the order of units. A unit
worked from the cycle of its previous row to ``cycle - waited`` of the next row.
"""

from __future__ import annotations

import itertools
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.graph.values.value import Empty, size_bytes
from fabric.timing.engine.tables import Row, Table
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.unit import Unit


class Entry(Row):
    """An operation.

    Attributes:
        channel: -1 for none.
        amount: depends on the operation, see below.
        stop: level of a sent element; ``~level`` of a bare stop; number of the reading for NOTE,
            LATE and AT.
        cycle: the unit's clock after the operation.
        waited: cycles that the unit waited for it; for UNTIL, cycles that it worked.
    """

    unit: int
    operation: int
    channel: int
    amount: int
    stop: int
    cycle: int
    waited: int


SEE: Final = 0
"""The unit saw an element that it takes later."""
TAKE: Final = 1
SEND: Final = 2
"""The amount is the bytes of the element, here and for PUT."""
RESERVE: Final = 3
PUT: Final = 4
"""Send an element in a slot that was reserved before."""
END: Final = 5
"""The unit saw the end of a stream."""
FINISH: Final = 6
"""The operator ended, and so did its outputs."""
WORK: Final = 7
"""Work that no later operation counts; only in records."""
BURST: Final = 8
"""Off-chip memory has answered a burst of ``amount`` requests. In a record, any wait for memory."""
NOTE: Final = 9
"""A reading of the clock, numbered in ``stop``."""
LATE: Final = 10
"""The next element is visible from the cycle ``amount``, stated relative to a reading."""
AT: Final = 11
"""The next element is visible from the cycle ``amount``, not stated relative to a reading."""
ARRIVAL: Final = 12
"""Remember when this element of the channel became visible."""
UNTIL: Final = 13
"""The unit is busy until ``amount`` cycles after the remembered arrival."""
IDLE: Final = 14
"""The unit waited for an element that was sent in the cycle ``amount`` and is seen later."""
HEAR: Final = 15
"""The unit notes that an element was dequeued in the cycle ``amount``, before its clock."""
CHOICE: Final = 16
"""The next work of the unit depends on which input came first."""
LINKS: Final = 17
"""Shared links caused ``amount`` cycles of the wait that ends now."""
DROP: Final = 18
"""An element came after the operator had ended, and was dequeued in this cycle."""
CROSS: Final = 19
"""An element has left shared links in this cycle, and is visible from the cycle in ``amount``."""
ALLOCATE: Final = 20
"""The unit waited for ``amount`` bytes of on-chip memory."""

SENDS: Final = (SEND, PUT)
TAKES: Final = (TAKE, HEAR, DROP)
REQUESTS: Final = (LATE, AT)

LAST_WORKED: Final = FINISH
"""In a record, the amount of operations up to this one is the cycles of work before them."""

SHIFT: Final = 4
"""An event of a record is ``channel << SHIFT | operation``, and an amount."""
KIND: Final = (1 << SHIFT) - 1
NONE: Final = -1  # No channel, cycle or unit

FROM_START: Final = -1
FROM_UNKNOWN: Final = -2
"""``stop`` of AT: the cycle counts from the start of the run, or from an unknown cycle."""

Entries: TypeAlias = NDArray[np.void]
"""Rows with the columns of ``Entry``."""

ENTRY: Final = Table.zeros(Entry, 0).rows.dtype

_pack: Final = Struct(f"={len(Entry.__annotations__)}q").pack_into
_ROW_BYTES: Final = ENTRY.itemsize
ROWS: Final = 1 << 17
"""Rows of a full buffer."""


class Keeper:
    """Receives the rows of a run. ``follow`` is called again if the run begins again."""

    def follow(self, log: Log, units: Sequence[Unit]) -> None:
        """A machine of ``units`` is being built, which writes to ``log``."""

    def keep(self, rows: Entries) -> None:
        """Use or copy ``rows``, which are overwritten afterwards."""


class Log:
    """The rows that no keeper has received yet.

    Attributes:
        table: a buffer; the first ``count`` rows are in use.
        next_order: draws a number higher than all before.
    """

    def __init__(self, keepers: Sequence[Keeper], units: Sequence[Unit]) -> None:
        # One event of the memory or of a flow of shared links may write a row for each unit.
        self.table = Table.zeros(Entry, ROWS + 2 * len(units))
        self._bytes = self.table.cells.data.cast("B")
        self._used_bytes = 0
        self._keepers: Final = keepers
        self.next_order: Final[Callable[[], int]] = itertools.count().__next__
        for keeper in keepers:
            keeper.follow(self, units)

    @property
    def count(self) -> int:
        return self._used_bytes // _ROW_BYTES

    @count.setter
    def count(self, rows: int) -> None:
        self._used_bytes = rows * _ROW_BYTES

    def flush(self) -> None:
        """Pass the rows on and empty the buffer."""
        rows, self._used_bytes = self.table.rows[: self.count], 0
        for keeper in self._keepers:
            keeper.keep(rows)

    def close(self) -> None:
        """Pass the last rows on, and free the buffer, since channels keep the log."""
        self.flush()
        self._bytes = memoryview(b"")
        self.table = Table.zeros(Entry, 0)

    def add(
        self, unit: Unit, kind: int, on: int = -1, amount: int = 0, stop: int = 0, waited: int = 0
    ) -> None:
        """Write an operation that ends at the clock of ``unit``; ``on`` is the channel."""
        self.write(unit.index, kind, on, amount, stop, unit.now, waited)

    def write(self, *row: int) -> None:
        """Write a row, if there is a keeper."""
        if not self._keepers:
            return
        used = self._used_bytes
        _pack(self._bytes, used, *row)
        self._used_bytes = used + _ROW_BYTES
        if self._used_bytes == len(self._bytes):
            self.flush()

    def reading(self, unit: Unit) -> Reading:
        """Return the clock of ``unit`` as a reading with a number."""
        order = self.next_order()
        self.add(unit, NOTE, stop=order)
        return Reading.at(unit.now, order)

    def arrived(self, channel: ChannelLog, element: int) -> None:
        self.add(channel.consumer, ARRIVAL, channel.number, element)

    def was_busy(self, unit: Unit, charged_cycles: int, cycles: int) -> None:
        """Write that the unit was charged what was left of ``cycles`` after an arrival."""
        self.add(unit, UNTIL, amount=cycles, waited=charged_cycles)

    def chose(self, unit: Unit) -> None:
        self.add(unit, CHOICE)

    def finished(self, unit: Unit) -> None:
        self.add(unit, FINISH)

    def allocated(self, unit: Unit, room_bytes: int, waited: int) -> None:
        if waited:
            self.add(unit, ALLOCATE, amount=room_bytes, waited=waited)

    def burst(self, unit: Unit, requests: int, waited: int) -> None:
        self.add(unit, BURST, amount=requests, waited=waited)


class ChannelLog:
    """Writes the operations on channel ``number``."""

    def __init__(self, number: int, producer: Unit, consumer: Unit, log: Log) -> None:
        self.number: Final = number
        self.producer: Final = producer
        self.consumer: Final = consumer
        self._log: Final = log

    def sent(self, element: Element, waited: int, operation: int = SEND) -> None:
        value, stop = element
        stop = ~stop if value.__class__ is Empty else stop
        self._log.add(self.producer, operation, self.number, size_bytes(value), stop, waited)

    def sent_at(self, element: Element, requested_cycle: int, waited: int) -> None:
        unit = self.producer
        kind, reading = AT, FROM_UNKNOWN
        if isinstance(requested_cycle, Reading):
            reading = requested_cycle.order
            kind = AT if reading == FROM_START else LATE
        before = unit.now - waited
        self._log.write(unit.index, kind, self.number, int(requested_cycle), reading, before, 0)
        self.sent(element, waited)

    def reserve(self, waited: int) -> None:
        self._log.add(self.producer, RESERVE, self.number, waited=waited)

    def put(self, element: Element) -> None:
        """Write that ``element`` is sent in the oldest reserved slot."""
        self.sent(element, 0, PUT)

    def peeked(self, waited: int) -> None:
        self._log.add(self.consumer, SEE, self.number, waited=waited)

    def took(self, waited: int = 0) -> None:
        self._log.add(self.consumer, TAKE, self.number, waited=waited)

    def heard(self, cycle: int) -> None:
        """Write a dequeue at ``cycle``, before the consumer's clock."""
        self._log.add(self.consumer, HEAR, self.number, cycle)

    def idled(self, waited: int, until_cycle: int) -> None:
        """Write a wait for an element that the consumer looks at later."""
        self._log.chose(self.consumer)
        if waited:
            self._log.add(self.consumer, IDLE, self.number, until_cycle, waited=waited)

    def ended(self, waited: int) -> None:
        self._log.add(self.consumer, END, self.number, waited=waited)

    def waited_for_links(self, cycles: int) -> None:
        """Write that the wait that ends now includes ``cycles`` for shared links."""
        self._log.add(self.consumer, LINKS, self.number, cycles)

    def left_over(self, cycle: int) -> None:
        self._log.write(self.consumer.index, DROP, self.number, 0, 0, cycle, 0)

    def sent_over_links(self, size_bytes: int) -> None:
        """Do nothing: the row of the send has the size. Observers override this."""

    def crossed(self, cycle: int, visible_cycle: int) -> None:
        """Write that the oldest element on shared links has left them at ``cycle``."""
        self._log.write(self.producer.index, CROSS, self.number, visible_cycle, 0, cycle, 0)
