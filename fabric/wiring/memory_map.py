"""Where the tensors of a program are in off-chip memory: one address space for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fabric.engine.off_chip import Region
from fabric.values.value import row_bytes
from fabric.wiring.mistakes import off_chip_tensor_of
from fabric.wiring.off_chip_tensor import OffChipTensor
from fabric.wiring.operator import Node

__all__ = ["ALIGNMENT_BYTES", "MemoryMap", "Placed", "memory_map_of"]

ALIGNMENT_BYTES: Final = 4096
"""Every tensor begins at a multiple of this."""

_ROOM_BYTES: Final = 1 << 50
"""For a tensor whose size data decide: more than a run of a day moves."""


class Placed(NamedTuple):
    """A tensor in its place.

    Attributes:
        nodes: the operators that read or write it, in node order.
        tensor: what they say of it; None where an operator says nothing.
        first_address: of its first byte.
        size_bytes: of the tensor; None where data decide.
    """

    nodes: tuple[Node, ...]
    tensor: OffChipTensor | None
    first_address: int
    size_bytes: int | None


class MemoryMap:
    """The off-chip tensors of a program, those whose size data decide behind all others.

    Attributes:
        tensors: by address; of each kind in the order of the first node that uses it.
    """

    def __init__(self, tensors: Sequence[Placed], regions: Mapping[Node, Region]) -> None:
        """Know where each of ``tensors`` is, and its tiles by who uses them."""
        self.tensors: Final = tuple(tensors)
        self._regions: Final = regions

    def region(self, node: Node) -> Region | None:
        """Return where the tensor of ``node`` is; None where it is no off-chip operator."""
        return self._regions.get(node)


def memory_map_of(nodes: Sequence[Node]) -> MemoryMap:
    """Return where the tensors of ``nodes``, all those of a program in their order, are."""
    found: dict[object, dict[Node, OffChipTensor | None]] = {}
    for node in nodes:
        if node.operator.off_chip is not None:
            tensor = off_chip_tensor_of(node)
            found.setdefault(_key(node, tensor), {})[node] = tensor
    placed, regions = [], {}
    address = 0
    ordered = [(_size_bytes(next(iter(users.values()))), users) for users in found.values()]
    for size_bytes, users in sorted(ordered, key=lambda each: each[0] is None):
        room_bytes = _ROOM_BYTES if size_bytes is None else size_bytes
        placed.append(Placed(tuple(users), next(iter(users.values())), address, size_bytes))
        for node, tensor in users.items():
            write = node.operator.off_chip == "write"
            regions[node] = _cut(Region(address, room_bytes, write), tensor)
        address += -(-room_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return MemoryMap(placed, regions)


def _cut(region: Region, tensor: OffChipTensor | None) -> Region:
    """Return ``region`` with the tiles that an operator cuts its tensor into, row-major."""
    if tensor is None or tensor.tile is None:
        return region
    rows, cols = tensor.tile
    pitch_bytes = row_bytes(tensor.columns, tensor.dtype)
    return region._replace(
        tiles_across=max(1, tensor.columns // cols),
        tile_pitch_bytes=row_bytes(cols, tensor.dtype),
        band_pitch_bytes=rows * pitch_bytes,
        row_pitch_bytes=pitch_bytes,
    )


def _key(node: Node, tensor: OffChipTensor | None) -> object:
    """Return what two operators that use one tensor have in common."""
    if tensor is None:
        return node
    if tensor.output is not None:
        return tensor.output
    return id(tensor.source), tensor.shape, tensor.dtype


def _size_bytes(tensor: OffChipTensor | None) -> int | None:
    size_bytes = None if tensor is None else tensor.size_bytes
    return size_bytes if isinstance(size_bytes, int) else None
