"""Conversions between two orders of tiles, and the buffers that they need.

Source: StreamTensor, arXiv 2509.13694v2, the converter. A buffer holds one round of the loops that
both orders share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fabric.graph.arguments.described import checked, refuse
from fabric.graph.layouts.layout import Layout, Loop, ends
from fabric.messages.telling.errors import ShapeError


@dataclass(frozen=True)
class Conversion:
    """How a converter brings tiles into another order, with one buffer after the other.

    Attributes:
        rounds: how many buffers are filled, one after the other.
        tiles: that each one holds.
        box: what these are of the tensor, in elements of each dimension.
        shape, strides, offset: how a buffer is read, in tiles: outermost first, from the first.
        equal: whether the order is the wanted one as it is.
    """

    rounds: int
    tiles: int
    box: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def equal(self) -> bool:
        """Whether nothing has to be kept."""
        return self.tiles == 1 and math.prod(self.shape) == 1


class ConvertBytes(NamedTuple):
    """What a converter needs on chip.

    Attributes:
        shape: of the tensor's part that it holds, in elements.
        tiles: in one buffer.
        bytes: of one buffer; a ping-pong buffer has twice as many.
        reuses: how many times the buffer is filled.
    """

    shape: tuple[int, ...]
    tiles: int
    bytes: int
    reuses: int


@checked
def convert_bytes(source: Layout, wanted: Layout, element_bytes: int) -> ConvertBytes:
    """Return what is kept to turn ``source`` into ``wanted``, by the loops that both begin with.

    Where the tiles differ, they are cut into parts that both are made of.

    Args:
        source: the order that is there.
        wanted: the order that shall be.
        element_bytes: of one number.

    Raises:
        ShapeError: there is no way from the one to the other.
    """
    tile = common_tile(source, wanted)
    found = conversion(in_parts(source, tile), in_parts(wanted, tile))
    size_bytes = found.tiles * math.prod(tile) * element_bytes
    return ConvertBytes(found.box, found.tiles, size_bytes, found.rounds)


@checked
def live_tiles(source: Layout, wanted: Layout) -> int:
    """Return how many tiles are live at once on the way from ``source`` to ``wanted``, at most.

    A tile is live from its first coming, which is as late as the order that is read allows, to the
    last time it is read. Both are counted within one round of the loops that both orders begin
    with. A source that brings every tile once cannot be turned with fewer.

    Args:
        source: the order that is there.
        wanted: the order that shall be; of the same tiles.

    Raises:
        ShapeError: the tiles are others, or some are missing.
    """
    _check_same_tiles(source, wanted)
    _, tiles, at = _round(source, wanted)
    needed = np.maximum.accumulate(at + 1)
    last = np.full(tiles, -1)
    last[at] = np.arange(len(at))  # of several the last one stays
    kept = np.flatnonzero(last >= 0)
    first = np.searchsorted(needed, kept, side="right")
    live = np.zeros(len(at) + 1, np.int64)
    np.add.at(live, first, 1)
    np.add.at(live, last[kept] + 1, -1)
    return int(np.cumsum(live).max())


@checked
def conversion(source: Layout, wanted: Layout) -> Conversion:
    """Return how ``source`` is turned into ``wanted``, of the same tiles, by the smallest buffer.

    Args:
        source: the order that is there.
        wanted: the order that shall be.

    Raises:
        ShapeError: the tiles are others, some are missing, or no affine reading gives the order.
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
    """Return the rounds of the shared loops, the tiles of a round, and the tile of each read."""
    shared = list(_shared(source.canonical().loops, wanted.canonical().loops))
    while True:
        rounds = math.prod(shared)
        tiles, read = source.count // rounds, wanted.count // rounds
        places = _places(_numbers(source, tiles), _numbers(wanted, read))
        if places is not None:
            return rounds, tiles, places
        if not shared:
            _refuse_missing(source, wanted)
        shared.pop()


def _check_same_tiles(source: Layout, wanted: Layout) -> None:
    if (source.shape, source.tile) != (wanted.shape, wanted.tile):
        refuse(
            f"({source}) has other tiles than ({wanted}): expected the same shape and tile",
            ShapeError,
        )


def _shared(left: Sequence[Loop], right: Sequence[Loop]) -> Iterator[int]:
    """Yield the trips of loops that begin both nests; longer loops are split."""
    for one, other in zip(left, right, strict=False):
        if one.dim != other.dim:
            return
        if one != other:
            if one.dim is None or one.trips * one.step == other.trips * other.step:
                yield math.gcd(one.trips, other.trips)
            return
        yield one.trips


def _numbers(layout: Layout, count: int) -> NDArray[np.int64]:
    """Return the first ``count`` tiles by the number of their first element."""
    offsets = layout.offsets()[:count]
    numbers: NDArray[np.int64] = np.zeros(count, np.int64)
    for dim, size in enumerate(layout.shape):
        numbers = numbers * size + offsets[:, dim]
    return numbers


def _places(written: NDArray[np.int64], read: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the first write of each tile that is read; None if one is missing."""
    there, first = np.unique(written, return_index=True)
    at = np.minimum(np.searchsorted(there, read), len(there) - 1)
    found: NDArray[np.int64] = first[at]
    return found if np.array_equal(there[at], read) else None


def _refuse_missing(source: Layout, wanted: Layout) -> NoReturn:
    refuse(f"({source}) has not all tiles of ({wanted}): expected those at least", ShapeError)


@checked
def strides_of(numbers: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the step along each dimension of ``numbers`` in ``shape``; None where steps differ.

    Args:
        numbers: integers, one after the other.
        shape: of a tensor of as many.

    Raises:
        ShapeError: the tensor has another number of elements.
    """
    if numbers.shape != (math.prod(shape),):
        refuse(
            f"strides_of: shape {list(shape)} is given for numbers {list(numbers.shape)}: "
            "expected as many in one dimension",
            ShapeError,
        )
    grid = numbers.reshape(shape)
    strides = []
    expected = np.full((), numbers[0])
    for axis, size in enumerate(shape):
        second = tuple(int(each == axis) for each in range(len(shape)))
        stride = int(grid[second] - numbers[0]) if size > 1 else 0
        strides.append(stride)
        expected = expected[..., None] + np.arange(size) * stride
    return tuple(strides) if np.array_equal(expected, grid) else None


def nest_of(numbers: NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the sizes and steps of the fewest loops that count so, outermost first, or None."""
    trips: list[int] = []
    steps: list[int] = []
    while len(numbers) > 1:
        moves = np.diff(numbers)
        others = np.flatnonzero(moves != moves[0])
        run = int(others[0]) + 1 if len(others) else len(numbers)
        if len(numbers) % run:
            return None
        rounds = numbers.reshape(-1, run)
        if not np.array_equal(
            rounds - rounds[:, :1], np.tile(rounds[0] - rounds[0, 0], (len(rounds), 1))
        ):
            return None
        trips.insert(0, run)
        steps.insert(0, int(moves[0]))
        numbers = rounds[:, 0]
    return tuple(trips), tuple(steps)


@checked
def common_tile(left: Layout, right: Layout) -> tuple[int, ...]:
    """Return the largest tile that those of both layouts can be cut into, in places of one grid.

    Its rows are neighbours in the tiles of both. So it is one place wide along a dimension where a
    tile is not whole along one that lies further inside: in tiles of two tokens of two requests
    the tokens of one request are no neighbours.

    Args:
        left: a layout.
        right: another one of a tensor of the same shape.

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
    """Return the parts of the tiles of a layout, each at a multiple of its size."""
    sizes = list(map(math.gcd, layout.tile, layout.start))
    for loop in layout.loops:
        if loop.dim is not None and loop.trips > 1:
            sizes[loop.dim] = math.gcd(sizes[loop.dim], loop.step)
    return tuple(sizes)


def _cuts(whole: Sequence[int], part: Sequence[int]) -> bool:
    """Whether the rows of each part are contiguous in all dimensions but the last."""
    rows, wanted = whole[:-1], part[:-1]
    first = next((dim for dim, size in enumerate(wanted) if size > 1), len(wanted))
    return tuple(rows[first + 1 :]) == tuple(wanted[first + 1 :])


@checked
def in_parts(layout: Layout, tile: tuple[int, ...]) -> Layout:
    """Return the layout of the same stream when each tile is cut into parts, row by row.

    Args:
        layout: of the tiles as they are.
        tile: of the parts; it divides the tile.

    Raises:
        ShapeError: it does not.
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
    return layout.nested((*layout.loops, *loops), tile)
