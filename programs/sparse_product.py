"""A sparse matrix times itself: rows joined with columns, rows added up on chip, or dense.

The matrix is cut into blocks, and blocks without an entry are not stored. ``inner`` joins each row
of blocks with each column by the coordinates of their blocks (Intersect), and loads the blocks at
common coordinates. This is the order ijk of the Sparse Abstract Machine. ``gustavson`` multiplies a
block in column k with row k of blocks, and sums the products on chip by column (Scatter). This is
the order ikj. ``dense`` reads all blocks.

Limits of STeP's operators: coordinates and references come from sources of control data, so their
bytes are not counted. Only ``gustavson`` loads columns, each by a separate request. A load moves
one block after the other, so small blocks wait for memory. The result has all blocks, since no
operator drops blocks without an entry.

Run:      python -m fabric run programs/sparse_product.py -p matrix=circuit -p order=gustavson
Computes: c = a @ a
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from layers.sparse_matrices import Blocks, MatrixName, blocks_of, matrix_named, stored

from fabric import ConfigurationError, Program, Stream
from fabric.extend import Bounds
from operators import (
    Accum,
    CacheReadAddresses,
    Expand,
    Intersect,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    MatmulSum,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    Reshape,
    Scatter,
    Tensor,
    Zip,
)


def build(
    matrix: MatrixName = "banded",
    rows: int = 64,
    block: Annotated[int, Bounds(1)] = 8,
    order: Literal["inner", "gustavson", "dense"] = "inner",
    banks: Annotated[int, Bounds(1)] = 1,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the product.

    Args:
        matrix: the kind of the matrix.
        rows: rows and columns of the matrix.
        block: rows and columns of a block; it divides ``rows``.
        order: the order of the loops over blocks.
        banks: memory banks of ``gustavson``, each of which updates one block at a time.
        seed: for the matrix.
    """
    if rows % block:
        raise ConfigurationError(
            f"block is {block}: expected a divisor of the number of rows, {rows}"
        )
    a = matrix_named(matrix, rows, seed)
    count = rows // block
    with Program("sparse-product", mode="functional") as program:
        if order == "inner":
            c = _inner(blocks_of(a, block), blocks_of(a.T, block), block)
        elif order == "gustavson":
            c = _gustavson(blocks_of(a, block), block, banks)
        else:
            whole = (block, block), (count, count, count)
            left = LinearOffChipLoad(stored(a), *whole, (count, 0, 1))()  # [1, R, R, R]
            right = LinearOffChipLoad(stored(a), *whole, (0, 1, count))()
            c = Accum(MatmulSum())(left, right)  # [1, R, R] of block x block
        LinearOffChipStore("c")(c)
    program.expect(c=lambda: a @ a)
    return program


def _inner(a: Blocks, turned: Blocks, block: int) -> Stream:
    """Join each row of blocks with each column; ``turned`` has the columns as rows."""
    count = len(a.held)
    left = _fibers([row for row in a.held for _ in range(count)], a.numbers, each=count)
    right = _fibers(turned.held * count, turned.numbers * count)
    _, at_left, at_right = Intersect()(left, right)  # [1, R * R, n~] of numbers of blocks
    size = block, block
    rows = RandomOffChipLoad(stored(a.values), size)(at_left)
    columns = RandomOffChipLoad(stored(_transposed(turned.values, block)), size)(at_right)
    sums = Accum(MatmulSum())(rows, columns)  # [1, R * R] of block x block
    return Reshape(count)(sums)[0]


def _fibers(held: list[list[int]], numbers: list[list[int]], each: int = 1) -> Stream:
    """Return the coordinates and numbers of blocks as tuples, [1, len(held), n~]."""
    coordinates = RaggedIntegers(held)()
    references = RaggedIntegers([row for row in numbers for _ in range(each)])()
    return Zip()(coordinates, references.assume(*coordinates.shape))


def _gustavson(a: Blocks, block: int, banks: int) -> Stream:
    """Multiply each block with the row of blocks at its column, and add the products by column."""
    count, size = len(a.held), (block, block)
    longest = max(1, *map(len, a.held))
    padded = np.zeros((count * longest, block, block))  # missing blocks are not read
    columns = np.zeros((count * longest, 1), np.int64)
    for row, (held, numbers) in enumerate(zip(a.held, a.numbers, strict=True)):
        first = row * longest
        padded[first : first + len(held)] = a.values.reshape(-1, block, block)[numbers]
        columns[first : first + len(held), 0] = held
    inner = RaggedIntegers(a.held)()  # [1, R, k~], the row that each block is multiplied with
    lengths = RaggedIntegers([[len(a.held[column]) for column in held] for held in a.held])()
    numbers_of = RaggedIntegers(a.numbers)().assume(*inner.shape)
    places = CacheReadAddresses(longest)(inner, lengths.assume(*inner.shape))  # [1, R, k~, j~]
    left = RandomOffChipLoad(stored(a.values), size)(numbers_of)  # [1, R, k~] of block x block
    right = RandomOffChipLoad(stored(padded.reshape(-1, block)), size)(places)
    products = Map(Matmul())(Expand()(Promote(0)(left), places), right)  # [1, R, k~, j~]
    where = RandomOffChipLoad(Tensor(columns.shape, columns, dtype="int64"), (1, 1))(places)
    return Scatter(count, rank=2, banks=banks, width=banks)(where, products)  # [1, R, R]


def _transposed(values: np.ndarray, block: int) -> np.ndarray:
    return values.reshape(-1, block, block).swapaxes(1, 2).reshape(-1, block)
