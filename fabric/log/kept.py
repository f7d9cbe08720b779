"""Rows that are kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.log.rows import OPERATION_COLUMNS, Rows

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.log.rows import Packed

__all__ = ["KeptRows"]


class KeptRows:
    """What has been recorded and not been asked for.

    Attributes:
        rows: where it is recorded.
    """

    def __init__(self) -> None:
        self.rows: Final = Rows(self._empty)
        self._transfers: list[Counters] = []
        self._operations: list[Counters] = []

    def take(self) -> tuple[list[Counters], Counters]:
        """Return tables of short and of long rows, and operations; they are not kept any more."""
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
    """Return the rows of a buffer, which has none of them afterwards."""
    table = np.frombuffer(packed.buffer[: packed.offset], np.int64)
    packed.offset = 0
    return table.reshape(-1, len(packed.columns)).copy()
