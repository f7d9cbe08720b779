"""Where an operator stands: what hardware knows of it there."""

from __future__ import annotations

from collections.abc import Callable

# Any: operators of all kinds are looked at.
from typing import Any, NamedTuple

from fabric import ProgramError, StreamType, TileType, TupleType
from fabric.extend import ValueType
from operators.rtl.blocks import Unit

__all__ = ["Binding", "Place", "is_tile"]

Binding = tuple[str, Callable[[], Unit], dict[str, int]]
"""The name of a module, what builds it, and the parameters of one instance."""


class Place(NamedTuple):
    """An operator where it stands.

    Attributes:
        name: its.
        operator: what it is.
        inputs, outputs: what its streams carry.
        read: outputs that have a reader.
        bandwidth: bytes a cycle of an on-chip port.
        rate: FLOPs a cycle.
    """

    name: str
    operator: Any
    inputs: tuple[StreamType, ...]
    outputs: tuple[StreamType, ...]
    read: tuple[int, ...]
    bandwidth: int
    rate: int

    def refused(self, why: str) -> ProgramError:
        """Return the error of an operator that no module stands for."""
        kind = type(self.operator).__name__
        return ProgramError(f"{self.name}: {kind} has no hardware module{why}")

    def items(self) -> list[list[ValueType]]:
        """Return what an element of each input has in it: the two tiles of a tuple, or itself."""
        found = []
        for each in self.inputs:
            value = each.value
            items: list[ValueType] = list(value.items) if isinstance(value, TupleType) else [value]
            # The token of any other tuple says what the functions that make and read it say.
            if len(items) != 2 or not all(map(is_tile, items)):
                items = [value]
            found.append(items)
        return found

    def bytes_of(self, value: ValueType) -> int:
        """Return the bytes of one number of a tile; 0 of anything else."""
        if not isinstance(value, TileType):
            return 0
        size_bytes = value.dtype.itemsize
        if size_bytes > 16:
            raise self.refused(f" for {value.dtype}")
        return size_bytes


def is_tile(value: ValueType) -> bool:
    """Whether it is a tile of numbers that are no integers."""
    return isinstance(value, TileType) and value.dtype.kind not in "iu"
