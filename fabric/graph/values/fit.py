"""Checks of the values that users' operators and functions send, against the types of streams."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Final, SupportsIndex

import ml_dtypes
import numpy as np
from typing_extensions import override

from fabric.graph.arguments.checks import is_masked
from fabric.graph.values.stream_type import (
    BoolType,
    BufferType,
    SelectorType,
    StreamType,
    TileType,
    TupleType,
    ValueType,
)
from fabric.graph.values.value import (
    BufferReference,
    Empty,
    Selector,
    Tile,
    dtype_name,
    is_constant,
)
from fabric.messages.errors import Refusal
from fabric.messages.text import counted

MOST_CYCLES: Final = 1 << 60
"""The latest cycle of a unit's clock, since traces and the HBM count in 64 bits."""

_NO_NUMBERS: Final = "SUOMm"
"""Kinds of numpy's types that are not numbers: text, objects, dates and time spans."""


class SentTile(Tile):
    """A tile with several readers, which refuses changes."""

    __slots__ = ()

    @override
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{name} of {self!r} is set, but other operators may read it: expected a new Tile"
        )

    @override
    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    @override
    def __reduce__(self) -> tuple[object, ...]:
        """Copy as a ``Tile``, which may be changed."""
        flags = {name: getattr(self, name) for name in ("in_memory", "valid_rows", "valid_cols")}
        return partial(Tile, **flags), (self.rows, self.cols, self.dtype, self.data)


def freeze(value: object, *, sent: bool = False) -> None:
    """Make the tiles in ``value`` read-only; if ``sent``, copy data with writable views first."""
    if isinstance(value, Tile):
        data = value.data
        if data is not None:
            if sent and value.__class__ is not SentTile and not is_constant(data):
                value.data = data.copy()
                # Writing to an array that was sent as a whole raises an error.
                data = value.data if data.base is not None else data
                value.data.flags.writeable = False
            data.flags.writeable = False
        if value.__class__ is Tile:
            value.__class__ = SentTile
    elif isinstance(value, BufferReference):
        if sent:
            value.elements = list(value.elements)
        for element, _ in value.elements:
            freeze(element, sent=sent)
    elif type(value) is tuple:
        for item in value:
            freeze(item, sent=sent)


def described(value: object) -> str:
    """Return a description of ``value`` without addresses, so that it is equal in every run."""
    if value is None or isinstance(value, bool | Tile | Selector | BufferReference | Empty):
        return repr(value)
    if isinstance(value, int | float | complex | str | bytes):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape)) or "no"
        return f"an array of {shape} {dtype_name(value.dtype)}"
    if isinstance(value, tuple):
        items = ", ".join(map(described, value[:4])) + (", ..." if len(value) > 4 else "")
        return f"({items})"
    return f"a value of type {type(value).__name__}"


def whole(number: object, what: str) -> int:
    """Return ``number`` as a Python integer; refuse bools and integers below 0."""
    try:
        if isinstance(number, bool) or not isinstance(number, SupportsIndex):
            raise TypeError
        result = operator.index(number)
    except TypeError:
        raise Refusal(f"{described(number)} {what}: expected an integer") from None
    if result < 0:
        raise Refusal(f"{described(result)} {what}: expected at least 0")
    return result


def element_misfit(
    element: tuple[object, int], last: int, stream_type: StreamType, functional: bool
) -> str | None:
    """Return the fault of an element of a stream, or None.

    ``last`` is the level of the previous stop; at the start, it is the rank of the stream.
    """
    value, stop = element
    rank = len(stream_type.shape) - 1
    if not 0 <= stop <= rank:
        return f"has a stop of level {stop}: expected 0 to {rank}, the rank of {stream_type}"
    if type(value) is not Empty:
        fault = misfit(value, stream_type.value, functional)
        return None if fault is None else f"is {fault}"
    empty = value.dimension
    if type(empty) is not int or not 0 <= empty < stop:
        return (
            f"is {value!r} with a stop of level {stop}: expected a level above that of the empty "
            "dimension"
        )
    if empty > last:
        return (
            f"is {value!r} inside of dimension {last}, which is still open: expected an empty "
            f"dimension of at most {last}"
        )
    return None


def misfit(value: object, kind: ValueType, functional: bool) -> str | None:
    """Return the fault of a ``value`` that is expected to be of type ``kind``, or None."""
    check = _CHECKS.get(type(kind))
    return None if check is None else check(value, kind, functional)


def _tile(value: object, kind: TileType, functional: bool) -> str | None:
    if not isinstance(value, Tile):
        return f"{described(value)}: expected a Tile of {kind}"
    return next(_tile_faults(value, kind), None) or _data_fault(value, functional)


def _tile_faults(tile: Any, kind: TileType) -> Iterator[str]:
    # The attributes of a user's tile may have any type.
    for name, size, promised in (("rows", tile.rows, kind.rows), ("cols", tile.cols, kind.cols)):
        if type(size) is not int:
            yield f"a Tile whose {name} are {described(size)}: expected an integer"
        elif size < 0 or (size != promised and isinstance(promised, int)):
            yield f"a Tile of {tile.rows}x{tile.cols}: expected {kind}"
    if not isinstance(tile.dtype, np.dtype):
        yield f"a Tile whose dtype is {described(tile.dtype)}: expected the np.dtype of {kind}"
    elif tile.dtype != kind.dtype:
        yield f"{tile!r}: expected {kind}"
    elif tile.dtype.kind in _NO_NUMBERS:
        yield f"{tile!r}: expected numbers"
    for name, valid, most in (
        ("rows", tile.valid_rows, tile.rows),
        ("cols", tile.valid_cols, tile.cols),
    ):
        if type(valid) is not int or not 0 <= valid <= most:
            yield f"a Tile with {described(valid)} valid {name}: expected 0 to {most}"
    if type(tile.in_memory) is not bool:
        yield f"a Tile whose in_memory is {described(tile.in_memory)}: expected a bool"


def _data_fault(tile: Tile, functional: bool) -> str | None:
    data: object = tile.data
    shape = f"{tile.rows}x{tile.cols} {dtype_name(tile.dtype)}"
    if data is None:
        return f"{tile!r} without data: expected an array of {shape}" if functional else None
    if not functional and tile.dtype.kind not in "biu":
        return f"{tile!r} with data: expected None in timing mode"
    kept = kept_as(tile.dtype)
    if is_masked(data):
        return f"{tile!r} with masked elements: expected an array of {shape}"
    if isinstance(data, np.ndarray) and data.dtype == kept and data.shape == (tile.rows, tile.cols):
        return None
    if kept != tile.dtype:
        shape = f"{tile.rows}x{tile.cols} float64, as an exact run keeps {dtype_name(tile.dtype)}"
    return f"{tile!r} whose data are {described(data)}: expected an array of {shape}"


def _selector(value: object, kind: SelectorType, _functional: bool) -> str | None:
    if not isinstance(value, Selector):
        return f"{described(value)}: expected a Selector over {kind.width}"
    if value.width != kind.width:
        return f"a Selector over {described(value.width)}: expected over {kind.width}"
    hits = value.hits
    if (
        type(hits) is not tuple
        or not all(type(hit) is int and 0 <= hit < kind.width for hit in hits)
        or sorted(set(hits)) != list(hits)
    ):
        return (
            f"a Selector of {described(hits)}: expected a tuple of different integers from 0 to "
            f"{kind.width - 1}, ascending"
        )
    if kind.hits is not None and len(hits) != kind.hits:
        return f"a Selector of {counted(len(hits), 'stream')}: expected {kind.hits}"
    return None


def _bool(value: object, _kind: BoolType, _functional: bool) -> str | None:
    return None if type(value) is bool else f"{described(value)}: expected a bool"


def _buffer(value: object, kind: BufferType, functional: bool) -> str | None:
    if not isinstance(value, BufferReference):
        return f"{described(value)}: expected a BufferReference to {kind}"
    if value.rank != len(kind.shape):
        return f"{value!r}: expected {counted(len(kind.shape), 'dimension')}"
    for number, (tile, _) in enumerate(value.elements):
        fault = None if isinstance(tile, Empty) else _tile(tile, kind.tile, functional)
        if fault is not None:
            return f"a buffer whose element {number} is {fault}"
    return None


def _tuple(value: object, kind: TupleType, functional: bool) -> str | None:
    if type(value) is not tuple or len(value) != len(kind.items):
        return f"{described(value)}: expected a tuple {kind}"
    for number, (item, promised) in enumerate(zip(value, kind.items, strict=True)):
        fault = misfit(item, promised, functional)
        if fault is not None:
            return f"a tuple whose item {number} is {fault}"
    return None


# Any: each check takes one class of types.
_CHECKS: Final[dict[type, Callable[[object, Any, bool], str | None]]] = {
    TileType: _tile,
    SelectorType: _selector,
    BoolType: _bool,
    BufferType: _buffer,
    TupleType: _tuple,
}


_exact: ContextVar[bool] = ContextVar("exact", default=False)

_DOUBLE: Final = np.dtype(np.float64)


@contextlib.contextmanager
def exact_numbers(exact: bool) -> Iterator[None]:
    """Keep the numbers of all float tiles in float64 inside the block, if ``exact``."""
    token = _exact.set(exact)
    try:
        yield
    finally:
        _exact.reset(token)


def kept_as(dtype: np.dtype) -> np.dtype:
    """Return the type of the array that holds the numbers of a tile of type ``dtype``.

    It is float64 for floats in an exact run, and otherwise ``dtype``. The bytes of a tile follow
    from ``dtype`` in every run.
    """
    return _DOUBLE if _exact.get() and unit_of(dtype) else dtype


@cache
def unit_of(dtype: np.dtype) -> float:
    """Return the distance from 1 to the next number of a float type; 0 for other types."""
    finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
    try:
        return 0.0 if dtype.kind == "c" else float(finfo(dtype).eps)
    except ValueError:
        return 0.0
