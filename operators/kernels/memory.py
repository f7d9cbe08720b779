"""Temporary: until through_memory lands."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric import Layout, ShapeError, Stream
from operators.linear_off_chip_load import LinearOffChipLoad
from operators.metadata import Metadata
from operators.random_off_chip_load import RandomOffChipLoad
from operators.streams.dimensions import redimensioned
from operators.tiles.tensor import Tensor


class Matrix(NamedTuple):
    rows: int
    pitch: int
    numbers: NDArray[np.int64]


def matrix_of(layout: Layout) -> Matrix:
    shape, tile = layout.shape, layout.tile
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    cols = tile[-1] if tile else 1
    pitch = math.prod(shape[-1:])
    expected = cols
    for axis in reversed(range(len(shape) - 1)):
        if tile[axis] == 1:
            continue
        pitch = strides[axis]
        break
    del expected
    inner = [axis for axis in range(len(shape) - 1) if tile[axis] > 1]
    for outer, one in itertools.pairwise(inner):
        if strides[outer] != strides[one] * tile[one] or tile[one] != shape[one]:
            raise ShapeError(f"{layout}: no rectangle")
    size = math.prod(shape)
    starts = layout.offsets() @ np.array(strides, np.int64) if shape else np.zeros(1, np.int64)
    rows = layout.rows
    across = pitch // cols
    down, left = starts // pitch, starts % pitch
    if pitch % cols or (down % rows).any() or (left % cols).any():
        raise ShapeError(f"{layout}: no rectangle")
    return Matrix(size // pitch, pitch, down // rows * across + left // cols)


def read_from_memory(name: str, tensor: Tensor, layout: Layout) -> Stream:
    found = matrix_of(layout)
    if tensor.has_data:
        seen = Tensor(
            (found.rows, found.pitch),
            lambda: tensor.array.reshape(found.rows, found.pitch),
            dtype=None if tensor.dtype is None else tensor.dtype.name,
        )
    else:
        seen = Tensor((found.rows, found.pitch), dtype=tensor.dtype.name if tensor.dtype else None)
    tile = layout.rows, layout.cols
    if (found.numbers == np.arange(len(found.numbers))).all():
        stream = LinearOffChipLoad(seen, tile, (len(found.numbers),), (1,), name=name)()
    else:
        stream = RandomOffChipLoad(seen, tile, name=name)(Metadata(found.numbers)())
    return redimensioned(stream, (1, *layout.trips))
