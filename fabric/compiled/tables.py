"""The tables of all automata of a run, as the arrays that the compiled loop reads."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fabric.compiled import columns as c
from fabric.compiled.kernel_stages import entry_of

__all__ = ["Array", "Rows", "Tables"]

Array = NDArray[np.int64]


_KNOWN: Final = 1 << 14
"""Room for transitions at first; to hash them anew takes as long as to find them out."""


class Rows:
    """Rows of an array that grows.

    Attributes:
        array: with room for more.
        count: how many there are.
    """

    def __init__(self, columns: int, room: int = 64) -> None:
        self.array: Array = np.zeros((room, columns), np.int64)
        self.count = 0

    def extend(self, rows: list[list[int]]) -> int:
        """Add ``rows`` and return the number of the first."""
        first = self.reserve(len(rows))
        if len(rows) == 1:
            self.array[first] = rows[0]
        elif rows:
            self.array[first : first + len(rows)] = rows
        return first

    def reserve(self, rows: int) -> int:
        """Add so many rows of zeros and return the number of the first."""
        first = self.count
        while first + rows > len(self.array):
            self.array = np.concatenate([self.array, np.zeros_like(self.array)])
        self.count += rows
        return first


class Tables:
    """States, transitions and operations of all automata.

    Attributes:
        states, transitions, operations: see ``columns``.
        known: transitions, hashed by state and code.
        steps: elements that operators have been handed to find all that out.
    """

    def __init__(self) -> None:
        self.states: Final = Rows(c.STATE_COLUMNS)
        self.transitions: Final = Rows(c.TRANSITION_COLUMNS)
        self.operations: Final = Rows(c.OPERATION_COLUMNS, 1024)
        self.steps = 0
        self.known: Array = np.zeros((_KNOWN, c.KNOWN_COLUMNS), np.int64)

    def state(self, kind: int, port: int, *, carries: bool) -> int:
        """Add a state and return its number."""
        return self.states.extend([[kind, port, int(carries), 0, -1]])

    def stretch(self, operations: list[list[int]]) -> tuple[int, int]:
        """Add a stretch of operations and return where it begins and ends."""
        start = self.operations.extend(operations)
        return start, start + len(operations)

    def transition(self, state: int, code: int, operations: list[list[int]], after: int) -> None:
        """Say what follows ``code`` in ``state``."""
        start, stop = self.stretch(operations)
        number = self.transitions.extend([[start, stop, after]])
        if 2 * self.transitions.count > len(self.known):
            entries = self.known[self.known[:, 0] != 0].tolist()
            self.known = np.zeros((2 * len(self.known), c.KNOWN_COLUMNS), np.int64)
            for follower, its_code, its_number in entries:
                self._put(follower - 1, its_code, its_number)
        self._put(state, code, number)

    def _put(self, state: int, code: int, number: int) -> None:
        entries = len(self.known)
        at = entry_of(state, code, entries)
        while self.known[at, 0]:
            at = (at + 1) & (entries - 1)
        self.known[at] = (state + 1, code, number)
