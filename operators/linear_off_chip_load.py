"""LinearOffChipLoad: read a tensor from off-chip memory, affinely, tile by tile.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import (
    Costs,
    Operator,
    Ports,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    TileType,
    Value,
    Wiring,
    drop,
)
from operators.streams.values import Values
from operators.tiles.grid import Grid, Tiles, hand_out, load_costs
from operators.tiles.row_major import row_major_strides
from operators.tiles.tensor import Tensor
from operators.tiles.view import LISTED, numbers_below, reach, walk

__all__ = ["LinearOffChipLoad"]

_Reading: TypeAlias = Iterable[tuple[Tile | None, int, int]]
"""Each tile of a view with its stop, or None with its stop and the empty dimension."""


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

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    tensor: Tensor | np.ndarray
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
        if any(size < 0 for size in shape):
            raise ShapeError(
                f"LinearOffChipLoad has a view of {list(shape)}: expected no dimension below 0"
            )
        ends = reach(shape, strides)
        if ends is not None and not 0 <= ends[0] <= ends[1] < grid.count:
            raise ShapeError(
                f"LinearOffChipLoad reads tiles {ends[0]:,} to {ends[1]:,} of {grid} with a view "
                f"of {list(shape)} and strides {list(strides)}: "
                f"expected {numbers_below(grid.count)}"
            )
        dtype = grid.element_type(wiring.hardware)
        outer = inputs[0].shape if inputs else (1,)
        return (StreamType((*outer, *shape), TileType(rows, cols, dtype)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (tiles,) = outputs
        return load_costs(tiles)

    @override
    async def run(self, ports: Ports) -> None:
        rank = len(self._view[0])
        view = self._view_of(self._grid.tiles(ports))
        if not ports.inputs:
            await _read(ports, view, rank, 0)
            return
        async for value, stop in Values[Value](ports.source, ports.sink, adds=rank):
            drop(value, ports.unit.now)
            await _read(ports, view, rank, stop)

    @property
    def _grid(self) -> Grid:
        return Grid("LinearOffChipLoad", Tensor.of(self.tensor), self.tile)

    @property
    def _view(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = self._grid.shape if self.shape is None else self.shape
        strides = row_major_strides(shape) if self.strides is None else self.strides
        return shape, strides

    def _view_of(self, tiles: Tiles) -> _Reading:
        """Return the view over ``tiles``."""
        view = _View(tiles, *self._view)
        return list(view) if math.prod(self._view[0]) <= LISTED else view


@dataclass(frozen=True)
class _View:
    """Tiles along a view, walked anew each time they are read."""

    tiles: Tiles
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[Tile | None, int, int]]:
        for item, stop, empty in walk(self.shape, self.strides):
            yield None if item is None else self.tiles[item], stop, empty or 0


async def _read(ports: Ports, view: _Reading, rank: int, last_stop: int) -> None:
    """Read a view of ``rank`` dimensions; its last element closes ``last_stop`` more."""
    for tile, level, empty_dimension in view:
        # Only the last one closes all dimensions of the view.
        stop = level + last_stop if level == rank else level
        if tile is None:
            await ports.sink.send_bare(stop, empty_dimension)
        else:
            await hand_out(ports, tile, stop)
