"""LinearOffChipLoad and RandomOffChipLoad: read the tiles of a tensor from off-chip memory.

LinearOffChipLoad reads along loops of constant strides, RandomOffChipLoad at streamed addresses.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from typing_extensions import override

from fabric import ShapeError, Stream, StreamType, Tile, TileType
from fabric.extend import (
    Bounds,
    Costs,
    Loop,
    OffChipTensor,
    Operator,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    drop,
    is_static,
    product,
    row_bytes,
)
from operators.streams.reading import Orders, Types, Values, tile_of
from operators.tiles.grid import Grid, Tiles, View, numbers_below, row_major_strides
from operators.tiles.integers import check_integers
from operators.tiles.tensor import Tensor


@dataclass(frozen=True)
class Load(Operator):
    family = "Off-chip memory (Table 3)"
    kind = "memory"
    off_chip = "read"

    tensor: Tensor | np.ndarray
    tile: tuple[int, int]

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        (tiles,) = outputs
        tile_bytes = tiles.value.size_bytes
        return Costs(
            load_bytes=tiles.count * tile_bytes,
            on_chip_bytes=2 * tile_bytes,
            artifact_on_chip_bytes=tile_bytes,
        )

    @override
    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor:
        tile = tile_of(outputs[0])
        # The views of a tensor share its place in memory.
        base = self.tensor.base if isinstance(self.tensor, Tensor) else self.tensor
        width = self.tensor.shape[-1]
        return OffChipTensor(base.shape, tile.dtype, source=base, tile=self.tile, width=width)

    @property
    def _grid(self) -> Grid:
        return Grid(type(self).__name__, Tensor.of(self.tensor), self.tile)


async def hand_out(ports: Ports, tiles: Tiles, number: int, stop: int) -> None:
    """Reserve room on chip, read tile ``number`` from off-chip memory and send it."""
    tile = tiles[number]
    unit, size_bytes = ports.unit, tile.size_bytes
    await ports.on_chip.allocate(unit, size_bytes, "a tile")
    await ports.burst(tile.rows, row_bytes(tile.cols, tile.dtype), number)
    await ports.sink.send((tile, stop))
    ports.on_chip.release(unit, size_bytes, unit.now)


@dataclass(frozen=True)
class LinearOffChipLoad(Load):
    """Read ``shape`` tiles of a tensor once, or once per element of a reference stream.

    Shapes:
        reference (optional): [D_b, ..., D_0] of any type; only its structure counts.
        output: [D_b, ..., D_0, *shape] of tiles; [1, *shape] without a reference.

    Timing:
        A tile of R rows takes R * ceil(row bytes / request bytes) requests. One tile is in flight
        at a time, unless the memory prefetches. On the paper's HBM, a tile without contention
        takes 18 cycles, and one more for each bundle (the requests handed over in one cycle).

    Memory:
        On chip, one tile while it is in flight. Off chip, every tile as often as it is read.

    Attributes:
        tensor: the tensor that is read.
        tile: rows and columns of a tile; they divide the tensor's last two dimensions.
        shape: the shape of the view, in tiles, outermost first; the whole tensor if None.
        strides: the step along each dimension of ``shape``, in tiles; row-major if None.
        offset: the number of the first tile that is read.

    Example:
        >>> with Program("example") as program:
        ...     tiles = LinearOffChipLoad(np.ones((64, 256)), tile=(64, 64))()
        ...     Consumer()(tiles)
        >>> print(tiles.type)
        [1, 1, 4] of 64x64 bfloat16
        >>> print(simulate(program).cycles)
        587
    """

    conducted = turns = carries_numbers = True

    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    offset: Annotated[int, Bounds(0)] = 0

    def __call__(self, reference: Stream | None = None) -> Stream:
        return (self.wire() if reference is None else self.wire(reference))[0]

    @override
    def infer(self, wiring: Wiring, reference: Stream | None = None) -> Types:
        grid = self._grid
        rows, cols = self.tile
        shape, strides = self.view.shape, self.view.strides
        if len(shape) != len(strides):
            raise ShapeError(
                f"LinearOffChipLoad has a view of {list(shape)} and strides {list(strides)}: "
                "expected one stride for each dimension"
            )
        if min(shape, default=0) < 0:
            raise ShapeError(
                f"LinearOffChipLoad has a view of {list(shape)}: expected no dimension below 0"
            )
        ends = self.view.ends
        if ends is not None and not 0 <= ends[0] <= ends[1] < grid.count:
            raise ShapeError(
                f"LinearOffChipLoad reads tiles {ends[0]:,} to {ends[1]:,} of {grid} with a view "
                f"of {list(shape)} and strides {list(strides)}: "
                f"expected {numbers_below(grid.count)}"
            )
        dtype = grid.element_type(wiring.hardware)
        outer = (1,) if reference is None else reference.shape
        return (StreamType((*outer, *shape), TileType(rows, cols, dtype)),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        least, view = rates.bursts(outputs[0], in_memory=True), math.prod(self.view.shape)
        return replace(least, last_cycles=view * least.last_cycles, closing=None if view else ())

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        layout = self._grid.layout(self.view)
        if layout is None:
            return ("its steps are not loops over the tensor",)
        if not types:
            return (layout,)
        if not all(map(is_static, types[0].shape)):
            return ("data decide how often it reads the tensor",)
        times = product(types[0].shape)
        assert isinstance(times, int)
        return (layout.nested((Loop(times, 1, None), *layout.loops)),)

    @override
    async def run(self, ports: Ports) -> None:
        tiles, view = self._grid.tiles(ports), self.view
        if not ports.inputs:
            await _read(ports, tiles, view, 0)
            return
        rank = len(view.shape)
        async for value, stop in Values[Value](ports.source, ports.sink, adds=rank):
            drop(value, ports.unit.now)
            await _read(ports, tiles, view, stop)
            ports.turn()

    @property
    def view(self) -> View:
        """The tiles that are read, by their numbers."""
        shape = self._grid.shape if self.shape is None else self.shape
        strides = row_major_strides(shape) if self.strides is None else self.strides
        return View(shape, strides, self.offset)


async def _read(ports: Ports, tiles: Tiles, view: View, last_stop: int) -> None:
    """Read a view of ``tiles``; the last tile also closes ``last_stop`` outer dimensions."""
    rank = len(view.shape)
    ports.announce(*tiles.sizes, (number for number, _, _ in view if number is not None))
    for number, level, empty_dimension in view:
        # Only the last tile closes all dimensions of the view.
        stop = level + last_stop if level == rank else level
        if number is None:
            await ports.sink.send_bare(stop, empty_dimension or 0)
        else:
            await hand_out(ports, tiles, number, stop)


@dataclass(frozen=True)
class RandomOffChipLoad(Load):
    """Read one tile for every address: address n is tile n, in row-major order of the tiles.

    Shapes:
        addresses: [D_a, ..., D_0] of 1x1 tiles; output: [D_a, ..., D_0] of tiles.

    Timing:
        As in LinearOffChipLoad. The slot of an address is freed before its tile is read.

    Memory:
        On chip, one tile while it is in flight. Off chip, each tile that is read.

    Attributes:
        tensor: the tensor that is read.
        tile: rows and columns of a tile; they divide the tensor's last two dimensions.

    Example:
        >>> x = np.arange(256.0).reshape(8, 32)
        >>> with Program("example", mode="functional") as program:
        ...     rows = RandomOffChipLoad(x, tile=(1, 32))(Metadata(np.array([[6], [0], [6]]))())
        ...     LinearOffChipStore("y")(rows)
        >>> program.expect(y=lambda: x[[6, 0, 6]])
        >>> print(rows.type)
        [1, 3, 1] of 1x32 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    conducted = turns = True
    no_order = "addresses decide which tiles it reads"

    def __call__(self, addresses: Stream) -> Stream:
        return self.wire(addresses)[0]

    @override
    def infer(self, wiring: Wiring, addresses: Stream) -> Types:
        check_integers("RandomOffChipLoad", addresses)
        dtype = self._grid.element_type(wiring.hardware)
        return (StreamType(addresses.shape, TileType(*self.tile, dtype)),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return replace(rates.bursts(outputs[0], in_memory=True), passes=True)

    @override
    async def run(self, ports: Ports) -> None:
        grid = self._grid
        tiles = grid.tiles(ports)
        async for address, stop in Values[Tile](ports.source, ports.sink):
            await hand_out(ports, tiles, grid.checked(address, ports), stop)
            ports.turn()

    @property
    @override
    def carries_numbers(self) -> bool:  # type: ignore[override]
        """Whether tiles hold no integers, which would depend on the address."""
        return not self._grid.has_integers
