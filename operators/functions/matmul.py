"""Matrix products of tiles, in a Map and accumulated over a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType
from fabric.extend import (
    ValueType,
    block_format,
    holds_integers,
    kept_as,
    limits,
    row_bytes,
    same,
)
from operators.functions.arithmetic import narrow, wide_type
from operators.functions.base import Array, Function, Operand, Shaped, tile_types
from operators.functions.product import padded, product, summed
from operators.functions.reduction import Reduction, State

__all__ = ["Matmul", "MatmulSum"]

_SYSTOLIC_ROWS = 16
"""Rows of the input tile that the compute unit of the paper keeps on chip."""


@dataclass(frozen=True)
class Matmul(Function):
    """``a @ b``, or ``a @ b.T`` where ``transposed``.

    Shapes:
        a: M x K; b: K x N (N x K where transposed); result: M x N with the valid rows of a, of the
        element type of a. The element type of b is the same, or an integer type of fewer bits, or
        a block-scaled one. If both are block-scaled, the result is float32. Blocks lie along K, so
        a block-scaled b has to be transposed.

    Timing:
        2 * M * K * N operations. Padding counts as data. Applying the scales of block-scaled types
        adds exponents and counts as no operation.

    Attributes:
        transposed: the second operand is stored by rows of its columns. Its valid rows are then
            the valid columns of the result.
        unrounded: the result is not rounded to the element type, for a function that uses it
            next (``ScaledAdd``). It is float32 if the operands have 16 bits.

    Example:
        >>> q, k = np.ones((4, 8)), np.ones((2, 8))
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(q, tile=(4, 8))()
        ...     right = LinearOffChipLoad(k, tile=(2, 8))()
        ...     scores = Map(Matmul(transposed=True))(left, right)
        ...     LinearOffChipStore("y")(scores)
        >>> program.expect(y=lambda: q @ k.T)
        >>> print(scores.type)
        [1, 1, 1] of 4x2 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    transposed: bool = False
    unrounded: bool = False

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        return _factors(name, operands, self.transposed)

    @override
    def infer(self, *inputs: TileType) -> TileType:
        a, b = inputs
        inner, cols = (b.cols, b.rows) if self.transposed else (b.rows, b.cols)
        if same(a.cols, inner) is False:
            form = "transposed " if self.transposed else ""
            raise ShapeError(f"Matmul multiplies {a} by {form}{b}: expected equal inner dimensions")
        return TileType(a.rows, cols, self._result(a.dtype))

    def _result(self, dtype: np.dtype) -> np.dtype:
        """Return the element type of a product, given that of a."""
        wide = self.unrounded or block_format(dtype) is not None
        return wide_type(dtype) if wide else dtype

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        a, b = inputs
        return 2 * a.rows * a.cols * (b.rows if self.transposed else b.cols)

    @override
    def operand_bytes(self, *inputs: TileType) -> Dim:
        a, b = inputs
        return _SYSTOLIC_ROWS * a.cols + b.size_bytes

    @override
    def apply(self, *inputs: Tile) -> Tile:
        a, b = inputs
        data, dtype = None, self._result(a.dtype)
        if a.data is not None and b.data is not None:
            left, right = a.data, b.data.T if self.transposed else b.data

            def of(row: int, col: int) -> tuple[Array, Array]:
                return left[row], right[:, col]

            result = product(a, b, transposed=self.transposed)
            data = padded(narrow(result, dtype, "Matmul", of), a.rows)
        cols, valid_cols = (b.rows, b.valid_rows) if self.transposed else (b.cols, b.valid_cols)
        return Tile(a.rows, cols, dtype, data, valid_rows=a.valid_rows, valid_cols=valid_cols)


@dataclass(frozen=True)
class MatmulSum(Reduction):
    """The sum of ``a @ b`` over a group, or of ``a @ b.T`` where ``transposed``.

    The sum stays in float32 until it is emitted.

    Shapes:
        a: M x K; b: K x N (N x K where transposed); result: M x N. M may be decided by data; then
        the accumulator starts empty and the first product becomes it. Element types as Matmul's.

    Timing:
        2 * M * K * N operations; the addition to the sum counts none.

    Attributes:
        transposed: the second operand is stored by rows of its columns.
        unrounded: the sum is emitted as it is, in float32 where the operands have 16 bits.

    Example:
        >>> a, b = np.ones((4, 16)), np.ones((16, 8))
        >>> with Program("example", mode="functional") as program:
        ...     left = Flatten(0, 1)(LinearOffChipLoad(a, tile=(4, 8))())
        ...     right = Flatten(0, 1)(LinearOffChipLoad(b, tile=(8, 8))())
        ...     LinearOffChipStore("y")(Promote(0)(Accum(MatmulSum())(left, right)))
        >>> program.expect(y=lambda: a @ b)
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    transposed: bool = False
    unrounded: bool = False

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        return _factors(name, operands, self.transposed)

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        return self._one.infer(*inputs)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return self._one.flops(*inputs)

    @override
    def operand_bytes(self, *inputs: TileType) -> Dim:
        return self._one.operand_bytes(*inputs)

    @property
    def _one(self) -> Matmul:
        return Matmul(self.transposed, self.unrounded)

    @override
    def start(self, result: TileType, functional: bool) -> State:
        return None

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        a, b = inputs
        dtype = self._one._result(a.dtype)
        return a.rows * row_bytes(self._cols(b), dtype) if state is None else 0

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        a, b = inputs
        cols = self._cols(b)
        if a.data is None or b.data is None:
            return a.rows, cols, a.valid_rows, None
        total = product(a, b, transposed=self.transposed)
        if state is not None:
            if state[:2] != (a.rows, cols):
                raise ValueError(
                    f"a product of {a.rows}x{cols} is added to a sum of {state[0]}x{state[1]}: "
                    "expected equal sizes"
                )
            total = summed(state[3], total)
        return a.rows, cols, a.valid_rows, total

    def _cols(self, b: Tile) -> int:
        return b.rows if self.transposed else b.cols

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if state is None:
            rows = result.rows if isinstance(result.rows, int) else 0
            cols = result.cols if isinstance(result.cols, int) else 0
            empty = np.zeros((rows, cols), kept_as(result.dtype)) if functional else None
            return Tile(rows, cols, result.dtype, empty)
        rows, cols, valid_rows, total = state
        data = None if total is None else padded(narrow(total, result.dtype, "MatmulSum"), rows)
        return Tile(rows, cols, result.dtype, data, valid_rows=valid_rows)


def _factors(name: str, operands: tuple[ValueType, ...], transposed: bool) -> tuple[Operand, ...]:
    """Return the types of two factors, of which the second may have fewer bits.

    Raises:
        ShapeError: another number, something else than tiles, or other element types.
    """
    a, b = tile_types(name, operands, 2, mixed_types=True, block_scaled=True)
    if block_format(b.dtype) is not None:
        if not transposed:
            raise ShapeError(
                f"{name} is given {a} and {b}, whose scales are shared along its rows: expected "
                "the second one transposed, so that these are summed"
            )
        if block_format(a.dtype) is None and limits(a.dtype) is not None:
            raise ShapeError(f"{name} is given {a} and {b}: expected floating-point numbers")
        return a, b
    if a.dtype == b.dtype:
        return a, b
    # Eight numbers take as many bytes as one has bits.
    fewer = holds_integers(b.dtype) and row_bytes(8, b.dtype) < row_bytes(8, a.dtype)
    return tile_types(name, operands, 2, mixed_types=fewer)
