"""Conversions between two orders of tiles, and the buffers that they need.

Source: StreamTensor, arXiv 2509.13694v2, the converter. A buffer holds one round of the loops that
both orders share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.graph.arguments.described import checked, refuse
from fabric.graph.layouts.layout import Layout, Loop, ends
from fabric.messages.errors import ShapeError
from fabric.messages.text import counted


@dataclass(frozen=True)
class Conversion:
    """The buffers and loops with which a converter changes the order of tiles.

    Attributes:
        rounds: the number of buffers, filled one after the other.
        tiles: tiles in one buffer.
        box: the part of the tensor in one buffer, in elements of each dimension.
        shape, strides, offset: trips, steps and first tile of the loops that read a buffer.
    """

    rounds: int
    tiles: int
    box: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def equal(self) -> bool:
        """Whether the present order is the wanted order, so that no buffer is needed."""
        return self.tiles == 1 and math.prod(self.shape) == 1


class ConvertBytes(NamedTuple):
    """The on-chip memory of a converter.

    Attributes:
        shape: the part of the tensor in one buffer, in elements.
        tiles: tiles in one buffer.
        bytes: bytes of one buffer; a ping-pong buffer has twice this size.
        reuses: the number of times that the buffer is filled.
    """

    shape: tuple[int, ...]
    tiles: int
    bytes: int
    reuses: int


@checked
def convert_bytes(source: Layout, wanted: Layout, element_bytes: int) -> ConvertBytes:
    """Return the buffer of a converter from ``source`` to ``wanted``.

    The buffer holds one round of the loops that both orders begin with. If the tiles differ, both
    layouts are cut into common parts.

    Args:
        source: the present order.
        wanted: the order after conversion.
        element_bytes: bytes of one number.

    Raises:
        ShapeError: ``source`` cannot be converted into ``wanted``.
    """
    tile = common_tile(source, wanted)
    converter = conversion(in_parts(source, tile), in_parts(wanted, tile))
    size_bytes = converter.tiles * math.prod(tile) * element_bytes
    return ConvertBytes(converter.box, converter.tiles, size_bytes, converter.rounds)


@checked
def live_tiles(source: Layout, wanted: Layout) -> int:
    """Return the largest number of live tiles during a conversion of ``source`` into ``wanted``.

    A tile is live from its first arrival to its last read. Tiles arrive as late as the reads allow.
    Tiles are counted in one round of the loops that both orders begin with. If ``source`` has every
    tile once, a conversion needs room for at least this number of tiles.

    Args:
        source: the present order.
        wanted: the order after conversion, with the same tiles.

    Raises:
        ShapeError: the tiles differ, or some are missing.
    """
    _check_same_tiles(source, wanted)
    _, tiles, at = _round(source, wanted)
    needed = np.maximum.accumulate(at + 1)
    last = np.full(tiles, -1)
    last[at] = np.arange(len(at))  # the last read of a tile remains
    kept = np.flatnonzero(last >= 0)
    first = np.searchsorted(needed, kept, side="right")
    live = np.zeros(len(at) + 1, np.int64)
    np.add.at(live, first, 1)
    np.add.at(live, last[kept] + 1, -1)
    return int(np.cumsum(live).max())


@checked
def conversion(source: Layout, wanted: Layout) -> Conversion:
    """Return the conversion of ``source`` into ``wanted`` with the smallest buffer.

    Args:
        source: the present order.
        wanted: the order after conversion, with the same tiles.

    Raises:
        ShapeError: the tiles differ, some are missing, or no loops over a buffer give the order.
    """
    _check_same_tiles(source, wanted)
    rounds, tiles, places = _round(source, wanted)
    read = len(places)
    cut = wanted.cut(read)
    shape = tuple(loop.trips for loop in cut[1]) if cut else ()
    strides = strides_of(places, shape) if cut else None
    if strides is None:
        nest = nest_of(places)
        if nest is None:
            refuse(
                f"the order ({source}) cannot be read as ({wanted}) from a buffer: expected steps "
                "of equal size",
                ShapeError,
            )
        shape, strides = nest
    _, loops = source.canonical().cut(tiles) or ((), ())
    box = ends(len(source.shape), source.tile, (0,) * len(source.shape), loops)
    return Conversion(rounds, tiles, tuple(box), shape, strides, int(places[0]))


def _round(source: Layout, wanted: Layout) -> tuple[int, int, NDArray[np.int64]]:
    """Return the number of rounds of the shared loops, of tiles in a round, and each read tile."""
    shared = list(_shared(source.canonical().loops, wanted.canonical().loops))
    while True:
        rounds = math.prod(shared)
        tiles, read = source.count // rounds, wanted.count // rounds
        places = _places(_numbers(source, tiles), _numbers(wanted, read))
        if places is not None:
            return rounds, tiles, places
        if not shared:
            refuse(f"({source}) lacks tiles of ({wanted}): expected all these tiles", ShapeError)
        shared.pop()


def _check_same_tiles(source: Layout, wanted: Layout) -> None:
    if (source.shape, source.tile) != (wanted.shape, wanted.tile):
        refuse(
            f"({source}) has other tiles than ({wanted}): expected the same shape and tile",
            ShapeError,
        )


def _shared(left: Sequence[Loop], right: Sequence[Loop]) -> Iterator[int]:
    """Yield the trips of the loops that both nests begin with, after splitting longer loops."""
    for one, other in zip(left, right, strict=False):
        if one.dim != other.dim:
            return
        if one != other:
            if one.dim is None or one.trips * one.step == other.trips * other.step:
                yield math.gcd(one.trips, other.trips)
            return
        yield one.trips


def _numbers(layout: Layout, count: int) -> NDArray[np.int64]:
    """Return the row-major numbers of the first elements of ``count`` tiles."""
    offsets = layout.offsets()[:count]
    numbers: NDArray[np.int64] = np.zeros(count, np.int64)
    for dim, size in enumerate(layout.shape):
        numbers = numbers * size + offsets[:, dim]
    return numbers


def _places(written: NDArray[np.int64], read: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the first place in ``written`` of each tile that is read; None if one is missing."""
    tiles, first = np.unique(written, return_index=True)
    at = np.minimum(np.searchsorted(tiles, read), len(tiles) - 1)
    places: NDArray[np.int64] = first[at]
    return places if np.array_equal(tiles[at], read) else None


@checked
def strides_of(numbers: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the step along each dimension of ``numbers`` in ``shape``; None if a step varies.

    Args:
        numbers: integers in one dimension.
        shape: the shape to read them in, row-major.

    Raises:
        ShapeError: ``shape`` has another number of elements.
    """
    if numbers.shape != (math.prod(shape),):
        refuse(
            f"strides_of: shape {list(shape)} is given for numbers {list(numbers.shape)}: "
            f"expected {counted(math.prod(shape), 'number')} in one dimension",
            ShapeError,
        )
    grid = numbers.reshape(shape)
    strides = []
    expected = np.full((), numbers[0])
    for axis, size in enumerate(shape):
        second = tuple(int(dim == axis) for dim in range(len(shape)))
        stride = int(grid[second] - numbers[0]) if size > 1 else 0
        strides.append(stride)
        expected = expected[..., None] + np.arange(size) * stride
    return tuple(strides) if np.array_equal(expected, grid) else None


def nest_of(numbers: NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the sizes and steps of the fewest loops that yield ``numbers``, or None."""
    trips: list[int] = []
    steps: list[int] = []
    while len(numbers) > 1:
        moves = np.diff(numbers)
        breaks = np.flatnonzero(moves != moves[0])
        run = int(breaks[0]) + 1 if len(breaks) else len(numbers)
        if len(numbers) % run:
            return None
        rounds = numbers.reshape(-1, run)
        if (rounds - rounds[:, :1] != rounds[0] - rounds[0, 0]).any():
            return None
        trips.insert(0, run)
        steps.insert(0, int(moves[0]))
        numbers = rounds[:, 0]
    return tuple(trips), tuple(steps)


@checked
def common_tile(left: Layout, right: Layout) -> tuple[int, ...]:
    """Return the largest tile that divides the tiles of both layouts and lies on one grid.

    Its rows are contiguous in the tiles of both layouts. Therefore its size along a dimension of
    rows is above 1 only if it spans the tiles in all inner dimensions of rows. For example, in a
    tile of 2 tokens x 2 requests, the two tokens of one request are not in neighbouring rows.

    Args:
        left: a layout.
        right: another layout of a tensor with the same shape.

    Raises:
        ShapeError: the shapes differ.
    """
    if left.shape != right.shape:
        refuse(f"({left}) is of another tensor than ({right}): expected the same shape", ShapeError)
    tile = tuple(map(math.gcd, _grid(left), _grid(right)))
    for outer in range(len(tile)):
        part = (1,) * outer + tile[outer:]
        if _cuts(left.tile, part) and _cuts(right.tile, part):
            return part
    return tile


def _grid(layout: Layout) -> tuple[int, ...]:
    """Return the largest part of a tile such that all offsets are multiples of its size."""
    sizes = list(map(math.gcd, layout.tile, layout.start))
    for loop in layout.loops:
        if loop.dim is not None and loop.trips > 1:
            sizes[loop.dim] = math.gcd(sizes[loop.dim], loop.step)
    return tuple(sizes)


def _cuts(whole: Sequence[int], part: Sequence[int]) -> bool:
    """Whether the rows of a part are contiguous in the whole tile."""
    rows, wanted = whole[:-1], part[:-1]
    first = next((dim for dim, size in enumerate(wanted) if size > 1), len(wanted))
    return tuple(rows[first + 1 :]) == tuple(wanted[first + 1 :])


@checked
def in_parts(layout: Layout, tile: tuple[int, ...]) -> Layout:
    """Return the layout of the same stream with each tile cut into parts, row by row.

    Args:
        layout: the layout with whole tiles.
        tile: the size of a part.

    Raises:
        ShapeError: ``tile`` does not divide the tile of ``layout``.
    """
    if len(tile) != len(layout.tile) or any(
        part < 1 or size % part for size, part in zip(layout.tile, tile, strict=True)
    ):
        refuse(f"in_parts: tile is {tile}: expected a part of the tile of ({layout})", ShapeError)
    loops = [
        Loop(size // part, part, dim)
        for dim, (size, part) in enumerate(zip(layout.tile, tile, strict=True))
        if size != part
    ]
    return Layout.of_loops(layout.shape, tile, layout.start, (*layout.loops, *loops))
