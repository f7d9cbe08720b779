"""The addresses of tensors in off-chip memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fabric.graph.hardware.address_space import Region
from fabric.graph.hardware.description import PlacementDescription
from fabric.graph.values.dims import is_static, product
from fabric.graph.values.value import row_bytes
from fabric.graph.wiring.costs import OffChipTensor
from fabric.graph.wiring.mistakes import off_chip_tensor_of
from fabric.graph.wiring.operator import Node


class TensorLayout(NamedTuple):
    """The layout of a tensor in memory.

    Attributes:
        contiguous: each tile is stored in one piece; otherwise the tensor is row-major.
        padding_bytes: at the end of each row.
        reason: why tiles are not contiguous although the hardware file states ``contiguous``.
    """

    contiguous: bool = False
    padding_bytes: int = 0
    reason: str | None = None

    def size_bytes(self, tensor: OffChipTensor | None) -> int | None:
        if tensor is None or not isinstance(size_bytes := tensor.size_bytes, int):
            return None
        if not self.padding_bytes:
            return size_bytes
        rows: int = product(tensor.shape) // max(1, tensor.columns)
        return size_bytes + rows * self.padding_bytes

    def cut(self, region: Region, tensor: OffChipTensor | None) -> Region:
        """Return ``region`` with the pitches of the tiles of ``tensor``."""
        if tensor is None or tensor.tile is None:
            return region
        rows, cols = tensor.tile
        rows = rows if is_static(rows) else 1
        width_bytes = row_bytes(cols, tensor.dtype)
        if self.contiguous:
            return region._replace(band_pitch_bytes=rows * width_bytes, row_pitch_bytes=width_bytes)
        pitch_bytes = row_bytes(tensor.columns, tensor.dtype) + self.padding_bytes
        return region._replace(
            tiles_across=max(1, tensor.columns // cols),
            tile_pitch_bytes=width_bytes,
            band_pitch_bytes=rows * pitch_bytes,
            row_pitch_bytes=pitch_bytes,
        )


def layout_of(
    tensors: Sequence[OffChipTensor | None], placement: PlacementDescription
) -> TensorLayout:
    """Return the layout of one tensor; each of its operators describes it in ``tensors``."""
    reason = None
    if placement.tiles == "contiguous":
        reason = _row_major_reason(tensors)
        if reason is None:
            return TensorLayout(contiguous=True)
    return TensorLayout(False, _padding_bytes(tensors, placement.row_padding_bytes), reason)


def _row_major_reason(tensors: Sequence[OffChipTensor | None]) -> str | None:
    tiles: set[tuple[int, int, int]] = set()
    for tensor in tensors:
        if tensor is None or tensor.tile is None:
            return "its operator states no tiles"
        (rows, cols), columns, dtype = tensor.tile, tensor.columns, tensor.dtype
        if not is_static(rows):
            return "data decide how many rows its tiles have"
        if columns // cols * row_bytes(cols, dtype) != row_bytes(columns, dtype):
            return "its tiles begin in the middle of a byte"
        elements = product(tensor.shape)
        if is_static(elements) and elements % (rows * columns):
            return "its tiles do not divide its rows"
        tiles.add((columns, rows, cols))
    if len(tiles) == 1:
        return None
    cut = [f"{rows}x{cols} in rows of {width:,}" for width, rows, cols in sorted(tiles)]
    return f"its operators use tiles of {' and '.join(cut)}"


def _padding_bytes(tensors: Sequence[OffChipTensor | None], padding_bytes: int) -> int:
    tiled = [tensor for tensor in tensors if tensor is not None and tensor.tile is not None]
    pitches = {row_bytes(tensor.columns, tensor.dtype) for tensor in tiled}
    if len(tiled) < len(tensors) or len(pitches) != 1:
        return 0
    (pitch_bytes,) = pitches
    is_power = pitch_bytes & (pitch_bytes - 1) == 0
    return padding_bytes if is_power and pitch_bytes > padding_bytes else 0


_ROOM_BYTES: Final = 1 << 50
"""The bytes of addresses of a tensor of unknown size. A run of a day moves fewer bytes."""


class Placed(NamedTuple):
    """A tensor with its address.

    Attributes:
        nodes: its readers and writers, in node order.
        size_bytes: None if it depends on data, or if the operator does not describe the tensor.
    """

    nodes: tuple[Node, ...]
    tensor: OffChipTensor | None
    first_address: int
    size_bytes: int | None
    layout: TensorLayout

    def bytes_once(self, request_bytes: int) -> int | None:
        """Return the bytes of the requests that read each tile once; None if unknown."""
        tensor = self.tensor
        if tensor is None or tensor.tile is None or not tensor.columns:
            return None
        elements, columns, cols = product(tensor.shape), tensor.columns, tensor.tile[1]
        if not isinstance(elements, int) or not isinstance(columns, int):
            return None
        requests = -(-row_bytes(cols, tensor.dtype) // request_bytes)
        return elements // cols * requests * request_bytes


class MemoryMap(NamedTuple):
    """The off-chip tensors of a program by address; tensors of unknown size are last."""

    tensors: Sequence[Placed]
    regions: Mapping[Node, Region]
    placement: PlacementDescription
    end_address: int


def memory_map_of(nodes: Sequence[Node], placement: PlacementDescription) -> MemoryMap:
    users_of: dict[object, dict[Node, OffChipTensor | None]] = {}
    for node in nodes:
        if node.operator.off_chip is not None:
            tensor = off_chip_tensor_of(node)
            users_of.setdefault(_key(node, tensor), {})[node] = tensor
    unplaced = []
    for users in users_of.values():
        layout = layout_of(tuple(users.values()), placement)
        unplaced.append((users, layout, layout.size_bytes(next(iter(users.values())))))
    tensors, regions = [], {}
    end_address = 0
    alignment_bytes = placement.alignment_bytes
    for number, (users, layout, size_bytes) in enumerate(
        sorted(unplaced, key=lambda item: item[-1] is None)
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
    if tensor is None:
        return node
    if tensor.output is not None:
        return tensor.output
    return id(tensor.source), tensor.shape, tensor.dtype
