"""Random square sparse matrices of three kinds, which are frequent in the SuiteSparse collection.

``banded``: the five-point stencil of a square grid. ``power-law``: a few rows have most entries, as
in graphs of pages or people (a preferential attachment). ``circuit``: a full diagonal, a few
neighbours of each node, and some rows with entries for nearly all nodes, as in circuit simulators.
Values are drawn from a normal distribution. No matrix is from the collection itself.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError
from operators import Tensor

MatrixName: TypeAlias = Literal["banded", "power-law", "circuit"]

Matrix: TypeAlias = NDArray[np.float64]


def matrix_named(name: MatrixName, rows: int, seed: int) -> Matrix:
    """Return a matrix as a dense array."""
    if rows < 4:
        raise ConfigurationError(f"rows is {rows}: expected at least 4")
    random = np.random.default_rng(seed)
    if name == "banded":
        side = math.isqrt(rows)
        if side * side != rows:
            raise ConfigurationError(f"rows is {rows}: expected a square for banded")
        held = nx.to_numpy_array(nx.grid_2d_graph(side, side)) + np.eye(rows)
    elif name == "power-law":
        held = nx.to_numpy_array(nx.barabasi_albert_graph(rows, 2, seed))
    else:
        held = np.eye(rows)
        near = random.integers(1, 4, rows)
        ends = (np.arange(rows) + near) % rows
        held[np.arange(rows), ends] = held[ends, np.arange(rows)] = 1
        rails = random.choice(rows, max(1, rows // 64), replace=False)
        for rail in rails:
            joined = random.random(rows) < 0.8
            held[rail, joined] = held[joined, rail] = 1
    result: Matrix = np.where(held != 0, random.standard_normal((rows, rows)), 0.0)
    return result


class Blocks(NamedTuple):
    """A matrix cut into square blocks, without blocks that have no entry.

    Attributes:
        held: for each row of blocks, the columns of its blocks, ascending.
        numbers: for each row of blocks, the numbers of its blocks, ascending.
        values: the blocks, one below the other.
    """

    held: list[list[int]]
    numbers: list[list[int]]
    values: Matrix


def blocks_of(matrix: Matrix, size: int) -> Blocks:
    """Cut ``matrix`` into blocks of ``size``, which divides it."""
    count = len(matrix) // size
    cut = matrix.reshape(count, size, count, size).swapaxes(1, 2)
    has = (cut != 0).any(axis=(2, 3))
    held = [np.flatnonzero(row).tolist() for row in has]
    ends = np.cumsum([0, *map(len, held)]).tolist()
    numbers = [[*range(first, last)] for first, last in pairwise(ends)]
    values = cut[has].reshape(-1, size) if has.any() else np.zeros((size, size))
    return Blocks(held, numbers, values)


def stored(matrix: Matrix) -> Tensor:
    """Return a stored matrix in 32 bits.

    An entry may be a sum of numbers that cancel. In 16 bits, its error would be as large as the
    entry.
    """
    return Tensor(matrix.shape, matrix, dtype="float32")
