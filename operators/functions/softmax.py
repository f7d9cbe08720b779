"""A softmax whose scores come piece by piece: running maximum, shifted exponentials, sums.

Together they are the inner loop of FlashAttention (arXiv 2205.14135, algorithm 1): no row of scores
is ever held as a whole. ``programs/ragged_attention.py`` shows them at work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, TupleType, dtype_named
from fabric.extend import ValueType, kept_as
from operators.functions.arithmetic import narrow, wide
from operators.functions.base import Array, Function, Operand, Shaped, tile_types
from operators.functions.reduction import Reduction, State

__all__ = ["RescaledSum", "RunningMaximum", "ShiftedExp"]

_SUMS: Final = dtype_named("float32")
"""Sums are kept so until they are emitted."""


@dataclass(frozen=True)
class RunningMaximum(Reduction):
    """The largest score of a row so far, and exp(the largest before - the largest now).

    Columns that are not valid are never the largest. The factor of a first piece is 0. An Accum
    of nothing gives minus infinity and 0.

    Shapes:
        scores: R x C; result: a tuple of two R x 1.

    Example:
        >>> with Program("example") as program:
        ...     scores = LinearOffChipLoad(np.ones((2, 8)), tile=(2, 4))()
        ...     running = Scan(RunningMaximum())(scores)
        ...     Consumer()(running)
        >>> print(scores.type)
        [1, 1, 2] of 2x4 bfloat16
        >>> print(running.type)
        [1, 1, 2] of (2x1 bfloat16, 2x1 bfloat16)
        >>> print(simulate(program).cycles)
        44
    """

    operands: ClassVar = 1
    floats: ClassVar[bool] = True

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TupleType:
        column = TileType(inputs[0].rows, 1, inputs[0].dtype)
        return TupleType((column, column))

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[0].rows * (inputs[0].cols + 6)

    @override
    def start(self, result: TupleType, functional: bool) -> State:
        return None

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        (scores,) = inputs
        if scores.data is None:
            return scores, None, None
        largest = wide(scores.data[:, : scores.valid_cols]).max(
            axis=1, keepdims=True, initial=-np.inf
        )
        # Rounded at once: what is subtracted from the scores is what the stream carries.
        largest = wide(narrow(largest, scores.dtype))
        if state is None:
            return scores, largest, np.zeros_like(largest)
        largest = np.maximum(state[1], largest)
        return scores, largest, np.exp(_difference(state[1], largest))

    @override
    def finish(self, state: State, result: TupleType, functional: bool) -> tuple[Tile, ...]:
        column = result.items[0]
        assert isinstance(column, TileType)
        if state is None:
            rows = column.rows if isinstance(column.rows, int) else 0
            start = (np.full((rows, 1), number) for number in (-np.inf, 0))
            return tuple(
                Tile(rows, 1, column.dtype, narrow(data, column.dtype) if functional else None)
                for data in start
            )
        scores, *columns = state
        return tuple(
            Tile(
                scores.rows,
                1,
                column.dtype,
                None if data is None else narrow(data, column.dtype),
                valid_rows=scores.valid_rows,
            )
            for data in columns
        )


@dataclass(frozen=True)
class ShiftedExp(Function):
    """``exp(scores - maximum)``, five operations per element; 0 in columns that are not valid.

    Shapes:
        scores: R x C; maximum and factor, which is not used: R x 1; result: R x C.

    Example:
        >>> with Program("example") as program:
        ...     scores = LinearOffChipLoad(np.ones((2, 8)), tile=(2, 4))()
        ...     weights = Map(ShiftedExp())(scores, Scan(RunningMaximum())(scores))
        ...     LinearOffChipStore("y")(weights)
        >>> print(weights.type)
        [1, 1, 2] of 2x4 bfloat16
        >>> print(simulate(program).cycles)
        69
    """

    operands: ClassVar = 3
    floats: ClassVar[bool] = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        scores, maximum, factor = inputs
        for column in (maximum, factor):
            if column.cols != 1 or column.rows != scores.rows:
                raise ShapeError(
                    f"ShiftedExp is given {scores}, {maximum} and {factor}: "
                    "expected a maximum and a factor for each row"
                )
        return scores

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 5 * inputs[0].rows * inputs[0].cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        scores, maximum, _ = inputs
        data = None
        if scores.data is not None and maximum.data is not None:
            largest, valid = wide(maximum.data), wide(scores.data[:, : scores.valid_cols])
            powers = np.zeros(scores.data.shape, valid.dtype)
            # A row that has no score yet has no weight either.
            powers[:, : scores.valid_cols] = np.where(
                np.isneginf(largest), 0, np.exp(_difference(valid, largest))
            )
            data = narrow(powers, scores.dtype)
        return Tile(
            scores.rows,
            scores.cols,
            scores.dtype,
            data,
            valid_rows=scores.valid_rows,
            valid_cols=scores.valid_cols,
        )


@dataclass(frozen=True)
class RescaledSum(Reduction):
    """Sums of weighted values and of the weights, rescaled whenever the maximum grows.

    Shapes:
        weights: R x C; values: C x N, of an element type of their own; maximum, which is not used,
        and factor: R x 1; result: a tuple of R x N and R x 1, in the type of the weights; of
        nothing: zeros and ones.

    Example:
        >>> scores, values = np.arange(16.0).reshape(2, 8) / 8, np.ones((8, 4))
        >>> with Program("example", mode="functional") as program:
        ...     pieces = Flatten(0, 1)(LinearOffChipLoad(scores, tile=(2, 4))())
        ...     rows = Flatten(0, 1)(LinearOffChipLoad(values, tile=(4, 4))())
        ...     running = Scan(RunningMaximum())(pieces)
        ...     weights = Map(ShiftedExp())(pieces, running)
        ...     sums = Accum(RescaledSum())(weights, rows, running)
        ...     LinearOffChipStore("y")(Promote(0)(Map(Div())(sums)))
        >>> program.expect(y=lambda: np.ones((2, 4)))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 4

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        tiles = tile_types(name, operands, 4, mixed_types=True)
        weights, _, *columns = tiles
        tile_types(name, (weights, *columns), 3, floats=True)
        return tiles

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TupleType:
        weights, values = inputs[:2]
        if weights.cols != values.rows:
            raise ShapeError(
                f"RescaledSum is given {weights} and {values}: expected as many columns as rows"
            )
        total = TileType(weights.rows, values.cols, weights.dtype)
        return TupleType((total, TileType(weights.rows, 1, weights.dtype)))

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        weights, values = inputs[:2]
        return weights.rows * (2 * weights.cols * values.cols + weights.cols + values.cols + 1)

    @override
    def start(self, result: TupleType, functional: bool) -> State:
        total, weight = result.items
        assert isinstance(total, TileType)
        assert isinstance(weight, TileType)
        dtype = kept_as(_SUMS)
        return np.zeros((total.rows, total.cols), dtype), np.zeros((total.rows, 1), dtype)

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        weights, values, _, factor = inputs
        if weights.data is None or values.data is None or factor.data is None:
            return state
        total, weight = (each * wide(factor.data) for each in state)
        weight = weight + wide(weights.data).sum(axis=1, keepdims=True)
        return total + wide(weights.data) @ wide(values.data), weight

    @override
    def finish(self, state: State, result: TupleType, functional: bool) -> tuple[Tile, ...]:
        total, weight = state
        dtype = result.items[0].dtype if isinstance(result.items[0], TileType) else None
        assert dtype is not None
        weight = np.where(weight == 0, 1, weight)
        return tuple(
            Tile(len(data), data.shape[1], dtype, narrow(data, dtype) if functional else None)
            for data in (total, weight)
        )


def _difference(scores: Array, largest: Array) -> Array:
    """Return ``scores - largest``, 0 where they are equal: also where both are infinite."""
    result = np.zeros(np.broadcast_shapes(scores.shape, largest.shape), scores.dtype)
    np.subtract(scores, largest, out=result, where=scores != largest)
    return result
