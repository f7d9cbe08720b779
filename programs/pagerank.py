"""PageRank: every vertex sends its rank along its edges, and arriving ranks are summed on chip.

An iteration divides each rank among the neighbours of its vertex, and adds up the parts that arrive
at a vertex (Scatter). Iterations are wired one after the other. ``dense`` multiplies the row of all
ranks by the matrix of all pairs of vertices. This matrix is loaded once and stays on chip.

Limits of STeP's operators: lists of neighbours come from sources of control data, so their bytes
are not counted. A loop would need a known number of iterations, too.

Run:      python -m fabric run programs/pagerank.py -p graph=karate-club -p iterations=4
Computes: y, the ranks after ``iterations`` with a damping of 0.85. The first ranks are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import networkx as nx
import numpy as np
from layers.graphs import GraphName, graph_named
from numpy.typing import NDArray

from fabric import ConfigurationError, Dim, Program, Stream, Tile, TileType
from fabric.extend import Bounds
from operators import (
    Accum,
    Expand,
    FlatMap,
    Flatten,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Mul,
    Promote,
    RaggedIntegers,
    RetileCol,
    Scatter,
    SplitCols,
    Tensor,
)
from operators.rtl import description

DAMPING = 0.85


@dataclass(frozen=True)
class Damped(Function):
    """Compute a damped rank from the sum of arriving ranks, in two operations."""

    operands: ClassVar = 1

    vertices: int

    def infer(self, ranks: TileType) -> TileType:
        return ranks

    def flops(self, ranks: Tile) -> Dim:
        return 2 * ranks.cols

    def apply(self, ranks: Tile) -> Tile:
        data = ranks.data
        if data is not None:
            data = (DAMPING * data + (1 - DAMPING) / self.vertices).astype(data.dtype)
        return Tile(ranks.rows, ranks.cols, ranks.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(1, description.whole)


def build(
    graph: GraphName = "karate-club",
    vertices: int = 64,
    iterations: Annotated[int, Bounds(1)] = 3,
    edges: Literal["sparse", "dense"] = "sparse",
    banks: Annotated[int, Bounds(1)] = 1,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the iterations.

    Args:
        graph: the graph with the ranked vertices. Each vertex needs a neighbour.
        vertices: the number of vertices of a random graph or a grid.
        iterations: the number of iterations.
        edges: ``sparse`` lists of neighbours, or a ``dense`` matrix of all pairs.
        banks: banks of the memory that adds up ranks, each of which updates one word at a time.
        seed: for a random graph.
    """
    network = graph_named(graph, vertices, seed)
    lists = [sorted(network[vertex]) for vertex in network]
    if not lists or not all(lists):
        raise ConfigurationError(f"graph is {graph}: expected neighbours of every vertex")
    count = len(lists)
    degrees = np.array([len(near) for near in lists])
    adjacency = nx.to_numpy_array(network, weight=None)

    with Program("pagerank", mode="functional", channel_depth=8) as program:
        first = _row(np.full(count, 1 / count))  # [1, 1, 1] of 1 x V
        if edges == "sparse":
            ranks = Flatten(0, 1)(FlatMap(SplitCols())(first))  # [1, V] of 1x1
            for _ in range(iterations):
                inverse = Flatten(0, 1)(FlatMap(SplitCols())(_row(1 / degrees)))
                near = RaggedIntegers(lists)()  # [1, V, n~]
                sent = Expand()(Promote(0)(Map(Mul())(ranks, inverse)), near)
                arrived = Scatter(count, rank=2, banks=banks, width=banks)(near, sent)
                ranks = Map(Damped(count))(Flatten(0, 1)(Promote(1)(arrived)))  # [1, V]
            result = Accum(RetileCol())(ranks)  # [1] of 1 x V
        else:
            matrix = adjacency / degrees[:, np.newaxis]
            whole = LinearOffChipLoad(_tensor(matrix), (count, count))()
            result = first
            for _ in range(iterations):
                result = Map(Damped(count))(Map(Matmul())(result, whole))
        LinearOffChipStore("y")(result)

    def reference() -> NDArray[np.float64]:
        ranks = np.full((1, count), 1 / count)
        for _ in range(iterations):
            ranks = DAMPING * (ranks / degrees) @ adjacency + (1 - DAMPING) / count
        return ranks

    program.expect(y=reference)
    return program


def _row(numbers: NDArray[np.float64]) -> Stream:
    return LinearOffChipLoad(_tensor(numbers[np.newaxis]), (1, len(numbers)))()


def _tensor(numbers: NDArray[np.float64]) -> Tensor:
    return Tensor(numbers.shape, numbers, dtype="float32")
