"""What an operator does, written down: operations between two elements, and what it keeps."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import groupby
from operator import index
from typing import Final, NamedTuple

import numpy as np

from fabric.compiled import columns as c
from fabric.compiled.codes import Codes, OpaqueNumber, OpaqueTile
from fabric.values.value import Element, Tile

__all__ = ["Awaited", "Input", "Recording", "UnfitError"]


_LONGEST_STRETCH: Final = 10_000
"""Operations; a source that sends a million tiles is not written down."""


class UnfitError(Exception):
    """An operator does what cannot be written down."""


class Awaited(NamedTuple):
    """What an operator waits for.

    Attributes:
        kind: PEEK, POP, END or STARVE.
        port: of which input, where it is one.
        stops: where it waits for ever; see ``Wait.stops``.
    """

    kind: int
    port: int = 0
    stops: tuple[int, int] | None = None


class Input:
    """Stands for an input.

    Attributes:
        port: which one.
    """

    def __init__(self, port: int) -> None:
        """Stand for input ``port``."""
        self.port: Final = port


class Recording:
    """Notes what an operator does.

    Attributes:
        operations: since the last element it was handed; rows of the table.
        memory: what it said it keeps, when a turn ended since then; None where none did.
        shown: by input, the value that was looked at last; the loop knows the number of no other.
    """

    def __init__(self, codes: Codes) -> None:
        self.codes: Final = codes
        self.operations: list[list[int]] = []
        self.memory: tuple[object, ...] | None = None
        self.shown: dict[int, object] = {}
        self._moves = 0
        self._latest: _Reading | None = None
        self._repeats = False
        self._has_notes = self._has_repeats = False
        self._kept: list[weakref.ref[_Reading]] = []

    def note(self, what: int, at: int = 0, amount: int = 0) -> None:
        """Note an operation without an element."""
        self._append([what, at, 0, -1, amount, -1])
        if what in (c.CHARGE, c.UNTIL, c.RESERVE):
            self.moved()

    def burst(self, rows: int, row_bytes: int, number: int | OpaqueNumber) -> None:
        """Note that a tile is moved to or from the HBM, wherever the operator's tensor is."""
        port = -1
        if isinstance(number, OpaqueNumber):
            self.check_shown(number.tile)
            port, number = number.tile.port, 0
        self._append([c.BURST, 0, index(number), port, self.codes.burst(rows, row_bytes), -1])
        self.moved()

    def _append(self, operation: list[int]) -> None:
        self.operations.append(operation)
        if len(self.operations) > _LONGEST_STRETCH or abs(operation[c.AMOUNT]) > c.FAR:
            raise UnfitError

    def moved(self) -> None:
        """Know that the clock may have moved."""
        self._moves += 1
        self._latest = None

    def send(self, what: int, port: int, element: Element, asked: _Stamp | None = None) -> None:
        """Note that ``element`` is sent or put."""
        value, level = element
        amount, stamp = 0, -1
        if asked is not None:
            amount = asked.cycles
            stamp = -1 if asked.reading.moves == self._moves else self._number_of(asked)
        if isinstance(value, OpaqueTile):
            self.check_shown(value)
            row = [what, port, self.codes.same_kind(value, level), value.port, amount, stamp]
        else:
            row = [what, port, self.codes.code(element), -1, amount, stamp]
        self._append(row)
        self.moved()

    def check_shown(self, tile: OpaqueTile) -> None:
        """Make sure that the number of ``tile`` is the one that was looked at last.

        Raises:
            UnfitError: another element of that input has been looked at since.
        """
        shown = self.shown.get(tile.port)
        if not isinstance(shown, OpaqueTile) or shown.looked is not tile.looked:
            raise UnfitError

    def clock(self) -> _Stamp:
        """Return a reading of the clock.

        Raises:
            UnfitError: more are kept than the loop has room for.
        """
        latest = self._latest
        if latest is None:
            number = len(self._kept) % c.STAMPS
            if len(self._kept) >= c.STAMPS and self._kept[-c.STAMPS]() is not None:
                raise UnfitError
            latest = self._latest = _Reading(number, self._moves)
            self.operations.append([c.NOTE, 0, 0, -1, 0, number])
            self._has_notes = True
            self._kept.append(weakref.ref(latest))
        return _Stamp(latest)

    def repeated(self, count: int) -> Iterator[int]:
        """Yield once and note that what was done then is done ``count`` times."""
        if self._repeats:
            raise UnfitError
        self._repeats = True
        operations, at = self.operations, len(self.operations)
        # Each time begins with another clock.
        self.moved()
        yield 0
        if operations is not self.operations:
            raise UnfitError
        self.note(c.REPEAT, len(operations) - at, count)
        self._has_repeats = True
        self.moved()
        self._repeats = False

    def is_now(self, stamp: object) -> bool:
        """Whether ``stamp`` is what the clock says."""
        if not isinstance(stamp, _Stamp):
            return False
        return stamp.reading.moves == self._moves and not stamp.cycles

    def stretch(self) -> list[list[int]]:
        """Return the operations so far and begin anew; readings that nobody keeps are left out."""
        operations = self.operations
        self.moved()
        if self._has_notes and not self._has_repeats:
            used = {row[5] for row in operations if row[0] == c.SEND_AT}
            used.update(kept.number for each in self._kept if (kept := each()) is not None)
            operations = [row for row in operations if row[0] != c.NOTE or row[5] in used]
        self.operations = []
        self._has_notes = self._has_repeats = False
        return operations

    def turned(self) -> tuple[object, ...] | None:
        """Return what is kept where a turn has ended since the last call; else None."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory = tuple(map(self.key, memory))
            for each in self._kept:
                if (kept := each()) is not None:
                    kept.number = -1
            self._kept = []
        return memory

    def key(self, kept: object) -> object:
        """Return what stands for ``kept`` in the name of a state."""
        if isinstance(kept, OpaqueTile):
            self.check_shown(kept)
        if isinstance(kept, Tile):
            return self.codes.key(kept)
        if isinstance(kept, Input):
            return "input", kept.port
        if isinstance(kept, np.ndarray):
            return kept.dtype, kept.shape, kept.tobytes()
        if isinstance(kept, list):
            # Many of one tile are the rule: they are looked at once.
            runs = [list(run) for _, run in groupby(kept, id)]
            return "list", *((self.key(run[0]), len(run)) for run in runs)
        if isinstance(kept, tuple):
            return "tuple", *map(self.key, kept)
        return kept

    @staticmethod
    def _number_of(stamp: _Stamp) -> int:
        if stamp.reading.number < 0:
            raise UnfitError
        return stamp.reading.number


class _Reading:
    """What the clock said, and where it is kept; -1 where something else is kept there now."""

    __slots__ = ("__weakref__", "moves", "number")

    def __init__(self, number: int, moves: int) -> None:
        self.number = number
        self.moves = moves


class _Stamp:
    """A reading of the clock, or some cycles after one."""

    __slots__ = ("cycles", "reading")

    def __init__(self, reading: _Reading, cycles: int = 0) -> None:
        self.reading = reading
        self.cycles = cycles

    def __add__(self, cycles: int) -> _Stamp:
        return _Stamp(self.reading, self.cycles + cycles)

    def __sub__(self, cycles: int) -> _Stamp:
        return self + -cycles

    def _refuse(self, _: object = None) -> bool:
        """Refuse to be compared: it is any cycle."""
        raise UnfitError

    __eq__ = __bool__ = _refuse
    __hash__ = None  # type: ignore[assignment]
