"""Values of streams: tiles, selectors, buffers, and their types (arXiv 2511.07776v2, 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import ml_dtypes
import numpy as np

from fabric.graph.arguments.checks import Alias
from fabric.graph.arguments.described import refuse
from fabric.graph.values.block_scaled import BLOCK, BLOCK_SCALED, block_format
from fabric.graph.values.dims import Dim
from fabric.graph.values.expression import ceil_div
from fabric.messages.text import counted, found_text, one_of

Array: TypeAlias = np.ndarray

_DTYPES: Final[dict[str, np.dtype]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "int4": np.dtype(ml_dtypes.int4),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    **BLOCK_SCALED,
}
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}

ADDRESS_DTYPE: Final = _DTYPES["uint64"]

_INT4: Final = _DTYPES["int4"].num
"""Two int4 numbers take one byte in memories and channels. In numpy each takes a byte."""

_PACKED: Final = frozenset({_INT4, np.dtype(np.void).num})
"""Types with numbers that do not take whole bytes."""


def dtype_named(name: str) -> np.dtype:
    """Return the element type called ``name``, such as ``bfloat16``.

    Raises:
        ProgramError: no element type of streams has that name.
    """
    dtype = _DTYPES.get(str(name))
    if dtype is None:
        refuse(f"element type is {found_text(name)}: expected {one_of(list(_DTYPES), str(name))}")
    return dtype


def dtype_name(dtype: np.dtype) -> str:
    """Return the name of ``dtype`` in hardware files and reports."""
    return _NAMES.get(dtype, dtype.name)


def row_bytes(cols: Dim, dtype: np.dtype) -> Dim:
    """Return the bytes that a row of ``cols`` numbers takes in memories and channels.

    Rows begin on whole bytes. Two numbers of ``int4`` are packed into a byte. The elements of a
    block-scaled type are packed, too, and each block of a row has a byte for its scale.
    """
    if dtype.num == _INT4:
        return ceil_div(cols, 2)
    form = block_format(dtype)
    if form is not None:
        return ceil_div(cols * form.bits, 8) + ceil_div(cols, BLOCK)
    return cols * dtype.itemsize


def is_constant(data: object) -> bool:
    """Whether the memory of an array is read-only, also through every other array.

    A read-only view of a writable array is not constant. A read-only array that owns its memory is
    constant, since setting its flag promises that no view is written to.
    """
    while isinstance(data, np.ndarray):
        if data.flags.writeable:
            return False
        if data.base is None:
            return True
        # numpy wraps the base of strided views in another object.
        below = getattr(data.base, "base", None)
        data = below if isinstance(below, np.ndarray) else data.base
    if isinstance(data, memoryview):
        return data.readonly and is_constant(data.obj)
    try:
        return memoryview(data).readonly  # type: ignore[arg-type]  # of bytes, or of a file
    except TypeError:
        return True  # the owner of the memory offers no writable view


class Tile:
    """A two-dimensional piece of a tensor. It must not change once it is sent.

    Attributes:
        rows, cols: the shape; padding counts fully.
        dtype: of one element.
        in_memory: a reader has to load it from a memory unit (the flag mu of the cycle rules).
        valid_rows, valid_cols: the number of rows and columns that are not padding.
        data: rows x cols numbers in functional mode, else None.
    """

    __slots__ = ("_kept", "cols", "data", "dtype", "in_memory", "rows", "valid_cols", "valid_rows")

    _kept: tuple[Array, Array]

    def __init__(
        self,
        rows: int,
        cols: int,
        dtype: np.dtype,
        data: Array | None = None,
        *,
        in_memory: bool = False,
        valid_rows: int | None = None,
        valid_cols: int | None = None,
    ) -> None:
        """Make a tile; by default all rows and columns are valid."""
        self.rows = rows
        self.cols = cols
        self.dtype = dtype
        self.data = data
        self.in_memory = in_memory
        self.valid_rows = rows if valid_rows is None else valid_rows
        self.valid_cols = cols if valid_cols is None else valid_cols

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tile, padding included."""
        dtype = self.dtype
        if dtype.num in _PACKED:
            return self.rows * row_bytes(self.cols, dtype)
        return self.rows * self.cols * dtype.itemsize

    def kept(self, make: Callable[[Tile], Array]) -> Array:
        """Return ``make(self)``, cached with the tile if its data are read-only.

        A tile caches one array, so ``make`` must depend on the tile only.
        """
        data = self.data
        if data is None or data.flags.writeable:
            return make(self)
        cached = getattr(self, "_kept", None)
        if cached is None or cached[0] is not data:
            cached = data, make(self)
            # A tile that was sent refuses a plain assignment.
            object.__setattr__(self, "_kept", cached)
        return cached[1]

    def placed(self, *, in_memory: bool) -> Tile:
        """Return this tile with ``in_memory`` set so."""
        return self if self.in_memory is in_memory else self.with_data(self.data, in_memory)

    def with_data(
        self, data: Array | None, in_memory: bool = False, *, valid_rows: int | None = None
    ) -> Tile:
        """Return a tile of this size, type and padding, with ``data``."""
        rows = self.valid_rows if valid_rows is None else valid_rows
        tile = Tile(self.rows, self.cols, self.dtype, data, in_memory=in_memory, valid_rows=rows)
        tile.valid_cols = self.valid_cols
        return tile

    def __repr__(self) -> str:
        valid = "" if self.valid_rows == self.rows else f", {counted(self.valid_rows, 'row')} valid"
        where = ", in memory" if self.in_memory else ""
        return f"Tile({self.rows}x{self.cols} {dtype_name(self.dtype)}{valid}{where})"


def number_in(tile: Tile) -> int:
    """Return the number that ``tile`` carries.

    Raises:
        ValueError: the tile was computed without data.
    """
    if tile.data is None:
        raise ValueError(
            f"{tile} has no number in timing mode: expected a number from Metadata, from an "
            "address generator, or from the load of a tensor of integers"
        )
    number: int = tile.data.item()
    return number


class Selector(NamedTuple):
    """A multi-hot vector that selects the streams of the next sub-tensor, out of ``width``.

    Attributes:
        hits: the selected indices, ascending.
        width: the length of the vector.
    """

    hits: tuple[int, ...]
    width: int

    @property
    def size_bytes(self) -> int:
        """One byte for each stream that can be selected."""
        return self.width


class Room(Protocol):
    """Room in a memory unit, with one or more holders."""

    @property
    def spilled(self) -> Mapping[int, int]:
        """The off-chip addresses of spilled elements, by their number in the buffer."""

    def share(self, more: int) -> None:
        """Add ``more`` holders."""

    def done(self, cycle: int) -> None:
        """Remove a holder at ``cycle``."""


class BufferReference:
    """A read-only reference to a buffer in a memory unit.

    Attributes:
        elements: the tiles with their stops, in the order of arrival. The last stop closes all
            dimensions of the buffer.
        rank: the number of dimensions of the buffer.
        allocation: its room in the memory unit, until the last holder is removed.
    """

    __slots__ = ("allocation", "elements", "rank")

    def __init__(self, elements: list[Element], rank: int, allocation: Room) -> None:
        self.elements = elements
        self.rank = rank
        self.allocation = allocation

    def __repr__(self) -> str:
        dimensions = counted(self.rank, "dimension")
        return f"BufferReference({dimensions}, {counted(len(self.elements), 'element')})"


class Empty(NamedTuple):
    """The value of a *bare stop*, which ends an empty tensor.

    The bare stop closes at least the dimension of size 0.

    Attributes:
        dimension: the dimension of size 0, counted from the innermost.
    """

    dimension: int


def items_of(value: Value) -> tuple[Value, ...]:
    """Return the items of a tuple; an empty tuple for other values."""
    return value if isinstance(value, tuple) and not isinstance(value, Selector | Empty) else ()


def share(value: Value, more: int) -> None:
    """Add ``more`` holders to the buffers in ``value``, which is sent more than once."""
    if isinstance(value, BufferReference):
        value.allocation.share(more)
    elif value.__class__ is tuple:
        for item in items_of(value):
            share(item, more)


def drop(value: Value, cycle: int) -> None:
    """Remove a holder of the buffers in ``value``, which is not sent on after ``cycle``."""
    if isinstance(value, BufferReference):
        value.allocation.done(cycle)
    elif value.__class__ is tuple:
        for item in items_of(value):
            drop(item, cycle)


Value: TypeAlias = Tile | Selector | BufferReference | bool | tuple["Value", ...] | Empty
"""An element's value; a tuple has no Empty."""

# A plain pair, since every hop unpacks one. A named tuple takes 0.26 microseconds more to make and
# 0.06 more to unpack, while an element takes 1 to 3 microseconds in all.
Element: TypeAlias = tuple[Value, int]
"""A value and the level of its stop, 0 for none."""

if not TYPE_CHECKING:
    Element = Alias("Element", Element, __name__, "A value and the level of its stop, 0 for none.")
    Value = Alias("Value", Value, __name__, "An element's value; a tuple has no Empty.")


def size_bytes(value: Value) -> int:
    """Return the bytes of ``value``. A reference has the bytes of its buffer, a bare stop 0."""
    if isinstance(value, Tile | Selector):
        return value.size_bytes
    if isinstance(value, BufferReference):
        return sum(size_bytes(element[0]) for element in value.elements)
    if isinstance(value, bool | Empty):
        return int(isinstance(value, bool))
    return sum(map(size_bytes, items_of(value)))
