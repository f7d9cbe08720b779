"""Products of the data of two tiles, through BLAS.

Rows of zeros at the end of the first tile, which are padding, are not multiplied: the products and
sums of products here lack the rows of zeros that come of them, until ``padded`` adds them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fabric import Tile
from fabric.extend import block_format, limits
from operators.functions.arithmetic import is_whole, largest, plus, roomy, wide
from operators.functions.base import Array

__all__ = ["padded", "product", "summed"]

_EXACT: Final = 2**53
"""Up to here float64 has every integer."""


def product(a: Tile, b: Tile, *, transposed: bool = False) -> Array:
    """Return ``a @ b``, or ``a @ b.T`` where ``transposed``, as ``wide`` numbers.

    What is multiplied of ``a``, which is often read again and again, is made once (``Tile.kept``).
    """
    assert b.data is not None
    left = a.kept(_factor)
    right = b.data.T if transposed else b.data
    weights = b.dtype != a.dtype and left.dtype.kind == "f"
    exact = weights or left.dtype == np.float64
    if block_format(b.dtype) is not None:
        right = wide(right)
    right = right.astype(left.dtype, copy=False) if exact else wide(right)
    left, right = roomy(largest(left) * largest(right) * len(right), left, right)
    result: Array = left @ right
    if left.dtype == np.float64 and limits(a.dtype) is not None:
        result = result.astype(np.int64)
    if len(left) < a.rows and not (is_whole(result) or np.isfinite(result).all()):
        # An infinity or a NaN of b is seen in every row, and makes a NaN of a row of zeros.
        assert a.data is not None
        result = wide(a.data) @ right
    return result


def summed(total: Array, more: Array) -> Array:
    """Return the sum of products."""
    if len(total) == len(more):
        return plus(total, more)
    short, long = (total, more) if len(total) < len(more) else (more, total)
    return np.concatenate([plus(long[: len(short)], short), long[len(short) :]])


def padded(result: Array, rows: int) -> Array:
    """Return products with all their ``rows``."""
    if len(result) == rows:
        return result
    whole = np.zeros((rows, result.shape[1]), result.dtype)
    whole[: len(result)] = result
    return whole


def _factor(tile: Tile) -> Array:
    """Return the data for products, without rows that are padding and zeros."""
    assert tile.data is not None
    valid = tile.valid_rows
    data = tile.data
    if 0 < valid < tile.rows and not wide(data[valid:]).any():
        data = data[:valid]
    bits = 8 * tile.dtype.itemsize
    if limits(tile.dtype) is not None and bits <= 16 and tile.cols << 2 * bits <= _EXACT:
        # numpy multiplies integers without BLAS, ten times as slowly.
        return data.astype(np.float64)
    return wide(data)
