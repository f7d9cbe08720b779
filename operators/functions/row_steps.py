"""Steps over whole rows: sums and maxima of their columns, softmax and norms.

Numbers are summed in 32 bits or more and rounded once, at the end, as PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim
from operators.functions.arithmetic import largest, roomy
from operators.functions.base import Array
from operators.functions.steps import Shape, Step

__all__ = ["LayerNorm", "RMSNorm", "Reduced", "Reducing", "Softmax", "Variance"]

Reducing: TypeAlias = Literal["amax", "amin", "any", "all", "mean", "prod", "sum"]

_REDUCING: Final[dict[str, Callable[..., Any]]] = {
    "all": np.all,
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "mean": np.mean,
    "prod": np.prod,
    "sum": np.sum,
}


@dataclass(frozen=True)
class _Reducing(Step):
    """One number of each row, or of several dimensions that a tile has in its rows and columns.

    Attributes:
        grid: the dimensions of a tile, the last one in its columns; None for rows and columns.
        axes: those of the grid that are left with one number.
    """

    grid: tuple[int, ...] | None = None
    axes: tuple[int, ...] = ()

    @override
    def shape(self, *shapes: Shape) -> Shape:
        if self.grid is None:
            return shapes[0][0], 1
        left = [1 if axis in self.axes else size for axis, size in enumerate(self.grid)]
        return math.prod(left[:-1]), left[-1]

    def gathered(self, x: Array) -> Array:
        """Return [numbers of the result, numbers that each is of]."""
        if self.grid is None:
            return x
        kept = [axis for axis in range(len(self.grid)) if axis not in self.axes]
        size = math.prod(self.grid[axis] for axis in self.axes)
        return x.reshape(self.grid).transpose(*kept, *self.axes).reshape(-1, size)

    def counts(self, shapes: tuple[Shape, ...]) -> tuple[Dim, Dim]:
        """Return how many numbers the result has, and of how many each is."""
        ((rows, cols),) = shapes
        if self.grid is None:
            return rows, cols
        of = math.prod(self.grid[axis] for axis in self.axes)
        return math.prod(self.grid) // of, of


@dataclass(frozen=True)
class Reduced(_Reducing):
    """A sum, a mean or an extreme: one operation a number, and one more for a mean.

    Attributes:
        name: which.
    """

    name: Reducing = "sum"

    @override
    def flops(self, *shapes: Shape) -> Dim:
        results, of = self.counts(shapes)
        return results * (of + (self.name == "mean"))

    @property
    @override
    def called(self) -> str:
        return self.name

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        numbers = self.gathered(x)
        if self.name in {"prod", "sum"}:
            bits, count = largest(numbers).bit_length(), numbers.shape[1]
            bits = bits * count if self.name == "prod" else bits + count.bit_length()
            (numbers,) = roomy(1 << min(bits, 64), numbers)
        result: Array = _REDUCING[self.name](numbers, axis=1)
        return result.reshape(_sizes(self, x))


@dataclass(frozen=True)
class Variance(_Reducing):
    """A variance or its root: four operations a number, and two or three more.

    Attributes:
        correction: taken from how many numbers there are, by which the sum of squares is divided.
        root: give the standard deviation.
    """

    correction: float = 1.0
    root: bool = False

    @override
    def flops(self, *shapes: Shape) -> Dim:
        results, of = self.counts(shapes)
        return results * (4 * of + 2 + self.root)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        numbers = self.gathered(x)
        centred = numbers - numbers.mean(axis=1, keepdims=True)
        divisor = max(0.0, numbers.shape[1] - self.correction)
        result: Array = (centred * centred).sum(axis=1) / divisor
        return (np.sqrt(result) if self.root else result).reshape(_sizes(self, x))


def _sizes(step: Step, x: Array) -> tuple[int, ...]:
    rows, cols = step.shape(x.shape)
    assert isinstance(rows, int)
    assert isinstance(cols, int)
    return rows, cols


@dataclass(frozen=True)
class Softmax(Step):
    """The softmax of each row: eight operations a column; its logarithm takes four more a row.

    Attributes:
        logarithm: give the logarithm.
    """

    logarithm: bool = False

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        ((rows, cols),) = shapes
        return rows * (8 * cols + 4 * self.logarithm)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        shifted = x - x.max(axis=-1, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=-1, keepdims=True)
        result: Array = shifted - np.log(total) if self.logarithm else powers / total
        return result


@dataclass(frozen=True)
class RMSNorm(Step):
    """Each row divided by the root of the mean of its squares, times weights.

    Three operations a column and one for each further operand; four a row.

    Attributes:
        eps: added to the mean.
    """

    eps: float

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        rows, cols = shapes[0]
        return rows * ((2 + len(shapes)) * cols + 4)

    @override
    def compute(self, *values: Array) -> Array:
        x, *weights = values
        mean = (x * x).mean(axis=-1, keepdims=True)
        result: Array = x * (1 / np.sqrt(mean + self.eps))
        return result * weights[0] if weights else result


@dataclass(frozen=True)
class LayerNorm(Step):
    """Each row less its mean, divided by its deviation, times weights, plus a bias.

    Five operations a column and one for each further operand; five a row.

    Attributes:
        eps: added to the variance.
        has_weight: the second operand is a weight; another one behind it is a bias.
    """

    eps: float
    has_weight: bool

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        rows, cols = shapes[0]
        return rows * ((4 + len(shapes)) * cols + 5)

    @override
    def compute(self, *values: Array) -> Array:
        x, *others = values
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        result: Array = centred * (1 / np.sqrt(variance + self.eps))
        if self.has_weight:
            weight, *others = others
            result = result * weight
        for bias in others:
            result = result + bias
        return result
