"""Tiles as their reader wants them: the elements of what is there in other places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import Stream, TileType
from operators.functions.steps import Chain, Placed
from operators.map import Map

__all__ = ["placed", "rearranged"]


def rearranged(stream: Stream, places: NDArray[np.int64], *, broadcasts: tuple[int, ...]) -> Stream:
    """Return tiles whose elements are those of ``stream`` at ``places``, [rows, cols].

    Args:
        stream: of tiles.
        places: which element of a tile, in row-major order, each element of the result is.
        broadcasts: a row (0) or a column (1) that is repeated may stay single.
    """
    tile = stream.value
    assert isinstance(tile, TileType)
    step = placed(0, tile, places, broadcasts=broadcasts)
    return stream if step is None else Map(Chain(1, (step,)))(stream)


def placed(
    value: int, tile: TileType, places: NDArray[np.int64], *, broadcasts: tuple[int, ...]
) -> Placed | None:
    """Return the step that puts the elements of a tile in their places; None where they are.

    Args:
        value: the number of the tile in a chain.
        tile: whose elements they are.
        places: as in ``rearranged``.
        broadcasts: the same.
    """
    for axis in broadcasts:
        places = _single(places, axis)
    rows, cols = places.shape
    flat = places.reshape(-1)
    in_order = np.array_equal(flat, np.arange(tile.rows * tile.cols))
    if in_order and (rows, cols) == (tile.rows, tile.cols):
        return None
    at = None if in_order else tuple(flat.tolist())
    return Placed((value,), tile.dtype, rows, cols, at)


def _single(places: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """Return one row (axis 0) or one column (axis 1) where all are alike."""
    first = places.take([0], axis)
    return first if (places == first).all() else places
