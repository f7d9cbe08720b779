"""A layer of a graph neural network over lists of neighbours of any length, some of them empty.

Features of the neighbours are gathered one by one and added up; both weights are read from
off-chip memory once and streamed from a buffer for every vertex.

Run:      python -m fabric run programs/graph_layer.py -p vertices=10
Computes: y[v] = silu(x[v] @ own + (sum over the neighbours u of v of x[u]) @ others)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Program, Stream
from operators import (
    Accum,
    Add,
    Bufferize,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    SiLU,
    Streamify,
    Sum,
)

FEATURES = 32  # columns of x
OUTPUT = 64  # columns of y


def build(vertices: int = 10, most_neighbours: int = 6, seed: int = 0) -> Program:
    """Wire the layer for a random graph.

    Args:
        vertices: every fourth has no neighbours.
        most_neighbours: of one vertex.
        seed: of the graph and all numbers.
    """
    for name, value, least in (
        ("vertices", vertices, 0),
        ("most_neighbours", most_neighbours, 1),
        ("seed", seed, 0),
    ):
        if value < least:
            raise ConfigurationError(f"{name} is {value}: expected at least {least}")
    random = np.random.default_rng(seed)
    counts = random.integers(1, most_neighbours + 1, vertices)
    counts[::4] = 0
    neighbours = [random.integers(0, vertices, count).tolist() for count in counts]
    x = random.standard_normal((vertices, FEATURES))
    own, others = random.standard_normal((2, FEATURES, OUTPUT)) / 8

    with Program("graph-layer", mode="functional") as program:
        lists = RaggedIntegers(neighbours)()  # [1, V, n~] of 1x1
        gathered = RandomOffChipLoad(x, tile=(1, FEATURES))(lists)  # [1, V, n~] of 1x32
        summed = Accum(Sum())(gathered)  # [1, V] of 1x32
        vertex = Flatten(0, 1)(LinearOffChipLoad(x, tile=(1, FEATURES))())  # [1, V] of 1x32
        parts = [
            Map(Matmul())(each, _on_chip(weight, each))  # [1, V] of 1x64
            for weight, each in ((own, vertex), (others, summed))
        ]
        LinearOffChipStore("y")(Promote(0)(Map(SiLU())(Map(Add())(*parts))))

    def reference() -> NDArray[np.float64]:
        sums = np.array([x[each].sum(axis=0) for each in neighbours]).reshape(x.shape)
        inner = x @ own + sums @ others
        result: NDArray[np.float64] = inner / (1 + np.exp(-inner))
        return result

    program.expect(y=reference)
    return program


def _on_chip(weight: NDArray[np.float64], reference: Stream) -> Stream:
    """Read ``weight`` once and hand it on for every element of the reference, [1, V]."""
    rows, cols = weight.shape
    buffers = Bufferize(2)(LinearOffChipLoad(weight, tile=(rows, cols))())  # [1] of [1, 1]
    return Flatten(0, 2)(Streamify()(buffers, reference))  # [1, V, 1, 1] -> [1, V]
