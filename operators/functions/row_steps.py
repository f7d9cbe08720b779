"""Steps over whole rows: sums and maxima of their columns, softmax and norms.

Numbers are summed in 32 bits or more and rounded once, at the end, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim, product
from operators.functions.base import Array
from operators.functions.steps import Shape, Step

__all__ = ["LayerNorm", "Reduced", "Reducing", "RMSNorm", "Softmax", "Variance"]

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
class Reduced(Step):
    """One number of each row: one operation a column, and one more for a mean.

    Attributes:
        name: which number.
    """

    name: Reducing

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return (*shapes[0][:-1], 1)

    @override
    def flops(self, *shapes: Shape) -> Dim:
        (x,) = shapes
        return product(x[:-1]) * (x[-1] + (self.name == "mean"))

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        result: Array = _REDUCING[self.name](x, axis=-1, keepdims=True)
        return result


@dataclass(frozen=True)
class Variance(Step):
    """The variance of each row, or its root: four operations a column.

    Attributes:
        correction: taken from the number of columns that the sum of squares is divided by.
        root: give the standard deviation.
    """

    correction: float = 1.0
    root: bool = False

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return (*shapes[0][:-1], 1)

    @override
    def flops(self, *shapes: Shape) -> Dim:
        (x,) = shapes
        return product(x[:-1]) * (4 * x[-1] + 2 + self.root)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        centred = x - x.mean(axis=-1, keepdims=True)
        divisor = np.float32(max(0.0, x.shape[-1] - self.correction))
        result: Array = (centred * centred).sum(axis=-1, keepdims=True) / divisor
        return np.sqrt(result) if self.root else result


@dataclass(frozen=True)
class Softmax(Step):
    """The softmax of each row: eight operations a column; its logarithm takes as many.

    Attributes:
        logarithm: give the logarithm.
    """

    logarithm: bool = False

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        (x,) = shapes
        return product(x[:-1]) * (8 * x[-1] + 4 * self.logarithm)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        shifted = x - x.max(axis=-1, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=-1, keepdims=True)
        return shifted - np.log(total) if self.logarithm else powers / total


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
        x = shapes[0]
        return product(x[:-1]) * ((2 + len(shapes)) * x[-1] + 4)

    @override
    def compute(self, *values: Array) -> Array:
        x, *weights = values
        mean = (x * x).mean(axis=-1, keepdims=True)
        result = x * (1 / np.sqrt(mean + np.float32(self.eps)))
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
        x = shapes[0]
        return product(x[:-1]) * ((4 + len(shapes)) * x[-1] + 5)

    @override
    def compute(self, *values: Array) -> Array:
        x, *others = values
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        result = centred * (1 / np.sqrt(variance + np.float32(self.eps)))
        if self.has_weight:
            weight, *others = others
            result = result * weight
        for bias in others:
            result = result + bias
        return result
