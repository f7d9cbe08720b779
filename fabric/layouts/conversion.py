"""From one order of tiles to another: what a converter has to keep, and how it reads that.

Source: StreamTensor, arXiv 2509.13694v2, the converter and its smallest buffer. The loops that both
orders begin with are shared: a buffer holds what one of their rounds brings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fabric.arguments.described import checked, refuse
from fabric.layouts.affine import nest_of, strides_of
from fabric.layouts.layout import Layout
from fabric.layouts.loops import Loop, ends
from fabric.layouts.retiling import common_tile, in_parts
from fabric.telling.errors import ShapeError

__all__ = ["Conversion", "ConvertBytes", "conversion", "convert_bytes", "live_tiles"]


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
    """Return how often the loops that both begin with go round, and what one round does.

    That is how many tiles it brings, and which of these each tile that it reads is.
    """
    shared = list(_shared(source.canonical().loops, wanted.canonical().loops))
    while True:
        rounds = math.prod(loop.trips for loop in shared)
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


def _shared(left: Sequence[Loop], right: Sequence[Loop]) -> Iterator[Loop]:
    """Yield the loops that both nests begin with; a longer one is split where that helps."""
    for one, other in zip(left, right, strict=False):
        if one.dim != other.dim:
            return
        trips = one.trips
        if one != other:
            trips = math.gcd(one.trips, other.trips)
            reach = one.trips * one.step
            if one.dim is not None and reach != other.trips * other.step:
                return
            if trips > 1:
                yield Loop(trips, 1 if one.dim is None else reach // trips, one.dim)
            return
        yield one


def _numbers(layout: Layout, count: int) -> NDArray[np.int64]:
    """Return the first ``count`` tiles by the number of their first element."""
    offsets = layout.offsets()[:count]
    numbers: NDArray[np.int64] = np.zeros(count, np.int64)
    for dim, size in enumerate(layout.shape):
        numbers = numbers * size + offsets[:, dim]
    return numbers


def _places(written: NDArray[np.int64], read: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return where each tile that is read is first written; None where one is not."""
    there, first = np.unique(written, return_index=True)
    at = np.minimum(np.searchsorted(there, read), len(there) - 1)
    found: NDArray[np.int64] = first[at]
    return found if np.array_equal(there[at], read) else None


def _refuse_missing(source: Layout, wanted: Layout) -> NoReturn:
    refuse(f"({source}) has not all tiles of ({wanted}): expected those at least", ShapeError)
