"""The bytes that a value has in a channel."""

from __future__ import annotations

from typing import Final

from fabric.values.dims import Dim
from fabric.values.stream_type import BufferType, TupleType, ValueType
from fabric.values.value import ADDRESS_DTYPE

__all__ = ["passed_bytes"]

_REFERENCE_BYTES: Final = ADDRESS_DTYPE.itemsize


def passed_bytes(value: ValueType) -> Dim:
    """Return the bytes of a value in a channel: of a buffer, those of a reference to it."""
    if isinstance(value, BufferType):
        return _REFERENCE_BYTES
    if isinstance(value, TupleType):
        return sum(map(passed_bytes, value.items))
    return value.size_bytes
