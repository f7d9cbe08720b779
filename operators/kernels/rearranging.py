"""Tiles as their reader wants them: the elements of what is there in other places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import Stream, TileType
from operators.functions.rearrange import Gather, ReshapeTile, Transpose
from operators.map import Map

__all__ = ["rearranged", "single"]


def rearranged(stream: Stream, places: NDArray[np.int64], *, broadcasts: bool) -> Stream:
    """Return tiles whose elements are those of ``stream`` at ``places``, [rows, cols].

    Args:
        stream: of tiles.
        places: which element of a tile, in row-major order, each element of the result is.
        broadcasts: a single row or column that is repeated may stay single.
    """
    if broadcasts:
        places = single(places)
    tile = stream.value
    assert isinstance(tile, TileType)
    before = np.arange(tile.rows * tile.cols).reshape(tile.rows, tile.cols)
    if np.array_equal(places, before):
        return stream
    if np.array_equal(places, before.T):
        return Map(Transpose())(stream)
    rows, cols = places.shape
    if np.array_equal(places.reshape(-1), before.reshape(-1)):
        return Map(ReshapeTile(rows, cols))(stream)
    return Map(Gather(rows, cols, tuple(places.reshape(-1).tolist())))(stream)


def single(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one row where all rows are alike, and one column where all columns are."""
    if (places == places[:1]).all():
        places = places[:1]
    return places[:, :1] if (places == places[:, :1]).all() else places
