"""A softmax whose scores come piece by piece: running maximum, shifted exponentials, sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, TupleType
from operators import Function, Reduction, narrow, wide

__all__ = ["RunningMaximum", "Shifted", "WeightedSum"]


@dataclass(frozen=True)
class RunningMaximum(Reduction):
    """The largest score of a row so far, and exp(the largest before - the largest now).

    Shapes:
        scores: R x C; result: a tuple of two R x 1.
    """

    operands: ClassVar = 1

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TupleType:
        column = TileType(inputs[0].rows, 1, inputs[0].dtype)
        return TupleType((column, column))

    @override
    def flops(self, *inputs: Any) -> Any:
        return inputs[0].rows * (inputs[0].cols + 6)

    @override
    def start(self, result: TupleType, functional: bool) -> Any:
        return None

    @override
    def update(self, state: Any, *inputs: Tile) -> Any:
        (scores,) = inputs
        if scores.data is None:
            return scores.rows, None, None
        # Rounded at once: what is subtracted from the scores is what the stream carries.
        largest = scores.data.max(axis=1, keepdims=True)
        if state is None:
            return scores.rows, largest, np.zeros_like(largest)
        largest = np.maximum(state[1], largest)
        return scores.rows, largest, np.exp(wide(state[1]) - wide(largest))

    @override
    def finish(self, state: Any, result: TupleType, functional: bool) -> tuple[Tile, ...]:
        dtype = result.items[0].dtype if isinstance(result.items[0], TileType) else None
        assert dtype is not None
        rows, *columns = state
        return tuple(
            Tile(rows, 1, dtype, None if data is None else narrow(data, dtype)) for data in columns
        )


@dataclass(frozen=True)
class Shifted(Function):
    """``exp(scores - maximum)``, five operations an element.

    Shapes:
        scores: R x C; maximum and factor, which is not used: R x 1; result: R x C.
    """

    operands: ClassVar = 3

    @override
    def infer(self, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Any) -> Any:
        return 5 * inputs[0].rows * inputs[0].cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        scores, maximum, _ = inputs
        data = None
        if scores.data is not None and maximum.data is not None:
            data = narrow(np.exp(wide(scores.data) - wide(maximum.data)), scores.dtype)
        return Tile(scores.rows, scores.cols, scores.dtype, data)


@dataclass(frozen=True)
class WeightedSum(Reduction):
    """Sums of weighted values and of the weights, rescaled whenever the maximum grows.

    Shapes:
        weights: R x C; values: C x N; maximum, which is not used, and factor: R x 1;
        result: a tuple of R x N and R x 1; of nothing: zeros and ones.
    """

    operands: ClassVar = 4

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TupleType:
        weights, values = inputs[:2]
        if weights.cols != values.rows:
            raise ShapeError(
                f"WeightedSum is given {weights} and {values}: expected as many columns as rows"
            )
        total = TileType(weights.rows, values.cols, weights.dtype)
        return TupleType((total, TileType(weights.rows, 1, weights.dtype)))

    @override
    def flops(self, *inputs: Any) -> Any:
        weights, values = inputs[:2]
        return weights.rows * (2 * weights.cols * values.cols + weights.cols + values.cols + 1)

    @override
    def start(self, result: TupleType, functional: bool) -> Any:
        total, weight = result.items
        assert isinstance(total, TileType)
        assert isinstance(weight, TileType)
        return np.zeros((total.rows, total.cols), np.float32), np.zeros((total.rows, 1), np.float32)

    @override
    def update(self, state: Any, *inputs: Tile) -> Any:
        weights, values, _, factor = inputs
        if weights.data is None or values.data is None or factor.data is None:
            return state
        total, weight = (each * wide(factor.data) for each in state)
        weight = weight + wide(weights.data).sum(axis=1, keepdims=True)
        return total + wide(weights.data) @ wide(values.data), weight

    @override
    def finish(self, state: Any, result: TupleType, functional: bool) -> tuple[Tile, ...]:
        total, weight = state
        dtype = result.items[0].dtype if isinstance(result.items[0], TileType) else None
        assert dtype is not None
        weight = np.where(weight == 0, 1, weight)
        return tuple(
            Tile(len(data), data.shape[1], dtype, narrow(data, dtype) if functional else None)
            for data in (total, weight)
        )
