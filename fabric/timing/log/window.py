"""The rows of a log that belong to a window of cycles."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fabric.timing.engine import log
from fabric.timing.engine.log import Entries
from fabric.timing.engine.tables import Counters
from fabric.timing.log.transfers import numbered


class Window:
    """Selects the rows of a window.

    It keeps the elements that were dequeued in the window or later. Of elements sent after the
    window it keeps only the first of each channel, because the consumer may have waited for it in
    the window. It keeps other operations that overlap the window.

    Rows from before the window are held until an element of their channel is dequeued in it.

    Attributes:
        first: the first cycle of the window.
    """

    def __init__(self, first: int, last: int, channels: int) -> None:
        self.first: Final = first
        self._last: Final = last
        (
            self._dequeued, self._sent, self._taken, self._crossed, self._reserved, self._put,
            self._begun, self._late, self._kept,
        ) = np.zeros((9, channels + 1), np.int64)  # fmt: skip
        self._known = np.zeros(channels + 1, np.bool_)
        self._held = np.zeros(0, log.ENTRY)
        self._elements = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int64)

    def select(self, new: Entries) -> Entries:
        """Return the rows to keep, among ``new`` and the held rows."""
        elements, numbers = self._numbered(new)
        rows = np.concatenate([self._held, new])
        self._elements = elements = np.concatenate([self._elements, elements])
        self._numbers = numbers = np.concatenate([self._numbers, numbers])
        kind, channel, cycle = rows["operation"], rows["channel"], rows["cycle"]
        self._pair(kind, channel, elements, numbers)
        kept = np.where(
            elements >= 0,
            (self._dequeued[channel] <= elements)
            & ((elements < self._kept[channel]) | (self._late[channel] == 0)),
            (cycle >= self.first) & (cycle - rows["waited"] <= self._last),
        )
        reserves = (kind == log.RESERVE) & (elements < 0)
        kept[reserves] = numbers[reserves] <= self._begun[channel[reserves]]
        self._known |= self._taken > self._dequeued
        held = kept & (cycle < self.first) & ~self._known[channel]
        self._held, self._elements, self._numbers = rows[held], elements[held], numbers[held]
        selected: Entries = rows[kept & ~held]
        return selected

    def end(self) -> None:
        """Hold no more rows: the next ``select`` returns the held ones, too."""
        self._known[:] = True

    def known(self) -> dict[str, np.ndarray]:
        """Return the channels without held rows, and how many elements they omit at the start."""
        channels = np.flatnonzero(self._known[:-1])
        return {"channel": channels, "omitted": self._dequeued[channels]}

    def _numbered(self, rows: Entries) -> tuple[Counters, Counters]:
        """Return, by row, the numbers of its element and of its reservation in the channel.

        The element of a reservation follows from the row that uses it.
        """
        kind, channel = rows["operation"], rows["channel"]
        start = rows["cycle"] - rows["waited"]
        elements, numbers = np.full((2, len(rows)), log.NONE)

        def at(*operations: int) -> NDArray[np.intp]:
            return np.flatnonzero(np.isin(kind, operations))

        ids = at(*log.SENDS, *log.REQUESTS)
        is_send = np.isin(kind[ids], log.SENDS)
        elements[ids] = numbered(channel[ids], self._sent, is_send)
        ids = at(log.SEE, *log.TAKES)
        elements[ids] = numbered(channel[ids], self._taken, kind[ids] != log.SEE)
        ids = at(log.CROSS)
        elements[ids] = numbered(channel[ids], self._crossed)
        ids = at(log.RESERVE)
        numbers[ids] = numbered(channel[ids], self._reserved)
        np.add.at(self._begun, channel[ids[start[ids] <= self._last]], 1)
        ids = at(*log.SENDS)
        is_put = kind[ids] == log.PUT
        numbers[ids] = numbered(channel[ids], self._put, is_put)
        is_late = (numbers[ids] >= self._begun[channel[ids]]) & (is_put | (start[ids] > self._last))
        dropped = is_late & (numbered(channel[ids], self._late, is_late) > 0)
        np.add.at(self._kept, channel[ids[~dropped]], 1)
        ids = at(*log.TAKES)
        dequeued = np.where(kind[ids] == log.HEAR, rows["amount"][ids], rows["cycle"][ids])
        np.add.at(self._dequeued, channel[ids[dequeued < self.first]], 1)
        return elements, numbers

    @staticmethod
    def _pair(kind: Counters, channel: Counters, elements: Counters, numbers: Counters) -> None:
        """Give reservations the elements that use them."""
        places = np.flatnonzero((kind == log.RESERVE) | (kind == log.PUT))
        places = places[np.lexsort((kind[places], numbers[places], channel[places]))]
        first, second = places[:-1], places[1:]
        pairs = (kind[first] == log.RESERVE) & (kind[second] == log.PUT)
        pairs &= (channel[first] == channel[second]) & (numbers[first] == numbers[second])
        elements[first[pairs]] = elements[second[pairs]]
