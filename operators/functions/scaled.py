"""What follows a product in the precision of its sum: a bias, before anything is rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, dtype_named
from fabric.extend import ValueType, kept_as, limits, same
from operators.functions.arithmetic import narrow, plus, times, wide
from operators.functions.base import Array, Function, Operand, Shaped

__all__ = ["LeadingCols", "ScaledAdd"]

_FLOAT32: Final = dtype_named("float32")


@dataclass(frozen=True)
class ScaledAdd(Function):
    """``alpha * x + beta * y``, rounded once, to the element type of ``y``.

    Where that is a type of integers, ``x`` and the factors are whole numbers, too.

    Shapes:
        x: R x C; y: R x C, with 1 row or 1 column where it is repeated; result: R x C.

    Timing:
        One operation per element, and one for each factor that is not 1.

    Attributes:
        alpha: of ``x``.
        beta: of ``y``.

    Example:
        >>> x, w, bias = np.ones((4, 8)), np.ones((8, 8)), np.arange(8.0).reshape(1, 8)
        >>> with Program("example", mode="functional") as program:
        ...     left, right = (LinearOffChipLoad(each, tile=each.shape)() for each in (x, w))
        ...     products = Map(Matmul(unrounded=True))(left, right)
        ...     added = LinearOffChipLoad(bias, tile=(1, 8))()
        ...     LinearOffChipStore("y")(Map(ScaledAdd())(products, added))
        >>> program.expect(y=lambda: x @ w + bias)
        >>> print(products.type)
        [1, 1, 1] of 4x8 float32
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2
    mixed_types: ClassVar[bool] = True

    alpha: float = 1.0
    beta: float = 1.0

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        x, y = super().check(name, operands)
        whole = float(self.alpha).is_integer() and float(self.beta).is_integer()
        if limits(y.dtype) is not None and (limits(x.dtype) is None or not whole):
            raise ShapeError(
                f"{name} gives {self.alpha:g} * {x} + {self.beta:g} * {y}: expected whole numbers "
                "and factors for a whole result"
            )
        return x, y

    @override
    def infer(self, *inputs: TileType) -> TileType:
        x, y = inputs
        if any(
            same(mine, one) is False and one != 1
            for mine, one in ((x.rows, y.rows), (x.cols, y.cols))
        ):
            raise ShapeError(
                f"ScaledAdd adds {y} to {x}: expected equal sizes, or 1 in what is added"
            )
        return TileType(x.rows, x.cols, y.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        x, _ = inputs
        return (1 + (self.alpha != 1) + (self.beta != 1)) * x.rows * x.cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        x, y = inputs
        data = None
        if x.data is not None and y.data is not None:
            whole = limits(y.dtype) is not None
            left, right = (
                _scaled(factor, wide(data), whole=whole)
                for factor, data in ((self.alpha, x.data), (self.beta, y.data))
            )
            data = narrow(plus(left, right), y.dtype, "ScaledAdd")
        return Tile(x.rows, x.cols, y.dtype, data, valid_rows=x.valid_rows, valid_cols=x.valid_cols)


def _scaled(factor: float, data: Array, *, whole: bool) -> Array:
    if factor == 1:
        return data
    return times(
        wide(np.asarray(int(factor))) if whole else np.asarray(factor, kept_as(_FLOAT32)), data
    )


@dataclass(frozen=True)
class LeadingCols(Function):
    """The first ``cols`` columns of a tile; no operations.

    Shapes:
        x: R x C; result: R x cols.

    Attributes:
        cols: at most C.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(4, 4))()
        ...     LinearOffChipStore("y")(Map(LeadingCols(3))(tiles))
        >>> program.expect(y=lambda: x[:, :3])
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    cols: int

    @property
    @override
    def roundings(self) -> int:
        return 0

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        if self.cols < 1 or (isinstance(x.cols, int) and self.cols > x.cols):
            raise ShapeError(
                f"LeadingCols({self.cols}) is given {x}: expected at least 1, and no more "
                "than there are"
            )
        return TileType(x.rows, self.cols, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else x.data[:, : self.cols]
        valid_cols = min(x.valid_cols, self.cols)
        return Tile(
            x.rows, self.cols, x.dtype, data, valid_rows=x.valid_rows, valid_cols=valid_cols
        )
