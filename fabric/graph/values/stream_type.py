"""Types of streams: shapes, outermost dimension first, and elements (arXiv 2511.07776v2, 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypeAlias, get_args

import numpy as np

from fabric.graph.arguments.checks import Alias, Bounds
from fabric.graph.arguments.described import Described
from fabric.graph.values.dims import Dim, is_ragged, product, short_text
from fabric.graph.values.value import dtype_name, row_bytes
from fabric.messages.errors import FabricError, ShapeError


class _Type(Described):
    refusal: ClassVar[type[FabricError]] = ShapeError


@dataclass(frozen=True)
class TileType(_Type):
    """A tile of rows x cols; both may depend on data."""

    rows: Dim
    cols: Dim
    dtype: np.dtype

    @property
    def size_bytes(self) -> Dim:
        """Bytes of one tile, padding included."""
        return self.rows * row_bytes(self.cols, self.dtype)

    @property
    def size_elements(self) -> Dim:
        """Numbers in one tile, padding included."""
        return self.rows * self.cols

    def __str__(self) -> str:
        return f"{_factor(self.rows)}x{_factor(self.cols)} {dtype_name(self.dtype)}"


@dataclass(frozen=True)
class SelectorType(_Type):
    """A multi-hot vector over ``width`` streams.

    Attributes:
        width: the number of streams.
        hits: the number of streams that every selector names; None if it varies or is unknown.
    """

    width: Annotated[int, Bounds(0)]
    hits: Annotated[int, Bounds(0)] | None = None

    @property
    def size_bytes(self) -> int:
        """One byte for each stream."""
        return self.width

    def __str__(self) -> str:
        return f"selector of {self.width}"


@dataclass(frozen=True)
class BoolType(_Type):
    """A truth value: an acknowledgement, or whether an element is padding."""

    @property
    def size_bytes(self) -> int:
        """One byte."""
        return 1

    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class BufferType(_Type):
    """A reference to an on-chip buffer of tiles, ``shape`` outermost first."""

    shape: tuple[Dim, ...]
    tile: TileType

    @property
    def size_bytes(self) -> Dim:
        """Bytes of the referenced buffer."""
        return product(self.shape) * self.tile.size_bytes

    def __str__(self) -> str:
        return f"buffer {shape_text(self.shape)} of {self.tile}"


@dataclass(frozen=True)
class TupleType(_Type):
    """Several values that travel together."""

    items: tuple[ValueType, ...]

    @cached_property
    def count(self) -> int:
        """The number of values, with the values of nested tuples."""
        return sum(item.count if isinstance(item, TupleType) else 1 for item in self.items)

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all values together."""
        return sum(item.size_bytes for item in self.items)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


ValueType: TypeAlias = TileType | SelectorType | BoolType | BufferType | TupleType
"""The type of a stream's elements."""

VALUE_TYPES: Final = frozenset(get_args(ValueType))

if not TYPE_CHECKING:
    ValueType = Alias("ValueType", ValueType, __name__, "The type of a stream's elements.")


@dataclass(frozen=True)
class StreamType:
    """The shape of a stream, outermost dimension first, and the type of its elements.

    It is not checked when it is made, since a program makes thousands. Types that a user's
    ``infer`` returns are checked after its call.
    """

    shape: tuple[Dim, ...]
    value: ValueType

    @property
    def rank(self) -> int:
        """Dimensions minus one: a bare sequence has rank 0."""
        return len(self.shape) - 1

    @property
    def count(self) -> Dim:
        """The number of elements of the stream."""
        return product(self.shape)

    def __str__(self) -> str:
        return f"{shape_text(self.shape)} of {self.value}"


Types: TypeAlias = tuple[StreamType, ...]
"""Types of the inputs or the outputs of an operator, in port order."""


def shape_text(dims: tuple[Dim, ...]) -> str:
    """Return the text of dimensions, such as ``[1, ceil(D_route[3]/16)]``."""
    return f"[{', '.join(map(short_text, dims))}]"


def _factor(dim: Dim) -> str:
    text = short_text(dim)
    return f"({text})" if " + " in text or " - " in text else text


def holds_buffers(value: ValueType) -> bool:
    """Whether elements of this type are, or contain, references to buffers."""
    if isinstance(value, TileType):
        return False
    if isinstance(value, TupleType):
        return any(map(holds_buffers, value.items))
    return isinstance(value, BufferType)


def with_dims(value: ValueType, change: Callable[[Dim], Dim]) -> ValueType:
    if isinstance(value, TileType):
        rows, cols = change(value.rows), change(value.cols)
        if rows is value.rows and cols is value.cols:
            return value
        return TileType(rows, cols, value.dtype)
    if isinstance(value, BufferType):
        tile = with_dims(value.tile, change)
        assert isinstance(tile, TileType)
        return BufferType(tuple(map(change, value.shape)), tile)
    if isinstance(value, TupleType):
        return TupleType(tuple(with_dims(item, change) for item in value.items))
    return value


def without_ragged(value: ValueType) -> ValueType:
    """Return ``value`` with 0 in place of ragged sizes, which may differ between two streams."""
    return with_dims(value, lambda dim: 0 if is_ragged(dim) else dim)


def kind_of(value: ValueType) -> str:
    """Return the kind of a value: tile, selector, buffer, bool or tuple."""
    name: str = next(kind.__name__ for kind in VALUE_TYPES if isinstance(value, kind))
    return name.removesuffix("Type").lower()
