"""LinearOffChipLoad: read a tensor from off-chip memory, affinely, tile by tile.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 3.
"""

from __future__ import annotations

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
from operators.grid import Grid, hand_out, load_costs
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
        grid = self._grid
        rows, cols = self.tile
        shape, strides = self._view
        if len(shape) != len(strides):
            raise ShapeError(
                f"LinearOffChipLoad has a view of {list(shape)} and strides {list(strides)}: "
                "expected one stride for each dimension"
            )
        dtype = grid.tensor.dtype or dtype_named(wiring.hardware.tile.dtype)
        outer = inputs[0].shape if inputs else (1,)
        return (StreamType((*outer, *shape), TileType(rows, cols, dtype)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (tiles,) = outputs
        return load_costs(tiles)

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
        last = len(view) - 1
        for number, (tile, level, empty_dimension) in enumerate(view):
            stop = level + last_stop if number == last else level
            if tile is None:
                await ports.sink.send_bare(stop, empty_dimension)
                continue
            await hand_out(ports, tile, stop)

    @property
    def _grid(self) -> Grid:
        return Grid("LinearOffChipLoad", Tensor.of(self.tensor), self.tile)

    @property
    def _view(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = self._grid.shape if self.shape is None else self.shape
        strides = row_major_strides(shape) if self.strides is None else self.strides
        return shape, strides

    def _tiles(self, tile_type: TileType, functional: bool) -> list[tuple[Tile | None, int, int]]:
        """Return each tile of the view with its stop, or None with the empty dimension."""
        shape, strides = self._view
        grid = self._grid
        tiles, count = grid.tiles(tile_type, functional), grid.count
        return [
            (None, stop, empty)
            if empty is not None
            else (tiles[sum(i * s for i, s in zip(index, strides, strict=True)) % count], stop, 0)
            for index, stop, empty in positions(shape)
        ]
