"""k-means (Lloyd): every point is added to the sum of its nearest centre, on chip or in a tile.

``scatter`` adds every point to the sum of its nearest centre by a Scatter. Each point has a 1 after
its coordinates, so that the sums also count points. ``dense`` makes a tile of every point, with a
row for each centre and zeros in all rows except one, and adds these tiles. Iterations are wired one
after the other.

Timing mode has no coordinates to compare. It takes the nearest centres that ``build`` computes.

Run:      python -m fabric run programs/k_means.py -p points=64 -p clusters=4
Computes: y, the centres after ``iterations``, each with a 1 behind it. The first points are the
          first centres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Dim, Program, Tile, TileType
from fabric.extend import ADDRESS_DTYPE, Bounds, number_in
from operators import (
    INTEGER,
    Accum,
    Expand,
    FlatMap,
    Flatten,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Metadata,
    Promote,
    RetileRow,
    Scatter,
    SplitRows,
    Sum,
    Tensor,
    integer,
)
from operators.rtl import description

Points = NDArray[np.float32]


@dataclass(frozen=True)
class Nearest(Function):
    """Find the centre nearest to a point, in three operations per coordinate of each centre.

    Attributes:
        given: the centre of each point, for timing mode.
    """

    mixed_types: ClassVar = True

    given: np.ndarray

    def infer(self, point: TileType, centres: TileType, number: TileType) -> TileType:
        return INTEGER

    def flops(self, point: Tile, centres: Tile, number: Tile) -> Dim:
        return 3 * centres.rows * centres.cols

    def apply(self, point: Tile, centres: Tile, number: Tile) -> Tile:
        if point.data is None or centres.data is None:
            return integer(int(self.given[number_in(number)]))
        return integer(int(nearest(point.data, centres.data)[0]))

    def hardware(self) -> description.Function:
        return description.Function(3, lambda *_: description.NUMBER, is_told=True)


@dataclass(frozen=True)
class Spread(Function):
    """Make a tile with a row for each centre: a point in the row of its centre, zeros elsewhere."""

    mixed_types: ClassVar = True
    fixed_cycles: ClassVar = 1

    clusters: int

    def infer(self, point: TileType, number: TileType) -> TileType:
        return TileType(self.clusters, point.cols, point.dtype)

    def apply(self, point: Tile, number: Tile) -> Tile:
        data = None
        if point.data is not None:
            data = np.zeros((self.clusters, point.cols), point.data.dtype)
            data[number_in(number)] = point.data[0]
        return Tile(self.clusters, point.cols, point.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(2, lambda x, _: (self.clusters, x.cols, self.clusters, x.cols))


@dataclass(frozen=True)
class Centre(Function):
    """Compute the mean of a centre's points, in one operation per column.

    A centre without points stays where it is.
    """

    operands: ClassVar = 2

    def infer(self, total: TileType, before: TileType) -> TileType:
        return total

    def flops(self, total: Tile, before: Tile) -> Dim:
        return total.cols

    def apply(self, total: Tile, before: Tile) -> Tile:
        data = before.data
        if total.data is not None and total.data[0, -1]:
            data = total.data / total.data[0, -1]
        return Tile(total.rows, total.cols, total.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(2, description.whole)


def build(
    points: int = 64,
    clusters: Annotated[int, Bounds(1)] = 4,
    dimensions: Annotated[int, Bounds(1)] = 7,
    iterations: Annotated[int, Bounds(1)] = 2,
    update: Literal["scatter", "dense"] = "scatter",
    banks: Annotated[int, Bounds(1)] = 1,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the iterations.

    Args:
        points: the number of random points.
        clusters: the number of centres, at most the number of points.
        dimensions: coordinates of a point.
        iterations: the number of iterations.
        update: ``scatter`` adds points on chip, ``dense`` adds tiles with a row for each centre.
        banks: memory banks of ``scatter``, each of which updates one word at a time.
        seed: for the points.
    """
    if points < clusters:
        raise ConfigurationError(f"points is {points}: expected at least {clusters}")
    random = np.random.default_rng(seed)
    middles = 4 * random.standard_normal((clusters, dimensions))
    coordinates = middles[random.integers(0, clusters, points)]
    coordinates = coordinates + random.standard_normal((points, dimensions))
    x = np.concatenate([coordinates, np.ones((points, 1))], axis=1).astype(np.float32)
    steps = list(_steps(x, clusters, iterations))

    with Program("k-means", mode="functional", channel_depth=8) as program:
        first = LinearOffChipLoad(_tensor(x[:clusters]), (clusters, dimensions + 1))()
        centres = Flatten(0, 1)(first)  # [1, 1] of K x (D + 1)
        for chosen, _ in steps:
            rows = LinearOffChipLoad(_tensor(x), (1, dimensions + 1))()
            point = Flatten(0, 1)(rows)  # [1, P] of 1 x (D + 1)
            number = Metadata(np.arange(points))()
            near = Map(Nearest(chosen))(point, Expand(1)(centres, point), number)  # [1, P]
            if update == "scatter":
                sums = Scatter(clusters, banks=banks, width=banks)(near, point)  # [1, K]
            else:
                total = Accum(Sum())(Map(Spread(clusters))(point, near))  # [1] of K x (D + 1)
                sums = FlatMap(SplitRows())(Promote(0)(total))  # [1, K] of 1 x (D + 1)
            after = Map(Centre())(sums, FlatMap(SplitRows())(centres))
            centres = Promote(0)(Accum(RetileRow())(after))
        LinearOffChipStore("y")(centres)
    program.expect(y=lambda: steps[-1][1])
    return program


def nearest(points: Points, centres: Points) -> NDArray[np.int64]:
    """Return the number of the centre nearest to each point."""
    differences = points[:, np.newaxis].astype(np.float64) - centres
    numbers: NDArray[np.int64] = (differences**2).sum(axis=2).argmin(axis=1)
    return numbers


def _steps(x: Points, clusters: int, iterations: int) -> list[tuple[NDArray[np.int64], Points]]:
    """Return, for each iteration, the centre of each point, and the new centres."""
    centres, steps = x[:clusters], []
    for _ in range(iterations):
        chosen = nearest(x, centres)
        means = [x[chosen == each].mean(axis=0) for each in range(clusters) if each in chosen]
        centres = centres.copy()
        centres[np.unique(chosen)] = means
        steps.append((chosen.astype(ADDRESS_DTYPE), centres))
    return steps


def _tensor(numbers: Points) -> Tensor:
    return Tensor(numbers.shape, numbers, dtype="float32")
