"""Transpose: rows become columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Dim, Tile, TileType
from operators.functions.base import Function, Shaped

__all__ = ["Transpose"]


@dataclass(frozen=True)
class Transpose(Function):
    """The tile with rows and columns exchanged; no operations.

    Shapes:
        x: R x C; result: C x R, with the valid columns of x as its valid rows.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(4, 4))()
        ...     LinearOffChipStore("y")(Map(Transpose())(tiles))
        >>> program.expect(y=lambda: x.T)
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        return TileType(x.cols, x.rows, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else x.data.T
        return Tile(x.cols, x.rows, x.dtype, data, valid_rows=x.valid_cols, valid_cols=x.valid_rows)
