"""Attention piece by piece: scores, masks, a running maximum, shifted exponentials, sums.

These functions are the inner loop of FlashAttention (arXiv 2205.14135, algorithm 1). Scores,
weights and sums are float32 for all element types. The result is rounded once, as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, TupleType, dtype_named
from fabric.extend import ValueType, kept_as, limits, same
from operators.functions.arithmetic import Array, divided, narrow, wide
from operators.functions.base import (
    Function,
    Operand,
    PerElement,
    Reduction,
    Shaped,
    State,
    tile_types,
)
from operators.functions.matmul import Matmul, padded, product

_SCORES: Final = np.dtype(np.float32)
"""The element type of scores and weights, and of sums until they are emitted."""


@dataclass(frozen=True)
class AttentionScores(Function):
    """``scale * (queries @ keys.T)`` in float32.

    Shapes:
        queries: R x D; keys: N x D; result: R x N of float32. Column n is valid if row n of
        the keys is valid.

    Timing:
        2 * R * D * N operations for the product and R * N for the scale.

    Attributes:
        scale: factor of every score.

    Example:
        >>> q, k = np.ones((4, 16)), np.ones((8, 16))
        >>> with Program("example", mode="functional") as program:
        ...     queries = LinearOffChipLoad(q, tile=(4, 16))()
        ...     keys = LinearOffChipLoad(k, tile=(8, 16))()
        ...     scores = Map(AttentionScores(0.25))(queries, keys)
        ...     LinearOffChipStore("y")(scores)
        >>> program.expect(y=lambda: q @ k.T / 4)
        >>> print(scores.type)
        [1, 1, 1] of 4x8 float32
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    scale: float

    @override
    def infer(self, *inputs: TileType) -> TileType:
        queries, keys = inputs
        if same(queries.cols, keys.cols) is False:
            raise ShapeError(
                f"AttentionScores is given queries {queries} and keys {keys}: "
                "expected equal numbers of columns"
            )
        return TileType(queries.rows, keys.rows, _SCORES)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        queries, keys = inputs
        return queries.rows * keys.rows * (2 * queries.cols + 1)

    @override
    def operand_bytes(self, *inputs: TileType) -> Dim:
        return Matmul(transposed=True).operand_bytes(*inputs)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        queries, keys = inputs
        data = None
        if queries.data is not None and keys.data is not None:
            scores = product(queries, keys, transposed=True) * kept_as(_SCORES).type(self.scale)
            data = padded(narrow(scores, _SCORES), queries.rows)
        return Tile(
            queries.rows,
            keys.rows,
            _SCORES,
            data,
            valid_rows=queries.valid_rows,
            valid_cols=keys.valid_rows,
        )


@dataclass(frozen=True)
class MaskScores(PerElement):
    """Scores with minus infinity where a mask is false, or with a bias added.

    One operation per element.

    Shapes:
        scores: R x N; mask: r x N, booleans or a bias, repeated below itself until it has R rows;
        result: R x N.

    Example:
        >>> x = np.ones((4, 2), np.float32)
        >>> bias = np.array([[0.0, 1.0], [2.0, 3.0]], np.float32)
        >>> with Program("example", mode="functional") as program:
        ...     scores = LinearOffChipLoad(x, tile=(4, 2))()
        ...     masks = LinearOffChipLoad(bias, tile=(2, 2))()
        ...     LinearOffChipStore("y")(Map(MaskScores())(scores, masks))
        >>> program.expect(y=lambda: x + np.tile(bias, (2, 1)))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2
    mixed_types: ClassVar[bool] = True

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        scores, mask = super().check(name, operands)
        tile_types(name, (scores,), 1, floats=True)
        return scores, mask

    @override
    def infer(self, *inputs: TileType) -> TileType:
        scores, mask = inputs
        rows = (scores.rows, mask.rows)
        uneven = all(isinstance(size, int) for size in rows) and bool(rows[0] % max(rows[1], 1))
        if same(scores.cols, mask.cols) is False or uneven:
            raise ShapeError(
                f"MaskScores is given {scores} and the mask {mask}: "
                "expected equal columns, and a divisor of the scores' rows"
            )
        return scores

    @override
    def apply(self, *inputs: Tile) -> Tile:
        scores, mask = inputs
        data = None
        if scores.data is not None and mask.data is not None:
            below = np.tile(mask.data, (scores.rows // mask.rows, 1))
            numbers = wide(scores.data)
            if below.dtype == np.bool_:
                numbers = np.where(below, numbers, -np.inf)
            else:
                numbers = numbers + wide(below)
            data = narrow(numbers, scores.dtype)
        return scores.with_data(data)


@dataclass(frozen=True)
class Quotient(PerElement):
    """Each row of sums divided by its weight, rounded to ``dtype``; one operation per element.

    Shapes:
        sums: R x C; weights: R x 1; result: R x C of ``dtype``.

    Attributes:
        dtype: name of the element type that the quotient is rounded to.

    Example:
        >>> x, w = np.ones((4, 8), np.float32), np.full((4, 1), 4, np.float32)
        >>> with Program("example", mode="functional") as program:
        ...     sums = LinearOffChipLoad(Tensor(x.shape, x, dtype="float32"), tile=(4, 8))()
        ...     weights = LinearOffChipLoad(Tensor(w.shape, w, dtype="float32"), tile=(4, 1))()
        ...     rounded = Map(Quotient("bfloat16"))(sums, weights)
        ...     LinearOffChipStore("y")(rounded)
        >>> program.expect(y=lambda: x / 4)
        >>> print(rounded.type)
        [1, 1, 1] of 4x8 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    dtype: str

    @override
    def infer(self, *inputs: TileType) -> TileType:
        sums, weights = inputs
        if weights.cols != 1 or same(sums.rows, weights.rows) is False:
            raise ShapeError(
                f"Quotient is given {sums} and {weights}: expected one weight for each row"
            )
        return TileType(sums.rows, sums.cols, dtype_named(self.dtype))

    @override
    def apply(self, *inputs: Tile) -> Tile:
        sums, weights = inputs
        dtype = dtype_named(self.dtype)
        data = None
        if sums.data is not None and weights.data is not None:
            left, right = wide(sums.data), wide(weights.data)
            exactly = limits(dtype) is not None
            quotients = divided(left, right) if exactly else left / right
            data = narrow(
                quotients, dtype, "Quotient", lambda row, col: (left[row, col], right[row, 0])
            )
        return Tile(sums.rows, sums.cols, dtype, data, valid_rows=sums.valid_rows)


@dataclass(frozen=True)
class RunningMaximum(Reduction):
    """The largest score of a row so far, and the factor exp(the largest before - the largest now).

    Columns that are not valid are never the largest. The factor of the first piece is 0. An
    Accum of an empty group gives minus infinity and 0.

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
    def update(self, state: State, *inputs: Tile) -> State:
        (scores,) = inputs
        if scores.data is None:
            return scores, None, None
        largest = wide(scores.data[:, : scores.valid_cols]).max(
            axis=1, keepdims=True, initial=-np.inf
        )
        # Rounded before use: the scores are shifted by the value that the stream carries.
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
            rows = valid_rows = column.rows if isinstance(column.rows, int) else 0
            numbers = [np.full((rows, 1), start) if functional else None for start in (-np.inf, 0)]
        else:
            scores, *numbers = state
            rows, valid_rows = scores.rows, scores.valid_rows
        columns = (None if data is None else narrow(data, column.dtype) for data in numbers)
        return tuple(Tile(rows, 1, column.dtype, data, valid_rows=valid_rows) for data in columns)


@dataclass(frozen=True)
class ShiftedExp(PerElement):
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
    flops_per_element: ClassVar = 5

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
    def apply(self, *inputs: Tile) -> Tile:
        scores, maximum, _ = inputs
        data = None
        if scores.data is not None and maximum.data is not None:
            largest, valid = wide(maximum.data), wide(scores.data[:, : scores.valid_cols])
            powers = np.zeros(scores.data.shape, valid.dtype).view(type(valid))
            # In a row without a score, all weights are 0.
            powers[:, : scores.valid_cols] = np.where(
                np.isneginf(largest), 0, np.exp(_difference(valid, largest))
            )
            data = narrow(powers, scores.dtype)
        return scores.with_data(data)


@dataclass(frozen=True)
class RescaledSum(Reduction):
    """Sums of weighted values and of weights; both are rescaled when the maximum grows.

    Shapes:
        weights: R x C; values: C x N, of any element type; maximum, which is not used, and factor:
        R x 1; result: a tuple of R x N and R x 1, in the type of the weights. An empty group gives
        zeros and ones.

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
                f"RescaledSum is given {weights} and {values}: expected a row of values per column"
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
        dtype = kept_as(_SCORES)
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
        assert isinstance(result.items[0], TileType)
        dtype = result.items[0].dtype
        weight = np.where(weight == 0, 1, weight)
        return tuple(
            Tile(len(data), data.shape[1], dtype, narrow(data, dtype) if functional else None)
            for data in (total, weight)
        )


def _difference(scores: Array, largest: Array) -> Array:
    """Return ``scores - largest``; 0 in rows without a score, in which ``largest`` is -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(largest), 0, scores - largest)
