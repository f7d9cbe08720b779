"""The square of a matrix that is read from off-chip memory once and from a buffer twice.

All tiles of x are collected in one buffer. Two operators read the buffer along affine patterns, one
by rows and one by columns of tiles. These are the operands of the blocked multiplication. Without
the buffer, each tile would be loaded from off-chip memory 2 * n times.

Run:      python -m fabric run programs/buffer_twice.py -p size=64 -p tile=16
Computes: y = x @ x
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Program
from fabric.extend import Bounds
from operators import Accum, Bufferize, LinearOffChipLoad, LinearOffChipStore, MatmulSum, Streamify


def build(
    size: Annotated[int, Bounds(1)] = 64, tile: int = 16, seed: Annotated[int, Bounds(0)] = 0
) -> Program:
    """Wire the product for a random matrix.

    Args:
        size: rows and columns of x.
        tile: rows and columns of a tile; it divides ``size``.
        seed: for the random numbers.
    """
    if tile < 1 or size % tile:
        raise ConfigurationError(f"tile is {tile}: expected a divisor of size={size}")
    x: NDArray[np.float64] = np.random.default_rng(seed).standard_normal((size, size))
    n = size // tile

    with Program("buffer-twice", mode="functional") as program:
        tiles = LinearOffChipLoad(x, tile=(tile, tile))()  # [1, n, n] of tile x tile
        buffers = Bufferize(2)(tiles)  # [1] of buffers [n, n]
        # [1, n, n, n], which is i, j, k: tile (i, k) and tile (k, j)
        left = Streamify(shape=(n, n, n), strides=(n, 0, 1))(buffers)
        right = Streamify(shape=(n, n, n), strides=(0, 1, n))(buffers)
        LinearOffChipStore("y")(Accum(MatmulSum())(left, right))  # [1, n, n] of tile x tile

    program.expect(y=lambda: x @ x)
    return program
