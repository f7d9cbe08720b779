"""Streams of one order written to off-chip memory, and read from there in another one.

Tensors are stored row-major, whatever their shape: a reshape between writing and reading is free.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric import Layout, ShapeError, Stream, TileType
from fabric.extend import checked, dtype_name, refuse, strides_of
from operators.accum import Accum
from operators.functions.reduction import SignalAllRead
from operators.linear_off_chip_load import LinearOffChipLoad
from operators.metadata import Metadata
from operators.random_off_chip_store import RandomOffChipStore
from operators.streams.dimensions import redimensioned
from operators.tiles.scratch import Scratch
from operators.tiles.tensor import Tensor

__all__ = ["Matrix", "loaded", "matrix_of", "through_memory"]


class Matrix(NamedTuple):
    """A tensor in memory, seen as a matrix of which the tiles of a layout are tiles.

    Attributes:
        shape: rows and columns, in elements.
        tile: the same of a tile.
        numbers: of the layout's tiles, one after the other, counted row-major in the matrix.
    """

    shape: tuple[int, int]
    tile: tuple[int, int]
    numbers: NDArray[np.int64]


@checked
def matrix_of(layout: Layout) -> Matrix:
    """Return the matrix in memory whose tiles are those of ``layout``, of a tensor row by row.

    Args:
        layout: whose tiles each have rows of equal distance in memory.

    Raises:
        ShapeError: they have not, or do not begin at multiples of their size.
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
            f"the tiles of ({layout}) are none of a matrix in memory: expected rows of equal "
            "distance that begin at multiples of their size",
            ShapeError,
        )
    numbers = down // rows * (pitch // cols) + right // cols
    return Matrix((elements // pitch, pitch), (rows, cols), numbers)


def _pitch(layout: Layout, strides: list[int]) -> int | None:
    """Return how far apart the rows of a tile are in memory; None where that differs."""
    if layout.rows == 1:
        last = math.prod(layout.shape[-1:])
        return layout.cols if last % layout.cols else last
    dims = [dim for dim, size in enumerate(layout.tile[:-1]) if size > 1]
    for outer, inner in pairwise(dims):
        if strides[outer] != layout.tile[inner] * strides[inner]:
            return None
    return strides[dims[-1]]


@checked
def loaded(
    tensor: Tensor, layout: Layout, reference: Stream | None = None, *, name: str | None = None
) -> Stream:
    """Return the tiles of a tensor in off-chip memory in the order of ``layout``.

    Args:
        tensor: with as many elements as the tensor of the layout; its own shape does not matter.
        layout: the order.
        reference: each of its elements has the tensor read once; once in all where None.
        name: of the load.

    Returns:
        A stream [1, *trips] of the layout, or the reference's dimensions in place of the 1.

    Raises:
        ShapeError: the tensor is of another size, or the layout's tiles are none of a matrix.
    """
    if math.prod(tensor.shape) != math.prod(layout.shape):
        refuse(
            f"loaded: a tensor {list(tensor.shape)} is read as {layout}: expected as many elements",
            ShapeError,
        )
    matrix = matrix_of(layout)
    # No loop carries from one row of the matrix to the next: each dimension has its end.
    strides = strides_of(matrix.numbers, layout.trips)
    assert strides is not None
    view = tensor.viewed(matrix.shape)
    first = int(matrix.numbers[0])
    load = LinearOffChipLoad(view, matrix.tile, layout.trips, strides, first, name=name)
    tiles = load(reference)
    return tiles.laid_out(layout) if reference is None else tiles


@checked
def through_memory(stream: Stream, written: Layout, read: Layout) -> Stream:
    """Return what ``stream`` carries in another order, through a tensor in off-chip memory.

    Every tile is written, and what is read waits for the last acknowledgement. The element type is
    the stream's.

    Args:
        stream: of tiles, of as many as ``written`` has.
        written: its order.
        read: the order of the result, over as many elements; shape and tiles may be others.

    Returns:
        A stream [1, *trips] of ``read``.

    Raises:
        ShapeError: the layouts do not fit the stream, each other, or any matrix in memory.
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
