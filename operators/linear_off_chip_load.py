"""LinearOffChipLoad: read a tensor from off-chip memory, affinely, tile by tile.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fabric import (
    BareStop,
    Costs,
    Operator,
    Ports,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    TileType,
    Wiring,
    drop,
    dtype_named,
)
from operators.structure import positions, row_major_strides
from operators.tensor import Tensor

__all__ = ["LinearOffChipLoad"]


@dataclass(frozen=True)
class LinearOffChipLoad(Operator):
    """Read ``shape`` tiles of a tensor once, or once per element of a reference stream.

    Shapes:
        reference (optional): [D_b, ..., D_0] of anything; only its structure counts.
        output: [D_b, ..., D_0, *shape] of tiles; [1, *shape] without a reference.

    Timing:
        A tile of R rows takes R * ceil(row bytes / request bytes) requests. One tile is under way
        at a time; an uncontended one takes its bundles + 18 cycles on the paper's HBM.

    Memory:
        On chip, one tile while it is under way; off chip, each tile read, again where it is
        read again.

    Attributes:
        tensor: a Tensor, or an array.
        tile: rows and columns; they divide the tensor's last two dimensions.
        shape: of the view, in tiles, outermost first; the whole tensor where None.
        strides: in tiles, one for each dimension of ``shape``; row-major where None.
    """

    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    tensor: Tensor | np.ndarray[Any, Any]
    tile: tuple[int, int]
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def __call__(self, reference: Stream | None = None) -> Stream:
        """Return the stream of tiles."""
        (tiles,) = self.wire() if reference is None else self.wire(reference)
        return tiles

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        tensor = self._tensor
        rows, cols = self.tile
        if len(tensor.shape) < 2 or tensor.shape[-2] % rows or tensor.shape[-1] % cols:
            raise ShapeError(
                f"LinearOffChipLoad cuts a tensor {list(tensor.shape)} into tiles of "
                f"{rows}x{cols}: expected tiles that divide its last two dimensions"
            )
        shape, strides = self._view
        if len(shape) != len(strides):
            raise ShapeError(
                f"LinearOffChipLoad has a view of {list(shape)} and strides {list(strides)}: "
                "expected one stride for each dimension"
            )
        dtype = tensor.dtype or dtype_named(wiring.hardware.tile.dtype)
        outer = inputs[0].shape if inputs else (1,)
        return (StreamType((*outer, *shape), TileType(rows, cols, dtype)),)

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
    async def run(self, ports: Ports) -> None:
        tile_type = ports.output_types[0].value
        assert isinstance(tile_type, TileType)
        view = self._tiles(tile_type, ports.functional)
        if not ports.inputs:
            await self._read(ports, view, 0)
            return
        source, sink = ports.source, ports.sink
        rank = len(self._view[0])
        while (reference := await source.receive()) is not None:
            value, stop = reference
            if isinstance(value, BareStop):
                await sink.send_bare(stop + rank, value.empty_dimension + rank)
            else:
                drop(value, ports.unit.now)
                await self._read(ports, view, stop)

    async def _read(
        self, ports: Ports, view: list[tuple[Tile | None, int, int]], last_stop: int
    ) -> None:
        unit, sink = ports.unit, ports.sink
        last = len(view) - 1
        for number, (tile, level, empty_dimension) in enumerate(view):
            stop = level + last_stop if number == last else level
            if tile is None:
                await sink.send_bare(stop, empty_dimension)
                continue
            size_bytes = tile.size_bytes
            await ports.on_chip.allocate(unit, size_bytes, "a tile")
            await ports.burst(tile.rows, tile.cols * tile.dtype.itemsize)
            await sink.send((tile, stop))
            ports.on_chip.release(size_bytes, unit.now)

    @property
    def _tensor(self) -> Tensor:
        return self.tensor if isinstance(self.tensor, Tensor) else Tensor.of(self.tensor)

    @property
    def _grid(self) -> tuple[int, ...]:
        *outer, rows, cols = self._tensor.shape
        return (*outer, rows // self.tile[0], cols // self.tile[1])

    @property
    def _view(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = self._grid if self.shape is None else self.shape
        strides = row_major_strides(shape) if self.strides is None else self.strides
        return shape, strides

    def _tiles(self, tile_type: TileType, functional: bool) -> list[tuple[Tile | None, int, int]]:
        """Return each tile of the view with its stop, or None with the empty dimension."""
        rows, cols = self.tile
        shape, strides = self._view
        tiles: dict[int, Tile] = {}
        if functional:
            tensor = self._tensor
            matrix = tensor.array.reshape(-1, tensor.shape[-1]).astype(tile_type.dtype)
        count = math.prod(self._grid)
        across = self._grid[-1]

        def tile_at(number: int) -> Tile:
            if not functional:
                number = 0
            if number not in tiles:
                data = None
                if functional:
                    top, left = number // across * rows, number % across * cols
                    data = matrix[top : top + rows, left : left + cols]
                tiles[number] = Tile(rows, cols, tile_type.dtype, data, in_memory=True)
            return tiles[number]

        return [
            (None, stop, empty)
            if empty is not None
            else (
                tile_at(sum(i * s for i, s in zip(index, strides, strict=True)) % count),
                stop,
                0,
            )
            for index, stop, empty in positions(shape)
        ]
