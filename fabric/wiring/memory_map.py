"""Where the tensors of a program are in off-chip memory: one address space for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fabric.engine.off_chip import Region
from fabric.hardware.placement import PlacementDescription
from fabric.wiring.mistakes import off_chip_tensor_of
from fabric.wiring.off_chip_tensor import OffChipTensor
from fabric.wiring.operator import Node
from fabric.wiring.tensor_layout import TensorLayout, layout_of

__all__ = ["MemoryMap", "Placed", "memory_map_of"]

_ROOM_BYTES: Final = 1 << 50
"""For a tensor whose size data decide: more than a run of a day moves."""


class Placed(NamedTuple):
    """A tensor in its place.

    Attributes:
        nodes: the operators that read or write it, in node order.
        tensor: what they say of it; None where an operator says nothing.
        first_address: of its first byte.
        size_bytes: that it takes; None where data decide.
        layout: what is behind what in it.
    """

    nodes: tuple[Node, ...]
    tensor: OffChipTensor | None
    first_address: int
    size_bytes: int | None
    layout: TensorLayout


class MemoryMap:
    """The off-chip tensors of a program, those whose size data decide behind all others.

    Attributes:
        tensors: by address; of each kind in the order of the first node that uses it.
        placement: what the hardware says of their places.
        end_address: behind all of them.
    """

    def __init__(
        self,
        tensors: Sequence[Placed],
        regions: Mapping[Node, Region],
        placement: PlacementDescription,
        end_address: int,
    ) -> None:
        """Know where each of ``tensors`` is, and its tiles by who uses them."""
        self.tensors: Final = tuple(tensors)
        self.placement: Final = placement
        self.end_address: Final = end_address
        self._regions: Final = regions

    def region(self, node: Node) -> Region | None:
        """Return where the tensor of ``node`` is; None where it is no off-chip operator."""
        return self._regions.get(node)


def memory_map_of(nodes: Sequence[Node], placement: PlacementDescription) -> MemoryMap:
    """Return where the tensors of ``nodes``, all those of a program in their order, are."""
    found: dict[object, dict[Node, OffChipTensor | None]] = {}
    for node in nodes:
        if node.operator.off_chip is not None:
            tensor = off_chip_tensor_of(node)
            found.setdefault(_key(node, tensor), {})[node] = tensor
    unplaced = []
    for users in found.values():
        said = tuple(users.values())
        layout = layout_of(said, placement)
        unplaced.append((users, layout, layout.size_bytes(said[0])))
    tensors, regions = [], {}
    end_address = 0
    alignment_bytes = placement.alignment_bytes
    for number, (users, layout, size_bytes) in enumerate(
        sorted(unplaced, key=lambda each: each[-1] is None)
    ):
        room_bytes = _ROOM_BYTES if size_bytes is None else size_bytes
        address = end_address + number * placement.stagger_bytes
        first = next(iter(users.values()))
        tensors.append(Placed(tuple(users), first, address, size_bytes, layout))
        for node, tensor in users.items():
            region = Region(address, room_bytes, node.operator.off_chip == "write")
            regions[node] = layout.cut(region, tensor)
        end_address += -(-room_bytes // alignment_bytes) * alignment_bytes
    behind = end_address + len(unplaced) * placement.stagger_bytes
    return MemoryMap(tensors, regions, placement, behind)


def _key(node: Node, tensor: OffChipTensor | None) -> object:
    """Return what two operators that use one tensor have in common."""
    if tensor is None:
        return node
    if tensor.output is not None:
        return tensor.output
    return id(tensor.source), tensor.shape, tensor.dtype
