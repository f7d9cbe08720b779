"""What attention does beside the softmax's pieces: scores in float32, masks, and the last division.

Scores, weights and sums are float32 whatever the element type of queries, keys and values: the
result is rounded once, as PyTorch's kernels round it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, dtype_named
from fabric.extend import ValueType, kept_as, limits, same
from operators.functions.arithmetic import divided, narrow, wide
from operators.functions.base import Function, Operand, Shaped, tile_types
from operators.functions.matmul import Matmul
from operators.functions.product import padded, product

__all__ = ["AttentionScores", "MaskScores", "Quotient"]

_SCORES = np.dtype(np.float32)


@dataclass(frozen=True)
class AttentionScores(Function):
    """``scale * (queries @ keys.T)`` in float32.

    Shapes:
        queries: R x D; keys: N x D; result: R x N of float32, whose valid columns are the valid
        rows of the keys.

    Timing:
        2 * R * D * N operations for the product and R * N for the scale.

    Attributes:
        scale: of every score.

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
                "expected as many columns"
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
class MaskScores(Function):
    """Scores with a mask: minus infinity where it is false, or the numbers of a bias added.

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
                "expected as many columns, and rows that divide those of the scores"
            )
        return scores

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[0].rows * inputs[0].cols

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
        return Tile(
            scores.rows,
            scores.cols,
            scores.dtype,
            data,
            valid_rows=scores.valid_rows,
            valid_cols=scores.valid_cols,
        )


@dataclass(frozen=True)
class Quotient(Function):
    """Each row of sums divided by its weight, in another element type; one operation per element.

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
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[0].rows * inputs[0].cols

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
