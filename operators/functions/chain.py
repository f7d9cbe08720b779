"""Chain: several steps on the tiles of one Map, each rounded as a call of its own would be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, product
from operators.functions.base import Array, Function, Shaped, wide
from operators.functions.steps import Shape, Step

__all__ = ["Chain"]


@dataclass(frozen=True)
class Chain(Function):
    """Steps on tiles, one after the other; the last one gives the result.

    A tile is an array of any number of dimensions, its last one in the columns and all others in
    the rows, so that rows that several heads share are broadcast to them.

    Attributes:
        shapes: of the operands' arrays; None for tiles of as many rows and columns as they have.
        steps: each reads operands and steps before it, and is rounded to its own element type.
    """

    mixed_types: ClassVar[bool] = True

    shapes: tuple[tuple[int, ...] | None, ...]
    steps: tuple[Step, ...]

    @property
    def result_shape(self) -> Shape:
        """Of the result's array, where no tile's size decides it."""
        assert self._fixed is not None
        return self._fixed[0][-1]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        if len(inputs) != len(self.shapes):
            raise ShapeError(
                f"Chain is given {len(inputs)} tiles: expected {len(self.shapes)}, one for each "
                "of its shapes"
            )
        for given, shape in zip(inputs, self.shapes, strict=True):
            if shape is not None and given.rows * given.cols != math.prod(shape):
                raise ShapeError(
                    f"Chain is given {given}: expected the elements of {'x'.join(map(str, shape))}"
                )
        result = self._shapes(inputs)[-1]
        return TileType(product(result[:-1]), product(result[-1:]), self.steps[-1].dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        if self._fixed is not None:
            return self._fixed[1]
        return self._flops(self._shapes(inputs))

    @override
    def apply(self, *inputs: Tile) -> Tile:
        result = self._shapes(inputs)[-1]
        rows, cols = math.prod(result[:-1]), math.prod(result[-1:])
        dtype = self.steps[-1].dtype
        data = self._computed(inputs)
        if data is not None:
            data = np.broadcast_to(data, result).reshape(rows, cols).astype(dtype)
        valid = max((each.valid_rows for each in inputs if each.rows == rows), default=rows)
        return Tile(rows, cols, dtype, data, valid_rows=valid)

    def _computed(self, inputs: tuple[Tile, ...]) -> Array | None:
        arrays: list[Array] = []
        for tile, shape in zip(inputs, self.shapes, strict=True):
            if tile.data is None:
                return None
            array = wide(tile.data)
            arrays.append(array if shape is None else array.reshape(shape))
        for step in self.steps:
            arrays.append(step.apply(*(arrays[index] for index in step.arrays)))
        return arrays[-1]

    @cached_property
    def _fixed(self) -> tuple[list[Shape], Dim] | None:
        """The shapes and the operations where no tile's size decides them."""
        fixed = [shape for shape in self.shapes if shape is not None]
        if len(fixed) < len(self.shapes):
            return None
        found = self._through(list(fixed))
        return found, self._flops(found)

    def _shapes(self, inputs: tuple[Shaped, ...]) -> list[Shape]:
        """Return the shapes of all arrays, operands first and then steps."""
        if self._fixed is not None:
            return self._fixed[0]
        return self._through(
            [
                (tile.rows, tile.cols) if shape is None else shape
                for tile, shape in zip(inputs, self.shapes, strict=True)
            ]
        )

    def _through(self, found: list[Shape]) -> list[Shape]:
        for step in self.steps:
            found.append(step.shape(*(found[index] for index in step.arrays)))
        return found

    def _flops(self, found: list[Shape]) -> Dim:
        flops: Dim = 0
        for step in self.steps:
            flops = flops + step.flops(*(found[index] for index in step.arrays))
        return flops
