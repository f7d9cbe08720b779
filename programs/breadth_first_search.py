"""Breadth-first search by frontiers in a loop: one lap of the loop computes one level.

The loop carries one tile with the level of every vertex, 0 for vertices not yet reached.
``Initial`` puts the first tile into the loop, with the level of ``start``. The vertices of the
latest level are the frontier. Their lists of neighbours are read, and every neighbour not reached
before gets the next level. With padded lists, the frontier has an entry for every vertex, and all
lists are as long as the longest one, as static shapes require. Unused entries name no vertex.

Limits of STeP's operators: the length of the loop's stream must be known, so the levels are counted
while the program is wired. Loads never see the results of stores, so levels travel in the loop
instead of staying in memory. No operator finds the vertices of a level or marks their neighbours,
so the program defines functions for both. Numbers that data decide are streamed one by one, so
every neighbour takes a request of 64 bytes.

Run:      python -m fabric run programs/breadth_first_search.py -p graph=les-miserables -p start=3
Computes: y[v] = 1 + the fewest edges from start to v, 0 for unreachable vertices
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import networkx as nx
import numpy as np
from layers.graphs import GraphName, graph_named
from numpy.typing import NDArray

from fabric import (
    ConfigurationError,
    Dim,
    Feedback,
    Initial,
    Program,
    Stream,
    StreamType,
    Tile,
    TileType,
)
from fabric.extend import ADDRESS_DTYPE, Bounds, Element, Wiring, number_in
from operators import (
    Accum,
    CacheReadAddresses,
    FlatMap,
    Flatten,
    Function,
    LinearOffChipStore,
    Map,
    Partition,
    Promote,
    RandomOffChipLoad,
    Reassemble,
    Reduction,
    Selectors,
    Split,
)
from operators.rtl import description

Levels = NDArray[np.uint64]


@dataclass(frozen=True)
class Latest(Split):
    """Emit the columns of a tile that have its largest number.

    Attributes:
        padded: always emit one number per column. Missing ones are the number of columns.
    """

    padded: bool

    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        emitted = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
        return (count * tile.cols if self.padded else emitted,), TileType(1, 1, tile.dtype)

    def apply(self, tile: Tile) -> list[Element]:
        levels = _numbers(tile)
        columns = np.flatnonzero(levels == levels.max()).tolist()
        if self.padded:
            columns += [tile.cols] * (tile.cols - len(columns))
        return [(_tile(np.array([column], ADDRESS_DTYPE)), 0) for column in columns]

    def hardware(self) -> description.Parts:
        return description.Parts()


@dataclass(frozen=True)
class Marked(Reduction):
    """Make a tile with 1 in the columns that numbers name, and 0 elsewhere. A number takes a cycle.

    Attributes:
        columns: columns of the tile. The number ``columns`` marks nothing.
    """

    operands: ClassVar = 1
    fixed_cycles: ClassVar = 1

    columns: int

    def infer(self, group: Dim, number: TileType) -> TileType:
        return TileType(1, self.columns, ADDRESS_DTYPE)

    def start(self, result: TileType, functional: bool) -> Levels:
        return np.zeros(self.columns, ADDRESS_DTYPE)

    def update(self, state: Levels, number: Tile) -> Levels:
        named = np.arange(self.columns) == number_in(number)
        return np.where(named, ADDRESS_DTYPE.type(1), state)

    def finish(self, state: Levels, result: TileType, functional: bool) -> Tile:
        return _tile(state)

    def hardware(self) -> description.Accumulation:
        size = 1, self.columns, 1, self.columns
        return description.Accumulation(1, lambda _: size, lambda *_: size, lambda _: 1)


@dataclass(frozen=True)
class NextLevel(Function):
    """Give marked vertices without a level the next level, in two operations per vertex."""

    operands: ClassVar = 2

    def infer(self, levels: TileType, marks: TileType) -> TileType:
        return levels

    def flops(self, levels: Tile, marks: Tile) -> Dim:
        return 2 * levels.cols

    def apply(self, levels: Tile, marks: Tile) -> Tile:
        known, marked = _numbers(levels), _numbers(marks) > 0
        return _tile(np.where((known == 0) & marked, known.max() + 1, known))

    def hardware(self) -> description.Function:
        return description.Function(2, description.whole)


def build(
    graph: GraphName = "karate-club",
    vertices: int = 64,
    start: int = 0,
    lists: Literal["ragged", "padded"] = "ragged",
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the search.

    Args:
        graph: the searched graph.
        vertices: the number of vertices of a random graph or a grid.
        start: the vertex at which the search begins.
        lists: the lists of frontiers and neighbours are ``ragged``, or ``padded`` to the longest.
        seed: for a random graph.
    """
    network = graph_named(graph, vertices, seed)
    count = len(network)
    if not count:
        raise ConfigurationError(f"vertices is {vertices}: expected at least 1")
    if not 0 <= start < count:
        raise ConfigurationError(f"start is {start}: expected 0 to {count - 1}")
    distances = nx.single_source_shortest_path_length(network, start)
    laps = max(1, *distances.values())
    degrees = np.array([*(degree for _, degree in network.degree), 0], ADDRESS_DTYPE)
    longest = max(1, int(degrees.max()))
    if lists == "padded":
        degrees[:] = longest
    neighbours = np.full((count + 1, longest), count, ADDRESS_DTYPE)
    for row, vertex in zip(neighbours, network, strict=False):
        row[: len(network[vertex])] = sorted(network[vertex])
    first = np.zeros((1, count), int)
    first[0, start] = 1

    with Program("breadth-first-search", mode="functional") as program:
        again = Feedback(StreamType((laps - 1,), TileType(1, count, ADDRESS_DTYPE)))
        levels = Initial(first)(again)  # [L] of 1 x V
        frontier = FlatMap(Latest(padded=lists == "padded"))(Promote(0)(levels))  # [L, n~] of 1x1
        lengths = RandomOffChipLoad(degrees[:, np.newaxis], tile=(1, 1))(frontier)
        places = CacheReadAddresses(longest)(frontier, lengths)  # [L, n~, m~] of 1x1
        near = RandomOffChipLoad(neighbours.reshape(-1, 1), tile=(1, 1))(places)
        marks = Accum(Marked(count), rank=2)(near)  # [L] of 1 x V
        after = Map(NextLevel())(levels, marks)
        going, last = Partition(2)(after, _which(np.arange(laps) == laps - 1, 2))
        again.connect(Flatten(0, 1)(Reassemble()([going], _which(np.zeros(laps - 1), 1))))
        LinearOffChipStore("y")(Promote(0)(last))

    reached = np.zeros((1, count))
    for vertex, distance in distances.items():
        reached[0, vertex] = 1 + distance
    program.expect(y=lambda: reached)
    return program


def _which(choice: NDArray[np.generic], width: int) -> Stream:
    return Flatten(0, 1)(Selectors(choice.astype(int)[:, np.newaxis], width)())


def _numbers(tile: Tile) -> Levels:
    """Return the row of a tile of integers, which have data in both modes."""
    assert tile.data is not None
    row: Levels = tile.data[0]
    return row


def _tile(numbers: Levels) -> Tile:
    return Tile(1, len(numbers), ADDRESS_DTYPE, numbers[np.newaxis].astype(ADDRESS_DTYPE))
