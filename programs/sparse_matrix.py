"""A sparse matrix times a vector or a matrix, with ragged or padded rows.

The matrix is the Laplacian of a graph: the row of a vertex has its number of neighbours and a -1
for each neighbour. Padded rows have the length of the longest row (the format ELLPACK), and padding
multiplies a row of zeros.

Limits of STeP's operators: an on-chip buffer is read along affine patterns only, so each entry
gathers its row of x from off-chip memory, in at least one request of 64 bytes. A load has tiles of
one size, so the entries of a row are read in pieces of ``piece`` entries in both formats. The last
piece of a row is filled up with zeros.

Run:      python -m fabric run programs/sparse_matrix.py -p graph=karate-club -p columns=8
Computes: y = a @ x
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from layers.graphs import GraphName, graph_named
from numpy.typing import NDArray

from fabric import Program
from fabric.extend import Bounds
from operators import (
    Accum,
    LinearOffChipStore,
    MatmulSum,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    Reshape,
    RetileRow,
)


def build(
    graph: GraphName = "karate-club",
    vertices: int = 64,
    columns: Annotated[int, Bounds(1)] = 1,
    rows: Literal["ragged", "padded"] = "ragged",
    piece: Annotated[int, Bounds(1)] = 4,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the product.

    Args:
        graph: the graph whose Laplacian is multiplied.
        vertices: the number of vertices of a random graph or a grid.
        columns: columns of x; 1 for a vector.
        rows: ``ragged``, or ``padded`` to the longest row.
        piece: entries of a row that are read and multiplied at a time.
        seed: for a random graph and for x.
    """
    lists, values = _laplacian(graph, vertices, seed)
    count = len(lists)
    x = np.zeros((count + 1, columns))  # padding multiplies the last row
    x[:count] = np.random.default_rng(seed).standard_normal((count, columns))
    longest = max(map(len, lists), default=0)
    lengths = [longest if rows == "padded" else len(row) for row in lists]
    places = [
        [*row, *[count] * (length - len(row))] for row, length in zip(lists, lengths, strict=True)
    ]
    pieces = np.array([-(-length // piece) for length in lengths], int)
    ends = pieces.cumsum()
    stored = np.zeros((max(int(pieces.sum()), 1), piece))
    for row, end, own in zip(values, ends, pieces, strict=True):
        stored[end - own : end].reshape(-1)[: len(row)] = row

    with Program("sparse-matrix", mode="functional") as program:
        gathered = RandomOffChipLoad(x, tile=(1, columns))(RaggedIntegers(places)())  # [1, R, n~]
        chunks, _ = Reshape(chunk=piece, pad=0.0)(gathered)  # [1, R, p~, piece] of 1 x columns
        packed = Accum(RetileRow())(chunks)  # [1, R, p~] of piece x columns
        numbers = [range(end - own, end) for end, own in zip(ends, pieces, strict=True)]
        entries = RandomOffChipLoad(stored, tile=(1, piece))(RaggedIntegers(numbers)())
        entries = entries.assume(*packed.shape)  # [1, R, p~] of 1 x piece
        y = Accum(MatmulSum())(entries, packed)  # [1, R] of 1 x columns
        LinearOffChipStore("y")(Promote(0)(y))

    def reference() -> NDArray[np.float64]:
        result = np.zeros((count, columns))
        for row, (near, entries) in enumerate(zip(lists, values, strict=True)):
            result[row] = np.asarray(entries) @ x[near]
        return result

    program.expect(y=reference)
    return program


def _laplacian(
    name: GraphName, vertices: int, seed: int
) -> tuple[list[list[int]], list[list[float]]]:
    """Return the columns and the values of the entries of every row."""
    graph = graph_named(name, vertices, seed)
    lists, values = [], []
    for vertex in graph:
        near = [other for other in graph[vertex] if other != vertex]
        row = {vertex: float(len(near)), **dict.fromkeys(near, -1.0)} if near else {}
        lists.append(sorted(row))
        values.append([row[column] for column in sorted(row)])
    return lists, values
