"""Bring the tiles of a stream into another order, in the smallest buffer or in off-chip memory.

Tensors in memory are row-major in every shape, so a reshape between writing and reading is free.

Source: StreamTensor, arXiv 2509.13694v2, the converter, here made of Bufferize and Streamify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric import Layout, ShapeError, Stream, TileType
from fabric.extend import (
    Conversion,
    Described,
    checked,
    common_tile,
    conversion,
    dtype_name,
    in_parts,
    refuse,
    strides_of,
)
from operators.accum import Accum
from operators.bufferize import Bufferize, Streamify
from operators.flat_map import FlatMap
from operators.functions.base import SignalAllRead
from operators.functions.retile import RetileCol, RetileRow, SplitTiles
from operators.off_chip_load import LinearOffChipLoad
from operators.off_chip_store import RandomOffChipStore
from operators.shape import redimensioned
from operators.sources import Metadata
from operators.tiles.tensor import Scratch, Tensor


@dataclass(frozen=True)
class Convert(Described):
    """Bring the tiles of a stream into another order.

    The result has the shape [1, *trips] of the wanted layout. A stream that has the wanted order
    already needs no buffer. Otherwise a Bufferize collects the tiles of the inner loops, in which
    the orders differ, and a Streamify reads them in the wanted order. If the tile sizes differ,
    tiles are cut into their common parts and put together again.

    Attributes:
        layout: the wanted order of the same tensor.

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
            ShapeError: the stream's order is unknown, or no conversion leads to the wanted order.
        """
        source, wanted = stream.layout, self.layout
        if source is None:
            refuse(
                f"Convert is given {stream} with an unknown order ({stream.no_layout}): "
                "expected a stream with a known order, such as stream.laid_out(...)",
                ShapeError,
            )
        if not isinstance(stream.value, TileType):
            refuse(f"Convert is given {stream}: expected a stream of tiles", ShapeError)
        if source.same_order(wanted):
            return _reordered(stream, source, wanted).laid_out(wanted)
        tile = common_tile(source, wanted)
        if source.tile != tile:
            stream = FlatMap(SplitTiles(math.prod(tile[:-1]), tile[-1]))(stream)
        parts = _reordered(stream, in_parts(source, tile), in_parts(wanted, tile))
        return _joined(parts, wanted, tile).laid_out(wanted)

    @checked
    def buffer(self, source: Layout) -> Conversion:
        """Return the buffer for a stream of layout ``source``, and the order of its reads.

        Raises:
            ShapeError: no conversion leads from ``source`` to the wanted layout.
        """
        tile = common_tile(source, self.layout)
        return conversion(in_parts(source, tile), in_parts(self.layout, tile))


def _reordered(stream: Stream, source: Layout, wanted: Layout) -> Stream:
    """Return the same tiles in another order, in the shape [1, *trips]."""
    shape = (1, *wanted.trips)
    if source.same_order(wanted):
        return redimensioned(stream, shape)
    buffer = conversion(source, wanted)
    rank = _suffix(stream, buffer.tiles)
    if rank is None:
        stream = redimensioned(stream, (1, buffer.rounds, buffer.tiles))
        rank = 1
    view, strides = (buffer.shape, buffer.strides) if buffer.shape else ((1,), (0,))
    buffers = Bufferize(rank)(stream)
    tiles = Streamify(shape=view, strides=strides, offset=buffer.offset)(buffers)
    return redimensioned(tiles, shape)


def _suffix(stream: Stream, tiles: int) -> int | None:
    """Return how many inner dimensions hold ``tiles`` elements together; None if none do."""
    product = 1
    for rank, dim in enumerate(reversed(stream.shape[1:]), 1):
        assert isinstance(dim, int)
        product *= dim
        if product == tiles:
            return rank
    return None


def _joined(parts: Stream, wanted: Layout, tile: tuple[int, ...]) -> Stream:
    if tile[-1] != wanted.tile[-1]:
        parts = Accum(RetileCol())(parts)
    loops = sum(a != b for a, b in zip(tile[:-1], wanted.tile[:-1], strict=True))
    return Accum(RetileRow(), rank=loops)(parts) if loops else parts


class Matrix(NamedTuple):
    """A matrix in memory with the same elements and tiles as a layout.

    Attributes:
        shape: rows and columns, in elements.
        tile: rows and columns of a tile, in elements.
        numbers: for each tile in the layout's order, its row-major number in the matrix.
    """

    shape: tuple[int, int]
    tile: tuple[int, int]
    numbers: NDArray[np.int64]


@checked
def matrix_of(layout: Layout) -> Matrix:
    """Return the matrix in row-major memory that has the same tiles as ``layout``.

    Raises:
        ShapeError: the rows are not equally spaced, or do not begin at multiples of their size.
    """
    strides = [math.prod(layout.shape[dim + 1 :]) for dim in range(len(layout.shape))]
    rows, cols = layout.rows, layout.cols
    elements, pitch = math.prod(layout.shape), _pitch(layout, strides)
    down, right = np.divmod(layout.offsets() @ np.array(strides, np.int64), pitch or 1)
    if (
        pitch is None
        or elements % (pitch * rows)
        or pitch % cols
        or (down % rows).any()
        or (right % cols).any()
    ):
        refuse(
            f"the tiles of ({layout}) do not form a matrix in memory: expected equally "
            "spaced rows that begin at multiples of their size",
            ShapeError,
        )
    numbers = down // rows * (pitch // cols) + right // cols
    return Matrix((elements // pitch, pitch), (rows, cols), numbers)


def _pitch(layout: Layout, strides: list[int]) -> int | None:
    """Return the elements in memory from one row of a tile to the next; None if they differ."""
    if layout.rows == 1:
        last = math.prod(layout.shape[-1:])
        return layout.cols if last % layout.cols else last
    dims = [dim for dim, size in enumerate(layout.tile[:-1]) if size > 1]
    for outer, inner in pairwise(dims):
        if strides[outer] != layout.tile[inner] * strides[inner]:
            return None
    return strides[dims[-1]]


def is_matrix(layout: Layout) -> bool:
    try:
        matrix_of(layout)
    except ShapeError:
        return False
    return True


@checked
def loaded(
    tensor: Tensor, layout: Layout, reference: Stream | None = None, *, name: str | None = None
) -> Stream:
    """Return the tiles of a tensor in off-chip memory in the order of ``layout``.

    Args:
        tensor: a tensor with the layout's number of elements, in any shape.
        layout: the order.
        reference: the tensor is read once for each element of this stream; once if None.
        name: the name of the load.

    Returns:
        A stream [1, *trips] of the layout, or the reference's dimensions in place of the 1.

    Raises:
        ShapeError: the numbers of elements differ, or the layout's tiles do not form a matrix.
    """
    if math.prod(tensor.shape) != math.prod(layout.shape):
        refuse(
            f"loaded: a tensor {list(tensor.shape)} is read as {layout}: expected equal sizes",
            ShapeError,
        )
    matrix = matrix_of(layout)
    # Every index stays within its dimension, so no loop carries into the next row of the matrix.
    strides = strides_of(matrix.numbers, layout.trips)
    assert strides is not None
    view = tensor.viewed(matrix.shape)
    first = int(matrix.numbers[0])
    load = LinearOffChipLoad(view, matrix.tile, layout.trips, strides, first, name=name)
    tiles = load(reference)
    return tiles.laid_out(layout) if reference is None else tiles


@checked
def through_memory(stream: Stream, written: Layout, read: Layout) -> Stream:
    """Reorder the tiles of ``stream`` through a tensor in off-chip memory.

    Reads start after the acknowledgement of the last write. The tensor has the element type of the
    stream.

    Args:
        stream: a stream with the tiles of ``written``.
        written: the order of ``stream``.
        read: the order of the result, with the same number of elements; shape and tiles may differ.

    Returns:
        A stream [1, *trips] of ``read``.

    Raises:
        ShapeError: the layouts do not fit the stream, each other, or a matrix in memory.
    """
    value = stream.value
    if not isinstance(value, TileType):
        refuse(f"through_memory is given {stream}: expected a stream of tiles", ShapeError)
    stream = redimensioned(stream, (1, *(written.trips or (1,)))).laid_out(written)
    matrix = matrix_of(written)
    scratch = Scratch(matrix.shape, dtype=dtype_name(value.dtype))
    addresses = Metadata(matrix.numbers.reshape(stream.shape[1:]))()
    name = f"{stream.name} in memory"
    written_all = RandomOffChipStore(name, scratch, matrix.tile)(addresses, stream)
    signal = Accum(SignalAllRead(), rank=stream.rank)(written_all)
    return loaded(scratch, read, signal).laid_out(read)
