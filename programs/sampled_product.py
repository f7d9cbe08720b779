"""A product of dense matrices, computed where a sparse matrix has entries (SDDMM), or as a whole.

The sparse matrix is cut into blocks, and blocks without an entry are not stored. For each stored
block, the matching rows of both factors are read and multiplied. Rows of a are read once for all
blocks of their row. ``dense`` multiplies all rows of a with all rows of b, then the result element
by element with the sparse matrix, whose zeros are stored in this case.

Limits of STeP's operators: coordinates come from sources of control data, so their bytes are not
counted.

Run:      python -m fabric run programs/sampled_product.py -p matrix=circuit -p inner=32
Computes: c = s * (a @ b.T). ``sampled`` has only the stored blocks, one below the other.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from layers.sparse_matrices import MatrixName, blocks_of, matrix_named, stored
from numpy.typing import NDArray

from fabric import ConfigurationError, Program
from fabric.extend import Bounds
from operators import (
    Expand,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Mul,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
)


def build(
    matrix: MatrixName = "banded",
    rows: int = 64,
    inner: Annotated[int, Bounds(1)] = 32,
    block: Annotated[int, Bounds(1)] = 8,
    order: Literal["sampled", "dense"] = "sampled",
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the product.

    Args:
        matrix: the kind of the sparse matrix.
        rows: rows and columns of the sparse matrix.
        inner: columns of both factors.
        block: rows and columns of a block; it divides ``rows``.
        order: ``sampled`` multiplies at the stored blocks only, ``dense`` everywhere.
        seed: for all numbers.
    """
    if rows % block:
        raise ConfigurationError(
            f"block is {block}: expected a divisor of the number of rows, {rows}"
        )
    s = matrix_named(matrix, rows, seed)
    a, b = np.random.default_rng(seed + 1).standard_normal((2, rows, inner))
    count, tile, size = rows // block, (block, inner), (block, block)
    blocks = blocks_of(s, block)

    with Program("sampled-product", mode="functional") as program:
        if order == "sampled":
            columns = RaggedIntegers(blocks.held)()  # [1, R, n~]
            left = Flatten(0, 1)(LinearOffChipLoad(stored(a), tile)())  # [1, R] of block x inner
            lefts = Expand()(Promote(0)(left), columns)
            rights = RandomOffChipLoad(stored(b), tile)(columns)  # [1, R, n~] of block x inner
            numbers = RaggedIntegers(blocks.numbers)().assume(*columns.shape)
            sampled = RandomOffChipLoad(stored(blocks.values), size)(numbers)
        else:
            lefts = LinearOffChipLoad(stored(a), tile, (count, count), (1, 0))()  # [1, R, R]
            rights = LinearOffChipLoad(stored(b), tile, (count, count), (0, 1))()
            sampled = LinearOffChipLoad(stored(s), size)()
        products = Map(Mul())(Map(Matmul(transposed=True))(lefts, rights), sampled)
        if order == "sampled":  # blocks one below the other
            products = Promote(0)(Flatten(0, 1)(products))
        LinearOffChipStore("c")(products)

    def reference() -> NDArray[np.float64]:
        result: NDArray[np.float64] = s * (a @ b.T)
        if order == "sampled":
            cut, entries = (
                matrix.reshape(count, block, count, block).swapaxes(1, 2) for matrix in (result, s)
            )
            result = cut[(entries != 0).any(axis=(2, 3))].reshape(-1, block)
        return result

    program.expect(c=reference)
    return program
