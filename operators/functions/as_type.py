"""Tiles as another floating-point type, block-scaled ones among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, dtype_named
from fabric.extend import block_format, limits
from operators.functions.arithmetic import narrow, wide
from operators.functions.base import Function, Shaped

__all__ = ["AsType"]


@dataclass(frozen=True)
class AsType(Function):
    """The same numbers, rounded to another floating-point type.

    For a block-scaled type, each 32 neighbours of a row get a scale: the largest power of two that
    is at most their largest magnitude, divided by the largest power of two that an element can
    hold. A number that is then too large becomes the largest element.

    Shapes:
        x: R x C of a floating-point or block-scaled type; result: R x C of ``dtype``.

    Timing:
        1 operation per number; 2 for a block-scaled type, because it also looks for the largest.

    Attributes:
        dtype: name of the element type.

    Example:
        >>> x = np.arange(64.0).reshape(1, 64) % 8
        >>> with Program("example", mode="functional") as program:
        ...     scaled = Map(AsType("mxfp8_e4m3"))(LinearOffChipLoad(x, tile=(1, 64))())
        ...     LinearOffChipStore("y")(scaled)
        >>> program.expect(y=lambda: x)
        >>> print(scaled.type)
        [1, 1, 1] of 1x64 mxfp8_e4m3
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1
    floats: ClassVar[bool] = True
    block_scaled: ClassVar[bool] = True
    elementwise: ClassVar = True

    dtype: str

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        dtype = dtype_named(self.dtype)
        if limits(dtype) is not None:
            raise ShapeError(
                f"AsType makes {self.dtype} of {x}: expected the name of a floating-point type"
            )
        return TileType(x.rows, x.cols, dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        (x,) = inputs
        each = 1 if block_format(dtype_named(self.dtype)) is None else 2
        return each * x.rows * x.cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        dtype = dtype_named(self.dtype)
        data = None if x.data is None else narrow(wide(x.data), dtype, "AsType")
        return Tile(x.rows, x.cols, dtype, data, valid_rows=x.valid_rows, valid_cols=x.valid_cols)
