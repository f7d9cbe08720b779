"""Hardware functions of a decoder layer that STeP does not have: norm and rotary embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fabric import Dim, ShapeError, Tile, TileType
from operators import Function, narrow, wide
from operators.rtl import description

EPSILON = 1e-6


@dataclass(frozen=True)
class RmsNorm(Function):
    """Divide every ``width`` neighbours of a row by their root mean square.

    The learnt factors of the norm can be multiplied into the weights behind it.

    Shapes:
        x: R x C, where ``width`` divides C; result: the same.

    Attributes:
        width: columns that are normalised together.
    """

    operands: ClassVar = 1

    width: int

    def infer(self, x: TileType) -> TileType:
        if not isinstance(x.cols, int) or self.width < 1 or x.cols % self.width:
            raise ShapeError(
                f"RmsNorm({self.width}) is given {x}: expected columns in multiples of {self.width}"
            )
        return x

    def flops(self, x: Tile) -> Dim:
        """Count a square, a sum, a root and a division for every number."""
        return 4 * x.rows * x.cols

    def apply(self, x: Tile) -> Tile:
        data = None
        if x.data is not None:
            groups = wide(x.data).reshape(x.rows, -1, self.width)
            mean = np.square(groups).mean(axis=2, keepdims=True)
            data = narrow((groups / np.sqrt(mean + EPSILON)).reshape(x.rows, x.cols), x.dtype)
        return Tile(x.rows, x.cols, x.dtype, data, valid_rows=x.valid_rows)

    def hardware(self) -> description.Function:
        return description.Function(1, lambda x: (x.rows, x.cols, x.valid_rows, x.cols))


@dataclass(frozen=True)
class Rotary(Function):
    """Rotate pairs of columns by angles that grow with the position, 3 operations per element.

    Column i of a head and column i + width / 2 are a pair, which is rotated by
    ``position / base ** (2 * i / width)``. Sines and cosines, times ``scale``, come from a table in
    the unit.

    Shapes:
        x: R x C, where ``width`` divides C; positions: R x 1, integers; result: R x C.

    Attributes:
        width: columns of a head, even.
        base: the base of the angles.
        scale: the factor of the result.
    """

    operands: ClassVar = 2
    mixed_types: ClassVar = True

    width: int
    base: float
    scale: float = 1.0

    def infer(self, x: TileType, positions: TileType) -> TileType:
        if not isinstance(x.cols, int) or self.width % 2 or x.cols % self.width:
            raise ShapeError(
                f"Rotary of width {self.width} is given {x}: "
                "expected an even width, and columns in multiples of the width"
            )
        if (positions.rows, positions.cols) != (x.rows, 1):
            raise ShapeError(
                f"Rotary is given {x} and {positions}: expected a position for each row"
            )
        return x

    def flops(self, x: Tile, positions: Tile) -> Dim:
        """Count two products and a sum for every element."""
        return 3 * x.rows * x.cols

    def apply(self, x: Tile, positions: Tile) -> Tile:
        data = None
        if x.data is not None and positions.data is not None:
            half = self.width // 2
            angles = positions.data / self.base ** (np.arange(half) / half)  # R x half
            pairs = wide(x.data).reshape(x.rows, -1, 2, half)
            cos, sin = (
                (self.scale * part)[:, np.newaxis].astype(pairs.dtype)
                for part in (np.cos(angles), np.sin(angles))
            )
            left, right = pairs[:, :, 0], pairs[:, :, 1]
            turned = np.stack([left * cos - right * sin, right * cos + left * sin], axis=2)
            data = narrow(turned.reshape(x.rows, x.cols), x.dtype)
        return Tile(x.rows, x.cols, x.dtype, data, valid_rows=x.valid_rows)

    def hardware(self) -> description.Function:
        return description.Function(2, lambda x, _: (x.rows, x.cols, x.valid_rows, x.cols))
