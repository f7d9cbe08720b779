"""Rows of a log in memory, and the transfers of elements in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from fabric.timing.engine import log
from fabric.timing.engine.log import Entries, Entry, Keeper, Log
from fabric.timing.engine.tables import Counters, Row, Table
from fabric.timing.engine.unit import Unit

COLUMNS: Final = tuple(Entry.__annotations__)


class KeptRows(Keeper):
    """Keeps the rows of a run, columns in the smallest integer types."""

    def __init__(self) -> None:
        self._log: Log
        self._parts: list[list[NDArray[np.signedinteger]]] = []

    @override
    def follow(self, log: Log, units: Sequence[Unit]) -> None:
        self._log = log
        self._parts = []

    @override
    def keep(self, rows: Entries) -> None:
        if len(rows):
            self._parts.append([narrowed(rows[name]) for name in COLUMNS])

    def take(self) -> Entries:
        """Return and remove the rows so far, columns in the smallest integer types."""
        self._log.flush()
        parts, self._parts = self._parts, []
        if not parts:
            return np.zeros(0, log.ENTRY)
        columns = [*zip(*parts, strict=True)]
        types = [(name, np.result_type(*part)) for name, part in zip(COLUMNS, columns, strict=True)]
        rows = np.empty(sum(map(len, columns[0])), types)
        while columns:
            np.concatenate(columns.pop(), out=rows[COLUMNS[len(columns)]])
        return rows


def narrowed(column: Counters) -> NDArray[np.signedinteger]:
    """Return ``column`` in the smallest type that holds its numbers."""
    least, most = int(column.min()), int(column.max())
    return column.astype(np.min_scalar_type(min(least, -1 - most)))


class Transfer(Row):
    """An element. A cycle is -1 if the event has not happened, or if no cycle was requested.

    Attributes:
        element: number of the element in the channel, bare stops included.
        dropped: 1 if the element came after the operator of the consumer had ended.
    """

    channel: int
    element: int
    stop: int
    sent_cycle: int
    requested_cycle: int
    taken_cycle: int
    dropped: int


TRANSFER: Final = Table.zeros(Transfer, 0).rows.dtype


class Transfers:
    """The elements of a run, from its rows so far.

    Attributes:
        rows: with the columns of ``Transfer``, by channel and element.
    """

    def __init__(self, channels: int) -> None:
        self.rows = np.zeros(0, TRANSFER)
        self._sent = np.zeros(channels, np.int64)
        self._taken = np.zeros(channels, np.int64)

    def add(self, entries: Entries) -> None:
        """Add the elements of more rows."""
        kind = entries["operation"]
        sent = np.flatnonzero(np.isin(kind, log.SENDS))
        new = np.full(len(sent), -1, TRANSFER)
        new["channel"], new["stop"] = entries["channel"][sent], entries["stop"][sent]
        new["element"] = numbered(new["channel"], self._sent)
        new["sent_cycle"] = entries["cycle"][sent]
        new["requested_cycle"] = requested_of(entries, sent)
        new["dropped"] = 0
        rows = np.concatenate([self.rows, new])
        self.rows = rows = rows[np.lexsort((rows["element"], rows["channel"]))]
        taken = np.flatnonzero(np.isin(kind, log.TAKES))
        channel, kind = entries["channel"][taken].astype(np.int64), kind[taken]
        places = np.searchsorted(
            _keys(rows["channel"], rows["element"]),
            _keys(channel, numbered(channel, self._taken)),
        )
        heard = kind == log.HEAR
        rows["taken_cycle"][places] = np.where(
            heard, entries["amount"][taken], entries["cycle"][taken]
        )
        rows["dropped"][places] = kind == log.DROP


def numbered(channel: Counters, totals: Counters, counted: ArrayLike = True) -> Counters:
    """Return, by row, how many counted rows of its channel precede it; update ``totals``."""
    counted = np.broadcast_to(np.asarray(counted, np.bool_), channel.shape)
    order = np.argsort(channel, kind="stable")
    by_channel, adds = channel[order], counted[order]
    sums: Counters = np.cumsum(adds) - adds
    before = np.empty(len(channel), np.int64)
    before[order] = totals[by_channel] + sums - sums[np.searchsorted(by_channel, by_channel)]
    totals += np.bincount(channel[counted], minlength=len(totals))
    return before


def _keys(channel: Counters, element: Counters) -> Counters:
    return channel << 40 | element


def requested_of(entries: Entries, sent: Counters) -> Counters:
    """Return the requested cycles of the elements that rows ``sent`` send; -1 without a request."""
    kind = entries["operation"]
    places = np.flatnonzero(np.isin(kind, (*log.SENDS, *log.REQUESTS)))
    # On a channel, the row after a request sends the requested element.
    places = places[np.argsort(entries["channel"][places], kind="stable")]
    requests = np.flatnonzero(np.isin(kind[places[:-1]], log.REQUESTS))
    requested = np.full(len(entries), -1)
    requested[places[requests + 1]] = entries["amount"][places[requests]]
    return requested[sent]
