"""A tensor cut into tiles of one size, numbered in row-major order."""

from __future__ import annotations

import math

from fabric import Costs, Ports, ShapeError, StreamType, Tile, TileType
from operators.pairing import uneven
from operators.tensor import Tensor

__all__ = ["Grid", "hand_out", "load_costs"]


class Grid:
    """The tiles of a tensor.

    Attributes:
        tensor: what is cut; all dimensions but the last are rows of one matrix.
        tile: rows and columns.
        shape: in tiles, outermost first.
        count: how many tiles there are.
    """

    def __init__(self, operator: str, tensor: Tensor, tile: tuple[int, int]) -> None:
        """Cut ``tensor``; ``operator`` names who does so in an error.

        Raises:
            ShapeError: the tiles do not divide the tensor's last two dimensions.
        """
        rows, cols = tile
        shape = tensor.shape
        if len(shape) < 2 or rows < 1 or cols < 1 or shape[-2] % rows or shape[-1] % cols:
            raise ShapeError(
                f"{operator} cuts a tensor {list(shape)} into tiles of {rows}x{cols}: "
                "expected tiles that divide its last two dimensions"
            )
        self.tensor = tensor
        self.tile = tile
        self.shape = (*shape[:-2], shape[-2] // rows, shape[-1] // cols)
        self.count = math.prod(self.shape)

    def checked(self, number: int, ports: Ports) -> int:
        """Return ``number`` if it is the number of a tile.

        Raises:
            OperatorError: there is no such tile.
        """
        if number < self.count:
            return number
        raise uneven(
            ports,
            f"address {number:,} of a tensor {list(self.tensor.shape)} in tiles of "
            f"{self.tile[0]}x{self.tile[1]}",
            f"0 to {self.count - 1:,}",
        )

    def slices(self, number: int) -> tuple[slice, slice]:
        """Return where tile ``number`` is in the matrix that the tensor is stored as."""
        rows, cols = self.tile
        across = self.shape[-1]
        top, left = number // across * rows, number % across * cols
        return slice(top, top + rows), slice(left, left + cols)

    def tiles(self, tile_type: TileType, functional: bool) -> Tiles:
        """Return the tiles as a load hands them out."""
        return Tiles(self, tile_type, functional)


class Tiles:
    """Tiles by number, each made once; without data they are all the same one."""

    def __init__(self, grid: Grid, tile_type: TileType, functional: bool) -> None:
        """Make tiles of ``grid``, with data in functional mode."""
        self._grid = grid
        self._dtype = tile_type.dtype
        self._made: dict[int, Tile] = {}
        self._matrix = None
        if functional:
            tensor = grid.tensor
            self._matrix = tensor.array.reshape(
                math.prod(tensor.shape[:-1]), tensor.shape[-1]
            ).astype(self._dtype)

    def __getitem__(self, number: int) -> Tile:
        """Return tile ``number``, which a reader has to load from memory."""
        if self._matrix is None:
            number = 0
        tile = self._made.get(number)
        if tile is None:
            data = None if self._matrix is None else self._matrix[self._grid.slices(number)]
            tile = Tile(*self._grid.tile, self._dtype, data, in_memory=True)
            self._made[number] = tile
        return tile


async def hand_out(ports: Ports, tile: Tile, stop: int) -> None:
    """Read ``tile`` from off-chip memory and send it; until then it takes room on chip."""
    unit, size_bytes = ports.unit, tile.size_bytes
    await ports.on_chip.allocate(unit, size_bytes, "a tile")
    await ports.burst(tile.rows, tile.cols * tile.dtype.itemsize)
    await ports.sink.send((tile, stop))
    ports.on_chip.release(unit, size_bytes, unit.now)


def load_costs(tiles: StreamType) -> Costs:
    """Return what it costs to load a stream of tiles."""
    tile_bytes = tiles.value.size_bytes
    return Costs(
        load_bytes=tiles.count * tile_bytes,
        on_chip_bytes=2 * tile_bytes,
        artifact_on_chip_bytes=tile_bytes,
    )
