"""What all operators do that read the tiles of a tensor from off-chip memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fabric import StreamType, TileType
from fabric.extend import Costs, OffChipTensor, Operator, Ports, row_bytes
from operators.tiles.grid import Tiles
from operators.tiles.tensor import Tensor

__all__ = ["Load", "hand_out"]


@dataclass(frozen=True)
class Load(Operator):
    """Reads tiles.

    Attributes:
        tensor: what is read.
        tile: rows and columns.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    tensor: Tensor | np.ndarray
    tile: tuple[int, int]

    @property
    @override
    def roundings(self) -> int:
        return 1  # to the element type of the tiles

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (tiles,) = outputs
        tile_bytes = tiles.value.size_bytes
        return Costs(
            load_bytes=tiles.count * tile_bytes,
            on_chip_bytes=2 * tile_bytes,
            artifact_on_chip_bytes=tile_bytes,
        )

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        tile = outputs[0].value
        assert isinstance(tile, TileType)
        # Views of one tensor are in one place.
        base = self.tensor.base if isinstance(self.tensor, Tensor) else self.tensor
        width = self.tensor.shape[-1]
        return OffChipTensor(base.shape, tile.dtype, source=base, tile=self.tile, width=width)


async def hand_out(ports: Ports, tiles: Tiles, number: int, stop: int) -> None:
    """Read tile ``number`` from off-chip memory and send it; until then it takes room on chip."""
    tile = tiles[number]
    unit, size_bytes = ports.unit, tile.size_bytes
    await ports.on_chip.allocate(unit, size_bytes, "a tile")
    await ports.burst(tile.rows, row_bytes(tile.cols, tile.dtype), number)
    await ports.sink.send((tile, stop))
    ports.on_chip.release(unit, size_bytes, unit.now)
