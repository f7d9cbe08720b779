"""What a channel carries: the bytes of a value in it, and the element type of an operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.values.dims import Dim
from fabric.values.stream_type import BufferType, TileType, TupleType, ValueType
from fabric.values.value import ADDRESS_DTYPE, dtype_name

if TYPE_CHECKING:
    from fabric.wiring.operator import Node

__all__ = ["dtype_of", "passed_bytes"]

_REFERENCE_BYTES: Final = ADDRESS_DTYPE.itemsize


def passed_bytes(value: ValueType) -> Dim:
    """Return the bytes of a value in a channel: of a buffer, those of a reference to it."""
    if isinstance(value, BufferType):
        return _REFERENCE_BYTES
    if isinstance(value, TupleType):
        return sum(map(passed_bytes, value.items))
    return value.size_bytes


def dtype_of(node: Node) -> str:
    """Return the element type of an operator's result, or of its input where it gives no tiles."""
    values = [each.value for each in (*node.output_types, *node.input_types)]
    for value in values:
        for item in value.items if isinstance(value, TupleType) else (value,):
            if isinstance(item, TileType):
                return dtype_name(item.dtype)
    return "other"
