"""LinearOffChipStore and RandomOffChipStore: write tiles to off-chip memory.

LinearOffChipStore writes tiles in order. RandomOffChipStore takes addresses from a stream.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from typing_extensions import override

from fabric import ARTIFACT_BYTES, Dim, ShapeError, Stream, StreamType, Tile, TileType
from fabric.extend import (
    BoolType,
    Bounds,
    Costs,
    OffChipTensor,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    check_same_shape,
    dtype_name,
    is_static,
    kept_as,
    product,
    row_bytes,
)
from operators.streams.reading import Lockstep, Types, tile_of
from operators.tiles.grid import Grid
from operators.tiles.integers import check_integers
from operators.tiles.tensor import Elements, Scratch, Tensor


@dataclass(frozen=True)
class LinearOffChipStore(Operator):
    """Write the tiles of a stream one after the other.

    In functional mode the output is a matrix. Tiles are side by side up to a tile with a stop; then
    the next row of tiles begins. With ``shape`` the same elements form a tensor of that shape.

    Shapes:
        source: [D_a, ..., D_0] of tiles. The tiles of a group of dimension 0 are side by side, so
        all groups have to be equally wide. If dimension 0 is ragged, a ``Promote(0)`` before the
        store puts each tile below the previous tile.

    Timing:
        One tile is in flight at a time, as in LinearOffChipLoad. The slot of a tile is freed when
        all its requests are acknowledged.

    Memory:
        On chip, one tile while it is in flight. Off chip, every tile.

    Attributes:
        output: the name of the output; no other operator may store it.
        shape: the shape of the output, filled row by row from the matrix; the matrix's shape if
            None.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     LinearOffChipStore("y")(LinearOffChipLoad(x, tile=(2, 4))())
        >>> program.expect(y=lambda: x)
        >>> print(simulate(program).verified)
        True
    """

    family = "Off-chip memory (Table 3)"
    conducted = True
    kind = "memory"
    off_chip = "write"

    output: str
    shape: tuple[Annotated[int, Bounds(0)], ...] | None = None

    def __call__(self, source: Stream) -> None:
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        if not isinstance(source.value, TileType):
            raise ShapeError(f"LinearOffChipStore stores {source}: expected a stream of tiles")
        if self.shape is not None and product(self.shape) != product(_matrix_shape(source.type)):
            raise ShapeError(
                f"LinearOffChipStore stores {source} as a tensor {list(self.shape)}: expected "
                "equal numbers of elements, independent of the data"
            )
        wiring.store(self.output)
        return ()

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        (source,) = inputs
        tile = tile_of(source)
        artifact_bytes = tile.size_elements * ARTIFACT_BYTES
        return Costs(
            store_bytes=source.count * tile.size_bytes,
            on_chip_bytes=2 * tile.size_bytes,
            artifact_store_bytes=source.count * artifact_bytes,
            artifact_on_chip_bytes=artifact_bytes,
        )

    @override
    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor:
        (source,) = inputs
        tile = tile_of(source)
        matrix, cut = _matrix_shape(source), _cut(source)
        if self.shape is None:
            return OffChipTensor(matrix, tile.dtype, output=self.output, tile=cut)
        width = matrix[-1] if isinstance(matrix[-1], int) else None
        return OffChipTensor(self.shape, tile.dtype, output=self.output, tile=cut, width=width)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return rates.bursts(inputs[-1])

    @override
    async def run(self, ports: Ports) -> None:
        source, unit = ports.source, ports.unit
        rows: list[list[Any]] = [[]]
        places = _Places(ports.input_types[0])
        while (element := await source.peek()) is not None:
            tile, stop = element
            if isinstance(tile, Tile):
                size_bytes = tile.size_bytes
                await ports.on_chip.allocate(unit, size_bytes, "a tile")
                width_bytes = row_bytes(tile.cols, tile.dtype)
                await ports.burst(tile.rows, width_bytes, places.take(tile.rows, width_bytes))
                ports.on_chip.release(unit, size_bytes, unit.now)
                if ports.functional:
                    rows[-1].append(tile.data)
            source.take()
            if stop:
                places.close_row()
                if rows[-1]:
                    rows.append([])
        if ports.functional:
            stored = _matrix(ports, rows, tile_of(ports.input_types[0]))
            ports.stored[self.output] = stored if self.shape is None else stored.reshape(self.shape)


def _matrix_shape(source: StreamType) -> tuple[Dim, Dim]:
    """Return the rows and columns of the matrix that a LinearOffChipStore makes."""
    tile = tile_of(source)
    return product((*source.shape[:-1], tile.rows)), product((source.shape[-1], tile.cols))


def _cut(source: StreamType) -> tuple[Dim, int] | None:
    """Return the tile size of the matrix; None if its width depends on the data."""
    tile = tile_of(source)
    if not (is_static(source.shape[-1]) and is_static(tile.cols) and tile.cols):
        return None
    return tile.rows or 1, tile.cols


class _Places:
    """The place of each tile: a number, or a first byte if the width depends on the data."""

    def __init__(self, source: StreamType) -> None:
        cut = _cut(source)
        self._is_cut = cut is not None
        # If data decide the rows of a tile, places are numbered as for tiles of one row.
        self._high = cut[0] if cut is not None and is_static(cut[0]) else 1
        self._across = source.shape[-1]
        self._next = 0
        self._left = 0
        self._rows = 0

    def take(self, rows: int, width_bytes: int) -> int:
        """Return the number of the next tile, or of its first byte."""
        number: int = self._next + self._left
        if self._is_cut:
            self._left += 1
            self._rows = max(self._rows, rows)
        else:
            self._next += rows * width_bytes
        return number

    def close_row(self) -> None:
        if self._is_cut:
            self._next += self._rows // self._high * self._across
            self._left = self._rows = 0


def _row(ports: Ports, number: int, tiles: list[Any]) -> Any:
    for tile in tiles:
        if len(tile) != len(tiles[0]):
            raise ports.failure(
                f"row of tiles {number} has a tile {len(tile):,} high: "
                f"expected {len(tiles[0]):,}, the rows of the first tile in the row"
            )
    return np.concatenate(tiles, axis=1)


def _matrix(ports: Ports, rows: list[list[Any]], tile_type: TileType) -> Any:
    full = [_row(ports, number, row) for number, row in enumerate(filter(None, rows))]
    if full:
        for number, row in enumerate(full):
            if row.shape[1] != full[0].shape[1]:
                raise ports.failure(
                    f"row of tiles {number} is {row.shape[1]:,} wide: expected "
                    f"{full[0].shape[1]:,}, the width of row 0 of the matrix"
                )
        return np.concatenate(full, axis=0)
    cols = tile_type.cols if isinstance(tile_type.cols, int) else 0
    return np.zeros((0, cols), kept_as(tile_type.dtype))


@dataclass(frozen=True)
class RandomOffChipStore(Operator):
    """Write one tile for every address: address n is tile n, in row-major order of the tiles.

    In functional mode the output is the tensor with the tiles written into it. If the tensor is a
    view (``Tensor.viewed``), the output is the tensor of which it is a view. Stores with the same
    name and the same tensor write to the same output. If two stores write to the same place, the
    later acknowledgement wins; in the same cycle the operator wired later wins.

    Shapes:
        addresses: [D_a, ..., D_0] of 1x1 tiles; data: the same shape, of tiles; output: the same
        shape, of Bool, one acknowledgement for each tile. The output may stay unread.

    Timing:
        As in LinearOffChipStore. The slots of address and tile are freed when the acknowledgement
        is sent.

    Memory:
        On chip, one tile while it is in flight; the authors' accounting counts ``buffered`` tiles.
        Off chip, every tile.

    Attributes:
        output: the name of the output.
        tensor: the tensor before the first write; a Scratch is written in place and has no output.
        tile: rows and columns of a tile; they divide the tensor's last two dimensions.
        buffered: number of tiles that the authors' accounting reserves on chip.

    Example:
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((2, 32)), tile=(1, 32))())
        ...     places = Metadata(np.array([3, 1]))()
        ...     RandomOffChipStore("y", np.zeros((4, 32)), tile=(1, 32))(places, rows)
        >>> program.expect(y=lambda: np.array([0, 1, 0, 1])[:, None] * np.ones((4, 32)))
        >>> print(simulate(program).verified)
        True
    """

    family = "Off-chip memory (Table 3)"
    conducted = turns = carries_numbers = True
    kind = "memory"
    off_chip = "write"
    secondary_outputs = (0,)

    output: str
    tensor: Tensor | np.ndarray
    tile: tuple[int, int]
    buffered: Annotated[int, Bounds(0)] = 1

    def __call__(self, addresses: Stream, data: Stream) -> Stream:
        return self.wire(addresses, data)[0]

    @override
    def infer(self, wiring: Wiring, addresses: Stream, data: Stream) -> Types:
        check_integers("RandomOffChipStore", addresses)
        check_same_shape("RandomOffChipStore", addresses, data)
        grid, value = self._grid, data.value
        if not isinstance(value, TileType) or (value.rows, value.cols) != grid.tile:
            rows, cols = grid.tile
            raise ShapeError(f"RandomOffChipStore stores {data}: expected tiles of {rows}x{cols}")
        is_scratch = isinstance(grid.tensor, Scratch)
        stated = grid.element_type(wiring.hardware) if is_scratch else grid.tensor.dtype
        if stated is not None and stated != value.dtype:
            raise ShapeError(
                f"RandomOffChipStore stores {data} in a tensor of {dtype_name(stated)}: "
                "expected one element type"
            )
        grid.check(value.dtype)
        if not is_scratch:
            wiring.store(self.output, self.tensor, value)
        return (StreamType(addresses.shape, BoolType()),)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        _, data = inputs
        tile_bytes = data.value.size_bytes
        traffic = data.count * tile_bytes
        return Costs(
            store_bytes=traffic,
            on_chip_bytes=2 * tile_bytes,
            artifact_store_bytes=traffic,
            artifact_on_chip_bytes=self.buffered * tile_bytes,
        )

    @override
    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor:
        tile = tile_of(inputs[1])
        tensor = Tensor.of(self.tensor)
        is_scratch = isinstance(tensor, Scratch)
        return OffChipTensor(
            tensor.base.shape,
            tile.dtype,
            source=tensor.base if is_scratch else None,
            output=None if is_scratch else self.output,
            tile=self.tile,
            width=tensor.shape[-1],
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return replace(rates.bursts(inputs[-1]), passes=True)

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, grid = ports.unit, ports.sink, self._grid
        # Until this operator ends, ``elements`` keeps the data in memory for loads of the tensor.
        elements = grid.tensor.elements()
        matrix = self._stored(ports, grid, elements) if ports.functional else None
        written = (
            (grid.tensor.base, self.output) if isinstance(grid.tensor, Scratch) else self.output
        )
        inputs = Lockstep[Tile](ports, sink, held=True)
        async for (address, tile), stop in inputs:
            place = grid.checked(address, ports)
            size_bytes = tile.size_bytes
            await ports.on_chip.allocate(unit, size_bytes, "a tile")
            await ports.burst(tile.rows, row_bytes(tile.cols, tile.dtype), place)
            ports.on_chip.release(unit, size_bytes, unit.now)
            if matrix is not None and ports.stored.stays(written, place, unit):
                matrix[grid.slices(place)] = tile.data
            await sink.send((True, stop))
            inputs.take()
            ports.turn()

    def _stored(self, ports: Ports, grid: Grid, elements: Elements) -> Any:
        dtype = tile_of(ports.input_types[1]).dtype
        if isinstance(grid.tensor, Scratch):
            return grid.tensor.in_run(ports, dtype)
        before = grid.matrix(ports, elements, dtype)
        if self.output not in ports.stored:
            ports.stored[self.output] = before.reshape(grid.tensor.base.shape).copy()
        return ports.stored[self.output].reshape(before.shape)

    @property
    def _grid(self) -> Grid:
        return Grid("RandomOffChipStore", Tensor.of(self.tensor), self.tile)
