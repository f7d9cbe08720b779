"""Rows of the trace on their way to disk: a buffer of fixed size, flushed as a segment."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from struct import calcsize
from typing import Final

__all__ = ["ALLOCATE", "BURST", "END", "OPERATION_COLUMNS", "ROW", "ROW_COLUMNS", "Rows"]

ROW_COLUMNS: Final = (
    "channel", "element", "stop",
    "taken_order", "taken_cycle",
    "seen_order", "seen_cycle", "receive_wait_cycles",
    "reserved_order", "reserved_cycle", "send_wait_cycles",
    "sent_order", "sent_cycle", "requested_cycle",
)  # fmt: skip
"""Columns of a transfer; ``stop`` of a bare stop of level n is ~n."""

OPERATION_COLUMNS: Final = (
    "operation", "unit", "order", "cycle", "wait_cycles", "channel", "amount"
)  # fmt: skip
"""Columns of everything else: amount is requests of a burst, bytes of an allocation."""

BURST: Final = 0
ALLOCATE: Final = 1
END: Final = 2

ROW: Final = f"={len(ROW_COLUMNS)}q"
_ROWS_IN_A_SEGMENT: Final = 1 << 17


class Rows:
    """What has been recorded since the last segment was written.

    Attributes:
        buffer: transfers, packed.
        offset: where the next one goes.
        limit: where the buffer is full.
        operations: everything else.
        next_order: the next number of the counter of operations.
        flush: writes a segment and starts over.
    """

    __slots__ = ("buffer", "flush", "limit", "next_order", "offset", "operations")

    def __init__(self, flush: Callable[[], None], rows: int = _ROWS_IN_A_SEGMENT) -> None:
        """Start empty, with room for ``rows`` transfers."""
        self.limit: Final = rows * calcsize(ROW)
        self.buffer: Final = bytearray(self.limit)
        self.offset = 0
        self.operations: list[tuple[int, int, int, int, int, int, int]] = []
        self.next_order: Final = count().__next__
        self.flush: Final = flush

    def operation(
        self,
        operation: int,
        unit: int,
        cycle: int,
        wait_cycles: int,
        channel: int,
        amount: int,
        *,
        order: int | None = None,
    ) -> None:
        """Record what is no transfer, at the unit's clock after the wait."""
        if order is None:
            order = self.next_order()
        self.operations.append((operation, unit, order, cycle, wait_cycles, channel, amount))
        if len(self.operations) >= _ROWS_IN_A_SEGMENT:
            self.flush()
