"""Operands of functions: streams of tuples are unpacked, memory flags and loads are worked out."""

from __future__ import annotations

from collections.abc import Iterable

from fabric import Selector, ShapeError, Stream, Tile, TileType, TupleType
from fabric.extend import Unit, Value, ValueType, check_same_shape, items_of

__all__ = ["check_inputs", "load_cycles", "placed", "size_bytes", "unpacked", "unpacked_types"]


def check_inputs(name: str, inputs: tuple[Stream, ...]) -> None:
    """Refuse inputs that ``name`` cannot read element by element.

    Raises:
        ShapeError: there are none, or their shapes differ.
    """
    if not inputs:
        raise ShapeError(f"{name} is given no stream: expected at least one")
    for other in inputs[1:]:
        check_same_shape(name, inputs[0], other)


def unpacked(values: Iterable[Value]) -> list[Value]:
    """Return ``values`` with the items of tuples in the place of the tuples."""
    flat: list[Value] = []
    for value in values:
        if value.__class__ is tuple:
            flat += unpacked(items_of(value))
        else:
            flat.append(value)
    return flat


def unpacked_types(types: Iterable[ValueType]) -> tuple[ValueType, ...]:
    """Return ``types`` with the items of tuples in the place of the tuples."""
    flat: list[ValueType] = []
    for each in types:
        if isinstance(each, TileType) or not isinstance(each, TupleType):
            flat.append(each)
        else:
            flat += unpacked_types(each.items)
    return tuple(flat)


def load_cycles(unit: Unit, value: Value) -> int:
    """Return the cycles it takes to load the tiles of ``value`` that are in a memory unit."""
    if isinstance(value, Tile):
        return unit.transfer(value.size_bytes) if value.in_memory else 0
    if value.__class__ is tuple:
        return sum([load_cycles(unit, item) for item in items_of(value)])
    return 0


def placed(value: Value, *, in_memory: bool) -> Value:
    """Return ``value`` with the flag ``in_memory`` of all its tiles as given."""
    if isinstance(value, Tile):
        return value.placed(in_memory=in_memory)
    if value.__class__ is tuple:
        return tuple([placed(item, in_memory=in_memory) for item in items_of(value)])
    return value


def size_bytes(value: Value) -> int:
    """Return the bytes of ``value``, those of the items of a tuple added up."""
    if isinstance(value, Tile | Selector):
        return value.size_bytes
    return 1 if isinstance(value, bool) else sum(map(size_bytes, items_of(value)))
