"""Chain: several steps on the tiles of one Map, each rounded as a call of its own would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType
from fabric.extend import kept_as
from operators.functions.arithmetic import wide
from operators.functions.base import Array, Function, Shaped
from operators.functions.steps import Shape, Step

__all__ = ["Chain", "shapes"]


@dataclass(frozen=True)
class Chain(Function):
    """Steps on tiles, one after the other; the last one gives the result.

    Shapes:
        operands: R x C, where any may have 1 row or 1 column; result: as the last step says.

    Attributes:
        count: of the operands.
        steps: each reads operands and steps before it, and is rounded to its own element type.
    """

    mixed_types: ClassVar[bool] = True

    count: int
    steps: tuple[Step, ...]

    @property
    @override
    def roundings(self) -> int:
        so_far = [0] * self.count
        for step in self.steps:
            so_far.append(max((so_far[each] for each in step.arrays), default=0) + step.rounds)
        return so_far[-1]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        if len(inputs) != self.count:
            raise ShapeError(f"Chain: number of tiles is {len(inputs)}: expected {self.count}")
        rows, cols = self._shapes(inputs)[-1]
        return TileType(rows, cols, self.steps[-1].dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        found, flops = self._shapes(inputs), 0
        for step in self.steps:
            flops = flops + step.flops(*(found[index] for index in step.arrays))
        return flops

    @override
    def apply(self, *inputs: Tile) -> Tile:
        rows, cols = self._shapes(inputs)[-1]
        dtype = self.steps[-1].dtype
        data = self._computed(inputs)
        if data is not None:
            data = data.astype(kept_as(dtype))
        valid = max((each.valid_rows for each in inputs if each.rows == rows), default=rows)
        return Tile(rows, cols, dtype, data, valid_rows=valid)

    def _shapes(self, inputs: tuple[Shaped, ...]) -> list[Shape]:
        return shapes([(each.rows, each.cols) for each in inputs], self.steps)

    def _computed(self, inputs: tuple[Tile, ...]) -> Array | None:
        arrays: list[Array] = []
        for tile in inputs:
            if tile.data is None:
                return None
            arrays.append(wide(tile.data))
        for step in self.steps:
            arrays.append(step.apply(*(arrays[index] for index in step.arrays)))
        return arrays[-1]


def shapes(operands: Sequence[Shape], steps: Sequence[Step]) -> list[Shape]:
    """Return rows and columns of the operands and of what each step gives.

    Raises:
        ShapeError: they do not fit.
    """
    found = list(operands)
    for step in steps:
        found.append(step.shape(*(found[index] for index in step.arrays)))
    return found
