"""A tensor cut into tiles of one size, and walks of tensors in row-major order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Hardware, Layout, ShapeError, Tile, ValueChangedError, dtype_named
from fabric.extend import (
    BLOCK,
    Ports,
    block_format,
    counted,
    dtype_name,
    kept_as,
    number_in,
    row_bytes,
)
from operators.streams.reading import tile_of
from operators.tiles.tensor import Elements, Scratch, Tensor

Position: TypeAlias = tuple[tuple[int, ...], int, int | None]
"""A position in a tensor: its index, the number of dimensions that close there, and the dimension
of size 0 (None at an element). The index ends before a dimension of size 0."""


def positions(shape: Sequence[int]) -> Iterator[Position]:
    """Walk a tensor of ``shape`` in row-major order, outermost dimension first.

    The last element closes all dimensions. If a dimension has size 0, there is one position for
    each place in the outer dimensions.
    """
    outer = next((axis for axis, size in enumerate(shape) if size == 0), None)
    walked = tuple(shape) if outer is None else tuple(shape[:outer])
    empty = None if outer is None else len(shape) - 1 - outer
    closed_always = 0 if empty is None else empty + 1
    strides = row_major_strides(walked)
    for flat in range(math.prod(walked)):  # no lists: a dimension may have 2**40 elements
        place = tuple(flat // stride % size for size, stride in zip(walked, strides, strict=True))
        closing = 0
        for size, index in zip(reversed(walked), reversed(place), strict=True):
            if index != size - 1:
                break
            closing += 1
        yield place, closed_always + closing, empty


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


_MOST_LISTED: Final = 1 << 16
"""Views with at most this many elements keep them in a list; others compute them each time."""


Viewed: TypeAlias = tuple[int | None, int, int | None]
"""The number of an item, the number of dimensions that close, and the dimension of size 0.

The first is None at an empty dimension. The last is None at an item.
"""


def numbers_below(count: int) -> str:
    return f"0 to {count - 1:,}" if count else "none, since there is nothing to read"


@dataclass(frozen=True)
class View:
    """A reading of some items of a row-major sequence, in a shape.

    Attributes:
        shape: outermost dimension first.
        strides: the step along each dimension, in items.
        offset: the number of the item that is read first.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def ends(self) -> tuple[int, int] | None:
        """The lowest and the highest number of an item; None for an empty view."""
        if not all(self.shape):
            return None
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        below, above = [end for end in ends if end < 0], [end for end in ends if end > 0]
        return self.offset + sum(below), self.offset + sum(above)

    def __iter__(self) -> Iterator[Viewed]:
        if math.prod(self.shape) <= _MOST_LISTED:
            return iter(self._elements)
        return self._walk()

    @cached_property
    def _elements(self) -> list[Viewed]:
        return list(self._walk())

    def _walk(self) -> Iterator[Viewed]:
        for place, stop, empty in positions(self.shape):
            item = None
            if empty is None:
                item = self.offset + sum(i * n for i, n in zip(place, self.strides, strict=True))
            yield item, stop, empty


class Grid:
    """The tiles of a tensor.

    The tensor is stored as a matrix: all dimensions except the last are rows.

    Attributes:
        shape: numbers of tiles, outermost dimension first.
        count: the number of tiles.
    """

    def __init__(self, operator: str, tensor: Tensor, tile: tuple[int, int]) -> None:
        """Cut ``tensor`` into tiles that divide it; errors begin with ``operator``."""
        rows, cols = tile
        shape = tensor.shape
        if min(shape, default=0) < 0:
            raise ShapeError(
                f"{operator} is given a tensor {list(shape)}: expected no dimension below 0"
            )
        if len(shape) < 2 or rows < 1 or cols < 1 or shape[-2] % rows or shape[-1] % cols:
            raise ShapeError(
                f"{operator} cuts a tensor {list(shape)} into tiles of {rows}x{cols}: "
                "expected tiles that divide its last two dimensions"
            )
        self._operator = operator
        self.tensor = tensor
        self.tile = tile
        self.shape = (*shape[:-2], shape[-2] // rows, shape[-1] // cols)
        self.count = math.prod(self.shape)

    def layout(self, view: View) -> Layout | None:
        """Return the layout of the tiles of a view; None if no loops describe it."""
        if not self.count or not math.prod(view.shape):
            return None
        in_tiles = counted(self.shape, view.shape, view.strides, view.offset)
        if in_tiles is None:
            return None
        tile = (*(1 for _ in self.shape[:-2]), *self.tile)
        loops = [
            loop if loop.dim is None else loop._replace(step=loop.step * tile[loop.dim])
            for loop in in_tiles.loops
        ]
        start = [at * size for at, size in zip(in_tiles.start, tile, strict=True)]
        return Layout.of_loops(self.tensor.shape, tile, start, loops)

    def checked(self, address: Tile, ports: Ports) -> int:
        """Return the number in ``address`` if it is the number of a tile."""
        number = ports.number(address, self.count)
        if number is not None:
            return number
        raise ports.failure(
            f"address {number_in(address):,} of {self}: expected {numbers_below(self.count)}"
        )

    def __str__(self) -> str:
        rows, cols = self.tile
        return f"a tensor {list(self.tensor.shape)} in tiles of {rows}x{cols}"

    def slices(self, number: int) -> tuple[slice, slice]:
        """Return the rows and columns of tile ``number`` in the matrix."""
        rows, cols = self.tile
        across = self.shape[-1]
        top, left = number // across * rows, number % across * cols
        return slice(top, top + rows), slice(left, left + cols)

    def element_type(self, hardware: Hardware) -> np.dtype:
        """Return the element type of the tiles: the tensor's, or the default of ``hardware``."""
        dtype = self.tensor.dtype or dtype_named(hardware.tile.dtype)
        self.check(dtype)
        return dtype

    def check(self, dtype: np.dtype) -> None:
        """Refuse a type that changes existing data, or in which tiles begin within a byte."""
        cols = self.tile[-1]
        if block_format(dtype) is not None:
            self._check_blocks(dtype)
        elif self.shape[-1] > 1 and row_bytes(cols, dtype) * 2 != row_bytes(2 * cols, dtype):
            raise ShapeError(
                f"{self._operator} cuts rows of {dtype_name(dtype)} into tiles {cols} wide: "
                "expected an even number, so that a tile begins with a whole byte"
            )
        try:
            self.tensor.check(dtype)
        except ValueChangedError as error:
            raise ShapeError(f"{self._operator}: {self._changed(error)}") from error

    def _check_blocks(self, dtype: np.dtype) -> None:
        """Refuse tiles that begin within a block of numbers that share a scale."""
        cols, width, own = self.tile[-1], self.tensor.shape[-1], self.tensor.base.shape[-1]
        if not (own % BLOCK == cols % BLOCK == 0 or cols == width == own):
            raise ShapeError(
                f"{self._operator} cuts a tensor {list(self.tensor.shape)} of {dtype_name(dtype)} "
                f"into tiles {cols} wide: expected whole rows, or a multiple of the {BLOCK} "
                "numbers that share a scale"
            )

    def tiles(self, ports: Ports) -> Tiles:
        """Return the tiles that a load sends.

        Tiles of a single integer have data in both modes, since they may be addresses.
        """
        if ports.functional and isinstance(self.tensor, Scratch):
            return _ScratchTiles(self, ports, self.tensor)
        real = ports.functional or self.has_integers
        return Tiles(self, ports, self.tensor.elements() if real else None)

    @property
    def has_integers(self) -> bool:
        """Whether the tiles are single integers with data."""
        stated = self.tensor.dtype
        single = self.tile == (1, 1) and stated is not None and stated.kind in "iu"
        return single and self.tensor.has_data

    def matrix(self, ports: Ports, elements: Elements, dtype: np.dtype) -> np.ndarray:
        """Return the tensor as a read-only matrix."""
        shape = self.tensor.shape
        try:
            array = elements.of(kept_as(dtype))
        except ValueChangedError as error:
            raise ports.failure(self._changed(error)) from error
        return array.reshape(math.prod(shape[:-1]), shape[-1])

    def _changed(self, error: ValueChangedError) -> str:
        return (
            f"a tensor {list(self.tensor.shape)} has {error}: expected values that do not change, "
            "or Tensor(..., dtype=...) of a type that holds them"
        )


class Tiles:
    """Tiles by number, each made once; without data, all numbers give the same tile."""

    def __init__(self, grid: Grid, ports: Ports, elements: Elements | None) -> None:
        self._grid = grid
        self._ports = ports
        self._dtype = tile_of(ports.output_types[0]).dtype
        self._made: dict[int, Tile] = {}
        self._elements = elements

    @property
    def sizes(self) -> tuple[int, int]:
        """The rows of a tile, and the bytes of a row."""
        rows, cols = self._grid.tile
        return rows, row_bytes(cols, self._dtype)

    def __getitem__(self, number: int) -> Tile:
        if self._elements is None:
            number = 0
        tile = self._made.get(number)
        if tile is None:
            data = None
            if self._elements is not None:
                matrix = self._grid.matrix(self._ports, self._elements, self._dtype)
                data = matrix[self._grid.slices(number)]
            tile = Tile(*self._grid.tile, self._dtype, data, in_memory=True)
            self._made[number] = tile
        return tile


class _ScratchTiles(Tiles):
    """Tiles of a scratch: the data are copied when a tile is read, since stores change them."""

    def __init__(self, grid: Grid, ports: Ports, scratch: Scratch) -> None:
        super().__init__(grid, ports, None)
        self._scratch = scratch

    @override
    def __getitem__(self, number: int) -> Tile:
        matrix = self._scratch.in_run(self._ports, self._dtype)
        data = matrix[self._grid.slices(number)].copy()
        data.flags.writeable = False
        return Tile(*self._grid.tile, self._dtype, data, in_memory=True)
