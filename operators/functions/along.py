"""Steps along some dimensions of tiles that hold these whole: the numbers of all others apart.

What is done along them is an ``OnAxes``: a running sum, a sort, a pooling, a choice of places.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim
from operators.functions.base import Array
from operators.functions.steps import Shape, Step

__all__ = ["Along", "OnAxes", "Taken", "Tap", "Weighed"]


class OnAxes:
    """What is done along dimensions; arrays are given with these last, one behind the other."""

    moves: ClassVar[bool] = False
    """Whether it only puts numbers into other places, and rounds none."""

    @abstractmethod
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        """Return the operations that it takes.

        Args:
            apart: of how many such blocks of numbers a tile is made.
            *sizes: of a block, of each operand.
        """

    @abstractmethod
    def compute(self, *arrays: Array) -> Array:
        """Return the numbers of the result, [*others, *sizes of the result]."""


@dataclass(frozen=True)
class Along(Step):
    """Something that is done along dimensions of a tile.

    Attributes:
        function: what it is.
        grids: for each operand, the dimensions of its tile, the last one in its columns; they
            differ in ``axes`` only.
        axes: the dimensions, in ascending order; whole in every tile.
        sizes: of the result along them.
    """

    function: OnAxes
    grids: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    @override
    def rounds(self) -> bool:
        return not self.function.moves

    @property
    @override
    def called(self) -> str:
        return type(self.function).__name__

    @override
    def shape(self, *shapes: Shape) -> Shape:
        grid = self._result()
        return math.prod(grid[:-1]), grid[-1]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        apart = math.prod(self.grids[0]) // math.prod(self._sizes(self.grids[0]))
        return self.function.flops(apart, *map(self._sizes, self.grids))

    @override
    def compute(self, *values: Array) -> Array:
        rank = len(self.grids[0])
        order = [*(dim for dim in range(rank) if dim not in self.axes), *self.axes]
        found = self.function.compute(
            *(
                each.reshape(grid).transpose(order)
                for each, grid in zip(values, self.grids, strict=True)
            )
        )
        grid = self._result()
        return found.transpose(np.argsort(order)).reshape(math.prod(grid[:-1]), grid[-1])

    def _sizes(self, grid: Sequence[int]) -> tuple[int, ...]:
        return tuple(grid[axis] for axis in self.axes)

    def _result(self) -> tuple[int, ...]:
        grid = list(self.grids[0])
        for axis, size in zip(self.axes, self.sizes, strict=True):
            grid[axis] = size
        return tuple(grid)


@dataclass(frozen=True)
class Taken(OnAxes):
    """The numbers at known places of one dimension; no operations.

    Attributes:
        places: for each number of the result, which one it is.
    """

    moves: ClassVar[bool] = True

    places: tuple[int, ...]

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        return 0

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        return x[..., list(self.places)]


@dataclass(frozen=True)
class Tap:
    """The numbers along one dimension that one number of a result is a weighed sum of.

    Attributes:
        places: of the numbers.
        weights: what each is multiplied with.
    """

    places: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Weighed(OnAxes):
    """Weighed sums along one dimension after the other: averages, and what lies between numbers.

    For each number of each dimension's result a product for every number that it is made of, and
    a sum for all but the first.

    Attributes:
        taps: for each dimension, of each number of the result.
    """

    taps: tuple[tuple[Tap, ...], ...]

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        found, left = 0, list(sizes[0])
        for axis, taps in enumerate(self.taps):
            left[axis] = 1
            others = apart * math.prod(left)
            found += others * sum(max(0, 2 * len(tap.places) - 1) for tap in taps)
            left[axis] = len(taps)
        return found

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        for axis, taps in enumerate(self.taps):
            moved = np.moveaxis(x, axis - len(self.taps), -1)
            sums = [
                (moved[..., list(tap.places)] * np.asarray(tap.weights, x.dtype)).sum(axis=-1)
                for tap in taps
            ]
            x = np.moveaxis(np.stack(sums, axis=-1), -1, axis - len(self.taps))
        return x
