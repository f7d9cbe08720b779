"""Elements as integers: the kind of a value, the number in its tile, and the stop."""

from __future__ import annotations

from collections.abc import Hashable
from operator import index
from typing import Any, Final, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.graph.values.fit import SentTile
from fabric.graph.values.value import Element, Empty, Selector, Tile, Value, items_of, size_bytes
from fabric.timing.compiled.world import (
    BARE,
    ENDED_CODE,
    KIND_SHIFT,
    LEVEL_BITS,
    NUMBER_BITS,
    NUMBER_MASK,
    NUMBER_SHIFT,
    BurstSize,
    GrowingTable,
    Kind,
)

Key: TypeAlias = Hashable
"""A code, or nested tuples; equal for equal values."""

_LEVELS: Final = (1 << LEVEL_BITS) - 1

_MOST_KEPT: Final = 1 << 12
"""The most values in each cache. A full cache is cleared, since most values never repeat."""

_TILES: Final = frozenset({Tile, SentTile})

_KINDS: Final = _TILES | {Selector, Empty, bool, tuple}
"""Types with codes. Subclasses have no codes, since they may have attributes that a key lacks."""


class UnfitError(Exception):
    """An element has no code, or an operator's behaviour cannot be recorded."""


class Unreadable:
    """A value that an operator passes on. The operator must not look at it."""

    __slots__ = ()

    def _refuse(self, _: object = None) -> bool:
        raise UnfitError

    __eq__ = __bool__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class OpaqueTile(Tile):
    """A tile of one number, which must not be read."""

    __slots__ = ("looked", "port")

    def __init__(self, like: Tile, port: int, looked: object = None) -> None:
        """Replace ``like`` in input ``port``. Copies of one peeked tile share ``looked``."""
        self.rows, self.cols, self.dtype = like.rows, like.cols, like.dtype
        self.in_memory = like.in_memory
        self.valid_rows, self.valid_cols = like.valid_rows, like.valid_cols
        self.port = port
        self.looked = looked or object()

    @override
    def placed(self, *, in_memory: bool) -> Tile:
        moved = OpaqueTile(self, self.port, self.looked)
        moved.in_memory = in_memory
        return moved

    @property
    def data(self) -> Any:  # type: ignore[override]
        raise UnfitError


class OpaqueNumber(Unreadable):
    """The number of an opaque tile."""

    __slots__ = ("tile",)

    def __init__(self, tile: OpaqueTile) -> None:
        self.tile: Final = tile


class Codes:
    """Numbers the kinds of values and the sizes of off-chip bursts in a run."""

    def __init__(self) -> None:
        self.kinds: Final = GrowingTable(Kind)
        self.bursts: Final = GrowingTable(BurstSize)
        self._numbers: dict[tuple[int, int], int] = {}
        self._kinds: dict[Key, int] = {}
        self._values: list[Value] = []
        self._decoded: dict[int, Value] = {}
        self._coded: dict[int, tuple[Value, int]] = {}
        self._of_numbers: dict[Key, int] = {}

    def code(self, element: Element) -> int:
        """Return the number for ``element``; raise UnfitError if it has none."""
        value, level = element
        if not 0 <= level <= _LEVELS:
            raise UnfitError
        coded = self._coded.get(id(value))
        if coded is not None:
            return coded[1] | level
        if value.__class__ in _TILES and (number := _number(value)) is not None:
            shape = _shape(value)
            kind = self._of_numbers.get(shape)
            if kind is None:
                self._of_numbers[shape] = kind = self._kind(value)
            return kind << KIND_SHIFT | number << NUMBER_SHIFT | level
        bare = BARE if value.__class__ is Empty else 0
        code = self._kind(value) << KIND_SHIFT | bare
        if len(self._coded) == _MOST_KEPT:
            self._coded.clear()
        # The value is kept, so that no other value gets its id.
        self._coded[id(value)] = value, code
        return code | level

    def element(self, code: int) -> Element | None:
        """Return the element of ``code``; None for the end of a stream."""
        if code == ENDED_CODE:
            return None
        what = code >> NUMBER_SHIFT
        value = self._decoded.get(what)
        if value is None:
            if len(self._decoded) == _MOST_KEPT:
                self._decoded.clear()
            self._decoded[what] = value = self._make(code)
        return value, code & _LEVELS

    def opaque(self, code: int, port: int) -> Element | None:
        """Return the element of ``code`` in input ``port``; the number in its tile is opaque."""
        element = self.element(code)
        if element is None or not isinstance(element[0], Tile) or _number(element[0]) is None:
            return element
        return OpaqueTile(element[0], port), element[1]

    def key(self, tile: Tile) -> Key:
        """Return the key of a ``tile`` that an operator keeps from turn to turn."""
        if isinstance(tile, OpaqueTile):
            return ("any", tile.port, *_shape(tile))
        return self.code((tile, 0))

    def burst(self, rows: int, row_bytes: int) -> int:
        """Return the row of ``bursts`` with this size."""
        burst = index(rows), index(row_bytes)
        if burst not in self._numbers:
            self._numbers[burst] = self.bursts.extend([burst])
        return self._numbers[burst]

    def same_kind(self, tile: OpaqueTile, level: int) -> int:
        """Return the code of a tile like ``tile``, without its number."""
        return self.code((_numbered(tile, 0), level))

    def _key(self, value: Value) -> Key:
        if type(value) not in _KINDS:
            raise UnfitError
        if isinstance(value, Tile):
            return _tile_key(value)
        if isinstance(value, Selector | Empty):
            return (type(value), *value)
        if isinstance(value, bool):
            return (bool, value)
        return (tuple, *(self.code((item, 0)) for item in items_of(value)))

    def _kind(self, value: Value) -> int:
        key = self._key(value)
        kind = self._kinds.get(key)
        if kind is None:
            self._kinds[key] = kind = len(self._values)
            self._values.append(value)
            empty = value.dimension if isinstance(value, Empty) else 0
            self.kinds.extend([[empty, size_bytes(value)]])
        return kind

    def _make(self, code: int) -> Value:
        value = self._values[code >> KIND_SHIFT]
        if isinstance(value, Tile) and _number(value) is not None:
            number = (code & NUMBER_MASK) >> NUMBER_SHIFT
            return _numbered(value, number)
        return value


def _numbered(like: Tile, number: int) -> Tile:
    return Tile(
        like.rows,
        like.cols,
        like.dtype,
        np.full((1, 1), number, like.dtype),
        in_memory=like.in_memory,
        valid_rows=like.valid_rows,
        valid_cols=like.valid_cols,
    )


def _number(tile: Tile) -> int | None:
    """Return the number of a 1x1 tile that fits into a code; None for other tiles."""
    data = tile.data
    if data is None or data.size != 1 or data.dtype.kind not in "iu":
        return None
    number: int = data.item()
    return number if 0 <= number < 1 << NUMBER_BITS else None


def _tile_key(tile: Tile) -> Key:
    shape = _shape(tile)
    if tile.data is None:
        return ("tile", *shape)
    if _number(tile) is not None:
        return ("number", *shape)
    return ("data", *shape, tile.data.tobytes())


def _shape(tile: Tile) -> tuple[object, ...]:
    return (
        tile.rows,
        tile.cols,
        tile.dtype,
        tile.in_memory,
        tile.valid_rows,
        tile.valid_cols,
    )
