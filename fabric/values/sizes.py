"""How large an element of a channel is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.values.value import BufferReference, Empty, Selector, Tile, items_of

if TYPE_CHECKING:
    from fabric.values.value import Value

__all__ = ["size_bytes"]


def size_bytes(value: Value) -> int:
    """Return the bytes of ``value``; of a buffer, those it refers to; of a bare stop, none."""
    if isinstance(value, Tile | Selector):
        return value.size_bytes
    if isinstance(value, BufferReference):
        return sum(size_bytes(element[0]) for element in value.elements)
    if isinstance(value, bool | Empty):
        return int(isinstance(value, bool))
    return sum(map(size_bytes, items_of(value)))
