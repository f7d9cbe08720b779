"""Functions of single numbers: SiLU and exp; and of pairs, with rows or columns of 1 repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType
from fabric.extend import same
from operators.functions.arithmetic import divided, narrow, plus, times, wide
from operators.functions.base import Array, Function, Shaped

__all__ = ["Add", "Div", "Exp", "Maximum", "Mul", "SiLU"]


class _Unary(Function):
    operands: ClassVar = 1
    floats: ClassVar[bool] = True
    elementwise: ClassVar = True
    flops_per_element: ClassVar[int]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return self.flops_per_element * inputs[0].rows * inputs[0].cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else narrow(self.compute(wide(x.data), x), x.dtype)
        return Tile(x.rows, x.cols, x.dtype, data, valid_rows=x.valid_rows, valid_cols=x.valid_cols)

    def compute(self, data: Array, tile: Tile) -> Array:
        """Return the numbers of the result, in the precision of ``data``."""
        raise NotImplementedError


@dataclass(frozen=True)
class SiLU(_Unary):
    """``x / (1 + exp(-x))``, 8 operations per element.

    Shapes:
        x: R x C; result: the same.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(SiLU())(tiles))
        >>> program.expect(y=lambda: x / (1 + np.exp(-x)))
        >>> print(simulate(program).verified)
        True
    """

    flops_per_element: ClassVar = 8

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        with np.errstate(over="ignore"):
            result: Array = data / (1 + np.exp(-data))
        return result


@dataclass(frozen=True)
class Exp(_Unary):
    """``exp(x)``, 4 operations per element; 0 in columns that are not valid.

    Shapes:
        x: R x C; result: the same.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(Exp())(tiles))
        >>> program.expect(y=lambda: np.exp(x))
        >>> print(simulate(program).verified)
        True
    """

    flops_per_element: ClassVar = 4

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        result: Array = np.exp(data)
        result[:, tile.valid_cols :] = 0
        return result


class _Binary(Function):
    operands: ClassVar = 2
    elementwise: ClassVar = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        a, b = inputs
        if a == b:
            return a
        try:
            rows, cols = _joined(a.rows, b.rows), _joined(a.cols, b.cols)
        except ValueError:
            raise ShapeError(
                f"{type(self).__name__} joins {a} and {b}: expected equal sizes, or 1"
            ) from None
        return TileType(rows, cols, a.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        a, b = inputs
        return _larger(a.rows, b.rows) * _larger(a.cols, b.cols)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        a, b = inputs
        data = None
        if a.data is not None and b.data is not None:
            left, right = wide(a.data), wide(b.data)

            def of(row: int, col: int) -> tuple[Array, ...]:
                return tuple(
                    each[min(row, len(each) - 1), min(col, each.shape[1] - 1)]
                    for each in (left, right)
                )

            data = narrow(self.compute(left, right), a.dtype, type(self).__name__, of)
        if a.rows == b.rows:
            valid_rows = max(a.valid_rows, b.valid_rows)
        else:
            valid_rows = b.valid_rows if a.rows == 1 else a.valid_rows
        if a.cols == b.cols:
            valid_cols = max(a.valid_cols, b.valid_cols)
        else:
            valid_cols = b.valid_cols if a.cols == 1 else a.valid_cols
        return Tile(
            b.rows if a.rows == 1 else a.rows,
            b.cols if a.cols == 1 else a.cols,
            a.dtype,
            data,
            valid_rows=valid_rows,
            valid_cols=valid_cols,
        )

    def compute(self, left: Array, right: Array) -> Array:
        """Return the numbers of the result, in the precision of the inputs."""
        raise NotImplementedError


@dataclass(frozen=True)
class Add(_Binary):
    """``a + b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Add())(left, right))
        >>> program.expect(y=lambda: a + b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return plus(left, right)


@dataclass(frozen=True)
class Mul(_Binary):
    """``a * b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Mul())(left, right))
        >>> program.expect(y=lambda: a * b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return times(left, right)


@dataclass(frozen=True)
class Div(_Binary):
    """``a / b``, one operation per element of the result; of integers one that has no fraction.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Div())(left, right))
        >>> program.expect(y=lambda: a / b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return divided(left, right)


@dataclass(frozen=True)
class Maximum(_Binary):
    """The larger of ``a`` and ``b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Maximum())(left, right))
        >>> program.expect(y=lambda: np.maximum(a, b))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        result: Array = np.maximum(left, right)
        return result


def _joined(left: Dim, right: Dim) -> Dim:
    if left == 1:
        return right
    if right == 1 or same(left, right) is not False:
        return left
    raise ValueError


def _larger(left: Dim, right: Dim) -> Dim:
    return right if left == 1 else left
