"""A layer of a graph neural network over lists of neighbours of any length, some empty.

Features of the neighbours are gathered one by one and packed to tiles. A tile is multiplied by
weights and activated, and the results of a vertex are added up. Both weights are read from off-chip
memory once, and from a buffer for every tile. With dynamic tiling, a tile has all neighbours of a
vertex. With static tiling, it has ``rows`` neighbours, and the last tile is padded. With padded
lists, every vertex has as many neighbours as the longest list. Added neighbours have features of 0.

Limits of STeP's operators: no operator adds up the rows of a tile, so messages are split into rows
again. An on-chip buffer is read along affine patterns only, so features that several vertices
gather are read from off-chip memory for each of them.

Run:      python -m fabric run programs/graph_layer.py -p graph=power-law -p vertices=64
Computes: y[v] = x[v] @ own + sum over the neighbours u of v of silu(x[u] @ others)
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from layers.graphs import GraphName, graph_named
from numpy.typing import NDArray

from fabric import Program, Stream
from fabric.extend import Bounds
from operators import (
    Accum,
    Add,
    Bufferize,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    Reshape,
    RetileRow,
    SiLU,
    SplitRows,
    Streamify,
    Sum,
)

FEATURES = 32  # columns of x
OUTPUT = 64  # columns of y


def build(
    graph: GraphName = "random",
    vertices: int = 10,
    tiling: Literal["dynamic", "static", "padded"] = "dynamic",
    rows: Annotated[int, Bounds(1)] = 4,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the layer.

    Args:
        graph: the graph whose vertices have features.
        vertices: the number of vertices of a random graph or a grid.
        tiling: ``dynamic``, ``static``, or ``padded``: static tiles of padded lists.
        rows: neighbours of a static tile.
        seed: for a random graph and all numbers.
    """
    network = graph_named(graph, vertices, seed)
    lists = [sorted(network[vertex]) for vertex in network]
    count = len(lists)
    random = np.random.default_rng(seed)
    x = np.zeros((count + 1, FEATURES))  # the last row pads lists
    x[:count] = random.standard_normal((count, FEATURES))
    own, others = random.standard_normal((2, FEATURES, OUTPUT)) / 8
    most = max(map(len, lists), default=0) if tiling == "padded" else 0
    places = [near + [count] * (most - len(near)) for near in lists]

    with Program("graph-layer", mode="functional") as program:
        gathered = RandomOffChipLoad(x, tile=(1, FEATURES))(RaggedIntegers(places)())
        if tiling == "dynamic":
            groups = Promote(1)(gathered)  # [1, V, 1, n~] of 1x32
        else:
            groups, _ = Reshape(chunk=rows, pad=0.0)(gathered)  # [1, V, t~, rows] of 1x32
        packed = Accum(RetileRow())(groups)  # [1, V, 1] of n~ x 32, or [1, V, t~] of rows x 32
        messages = Map(SiLU())(Map(Matmul())(packed, _on_chip(others, packed)))
        single_rows = FlatMap(SplitRows(valid_only=True))(messages)  # [1, V, n~] of 1x64
        summed = Accum(Sum())(single_rows)  # [1, V] of 1x64
        vertex = LinearOffChipLoad(x, (1, FEATURES), (count,), (1,))()  # [1, V] of 1x32
        y = Map(Add())(Map(Matmul())(vertex, _on_chip(own, vertex)), summed)  # [1, V] of 1x64
        LinearOffChipStore("y")(Promote(0)(y))

    def reference() -> NDArray[np.float64]:
        sums = np.zeros((count, OUTPUT))
        for row, near in enumerate(lists):
            inner = x[near] @ others
            sums[row] = (inner / (1 + np.exp(-inner))).sum(axis=0)
        result: NDArray[np.float64] = x[:count] @ own + sums
        return result

    program.expect(y=reference)
    return program


def _on_chip(weight: NDArray[np.float64], reference: Stream) -> Stream:
    """Read ``weight`` once and repeat it for every element of the reference, [1, ...]."""
    rows, cols = weight.shape
    buffers = Bufferize(2)(LinearOffChipLoad(weight, tile=(rows, cols))())  # [1] of [1, 1]
    return Flatten(0, 2)(Streamify()(buffers, reference))  # [1, ..., 1, 1] -> [1, ...]
