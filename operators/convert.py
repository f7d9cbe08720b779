"""Convert: bring the tiles of a stream into another order, through the smallest buffer.

Source: StreamTensor, arXiv 2509.13694v2, the converter, here of Bufferize and Streamify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabric import Layout, ShapeError, Stream, TileType
from fabric.extend import (
    Conversion,
    Described,
    checked,
    common_tile,
    conversion,
    in_parts,
    refuse,
)
from operators.accum import Accum
from operators.bufferize import Bufferize
from operators.flat_map import FlatMap
from operators.functions.retile import RetileCol, RetileRow, SplitTiles
from operators.streamify import Streamify
from operators.streams.dimensions import redimensioned

__all__ = ["Convert"]


@dataclass(frozen=True)
class Convert(Described):
    """Bring a stream into another order; if it has that order already, nothing is wired.

    The result has the shape [1, *trips] of the wanted layout. Loops that both orders begin with
    stay as they are; what is inside of them is collected by a Bufferize and read by a Streamify.
    Tiles of other sizes are cut into parts that both are made of, and put together again.

    Attributes:
        layout: the wanted order, of the tensor that the stream is laid out over.

    Example:
        >>> x = np.arange(64.0).reshape(8, 8)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(4, 2))()
        ...     columns = Convert(Layout.tiled((8, 8), (4, 2), order=(1, 0)))(rows)
        ...     LinearOffChipStore("y")(columns)
        >>> print(rows.layout)
        8x8 in tiles of 4x2, [2, 4] steps [4, 2] -> (0, 1)
        >>> print(columns.layout)
        8x8 in tiles of 4x2, [4, 2] steps [2, 4] -> (1, 0)
    """

    layout: Layout

    @checked
    def __call__(self, stream: Stream) -> Stream:
        """Return the stream in the wanted order.

        Raises:
            ShapeError: the stream's order is not known, or there is no way to the wanted one.
        """
        source, wanted = stream.layout, self.layout
        if source is None:
            refuse(
                f"Convert is given {stream}, whose order is not known ({stream.no_layout}): "
                "expected a stream whose order is, such as stream.laid_out(...)",
                ShapeError,
            )
        if not isinstance(stream.value, TileType):
            refuse(f"Convert is given {stream}: expected a stream of tiles", ShapeError)
        if source.same_order(wanted):
            return _reordered(stream, source, wanted).laid_out(wanted)
        tile = common_tile(source, wanted)
        parts = _cut(stream, source, tile)
        parts = _reordered(parts, in_parts(source, tile), in_parts(wanted, tile))
        return _joined(parts, wanted, tile).laid_out(wanted)

    @checked
    def buffer(self, source: Layout) -> Conversion:
        """Return what is kept behind a stream of layout ``source``, and how it is read.

        Raises:
            ShapeError: there is no way from the one to the other.
        """
        tile = common_tile(source, self.layout)
        return conversion(in_parts(source, tile), in_parts(self.layout, tile))


def _cut(stream: Stream, source: Layout, tile: tuple[int, ...]) -> Stream:
    """Return the parts of the tiles of ``stream``."""
    if source.tile == tile:
        return stream
    return FlatMap(SplitTiles(math.prod(tile[:-1]), tile[-1]))(stream)


def _reordered(stream: Stream, source: Layout, wanted: Layout) -> Stream:
    """Return the same tiles in another order, in the shape [1, *trips]."""
    shape = (1, *wanted.trips)
    if source.same_order(wanted):
        return redimensioned(stream, shape)
    found = conversion(source, wanted)
    rank = _suffix(stream, found.tiles)
    if rank is None:
        stream = redimensioned(stream, (1, found.rounds, found.tiles))
        rank = 1
    view, strides = (found.shape, found.strides) if found.shape else ((1,), (0,))
    buffers = Bufferize(rank)(stream)
    tiles = Streamify(shape=view, strides=strides, offset=found.offset)(buffers)
    return redimensioned(tiles, shape)


def _suffix(stream: Stream, tiles: int) -> int | None:
    """Return how many of the innermost dimensions, but not all, have ``tiles`` elements."""
    product = 1
    for rank, dim in enumerate(reversed(stream.shape[1:]), 1):
        assert isinstance(dim, int)
        product *= dim
        if product == tiles:
            return rank
    return None


def _joined(parts: Stream, wanted: Layout, tile: tuple[int, ...]) -> Stream:
    """Return the tiles that ``parts`` are of."""
    if tile[-1] != wanted.tile[-1]:
        parts = Accum(RetileCol())(parts)
    loops = sum(a != b for a, b in zip(tile[:-1], wanted.tile[:-1], strict=True))
    return Accum(RetileRow(), rank=loops)(parts) if loops else parts
