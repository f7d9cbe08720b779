"""Products of the data of two tiles, through BLAS."""

from __future__ import annotations

from typing import Final

import numpy as np

from fabric import Tile
from operators.functions.base import Array, wide

__all__ = ["product"]

_EXACT: Final = 2**53
"""Up to here float64 has every integer."""

_WHOLE: Final = "biu"
"""Kinds of numpy's types that hold whole numbers only."""


def product(a: Tile, b: Tile, *, transposed: bool = False) -> Array:
    """Return ``a @ b``, or ``a @ b.T`` where ``transposed``, as ``wide`` numbers.

    What is multiplied of ``a``, which is often read again and again, is made once (``Tile.kept``).
    """
    assert b.data is not None
    left = a.kept(_factor)
    right = b.data.T if transposed else b.data
    right = right.astype(left.dtype) if left.dtype == np.float64 else wide(right)
    result: Array = left @ right
    if left.dtype == np.float64 and a.dtype.kind in _WHOLE:
        result = result.astype(np.int64)
    if len(left) == a.rows:
        return result
    if not np.isfinite(result).all():
        # An infinity or a NaN of b is seen in every row, and makes a NaN of a row of zeros.
        assert a.data is not None
        return np.asarray(wide(a.data) @ right)
    padded = np.zeros((a.rows, right.shape[1]), result.dtype)
    padded[: len(left)] = result
    return padded


def _factor(tile: Tile) -> Array:
    """Return the data for products, without rows that are padding and zeros."""
    assert tile.data is not None
    valid = tile.valid_rows
    data = tile.data
    if 0 < valid < tile.rows and not wide(data[valid:]).any():
        data = data[:valid]
    bits = 8 * tile.dtype.itemsize
    if tile.dtype.kind in _WHOLE and bits <= 16 and tile.cols << 2 * bits <= _EXACT:
        # numpy multiplies integers without BLAS, ten times as slowly.
        return data.astype(np.float64)
    return wide(data)
