"""Reductions to one tile of the inputs' size, and to a signal that all were read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, Layout, ShapeError, Tile, TileType
from fabric.extend import Loop, Value, ValueType, kept_as
from operators.functions.arithmetic import narrow, plus, wide
from operators.functions.base import Operand, Shaped
from operators.functions.reduction import Reduction, State
from operators.tiles.integers import INTEGER, integer

__all__ = ["SignalAllRead", "Sum"]


@dataclass(frozen=True)
class Sum(Reduction):
    """The sum of the tiles of a group, one operation per element; in float32 until it is emitted.

    Shapes:
        tiles of a group: R x C; result: R x C.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     LinearOffChipStore("y")(Accum(Sum(), rank=2)(rows))
        >>> program.expect(y=lambda: x.sum(axis=0, keepdims=True))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[0].rows * inputs[0].cols

    @override
    def start(self, result: TileType, functional: bool) -> State:
        return None

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        return inputs[0].size_bytes if state is None else 0

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        (tile,) = inputs
        if state is None:
            return tile, None if tile.data is None else wide(tile.data)
        _, total = state
        return tile, None if tile.data is None else plus(total, wide(tile.data))

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if state is None:
            rows = result.rows if isinstance(result.rows, int) else 0
            cols = result.cols if isinstance(result.cols, int) else 0
            zeros = np.zeros((rows, cols), kept_as(result.dtype)) if functional else None
            return Tile(rows, cols, result.dtype, zeros)
        tile, total = state
        data = None if total is None else narrow(total, result.dtype, "Sum")
        return Tile(tile.rows, tile.cols, result.dtype, data)

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        shape = list(layout.shape)
        for dim in {loop.dim for loop in inner if loop.trips > 1}:
            if dim is None:
                continue
            along = layout.nested([loop for loop in inner if loop.dim == dim])
            whole = [Loop(shape[dim] // layout.tile[dim], layout.tile[dim], dim)]
            moves = any(loop.dim == dim and loop.trips > 1 for loop in outer)
            uneven = layout.start[dim] or shape[dim] % layout.tile[dim]
            if list(along.canonical().loops) != whole or moves or uneven:
                return "its groups are parts of a dimension"
            shape[dim] = layout.tile[dim]
        return replace(layout.nested(outer), shape=tuple(shape))


@dataclass(frozen=True)
class SignalAllRead(Reduction):
    """The number 1 when all values of a group have come; one cycle per value.

    Shapes:
        values of a group: any, acknowledgements of stores, too; result: 1 x 1, an integer.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     signal = Accum(SignalAllRead(), rank=2)(rows)
        ...     Consumer()(signal)
        >>> print(signal.type)
        [1] of 1x1 uint64
        >>> print(simulate(program).cycles)
        85
    """

    operands: ClassVar = 1

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        if len(operands) != 1:
            found = ", ".join(map(str, operands)) or "nothing"
            raise ShapeError(f"{name} is given {found}: expected 1 value")
        return operands

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

    @override
    def infer(self, group: Dim, *inputs: Operand) -> TileType:
        return INTEGER

    @override
    def flops(self, *inputs: Operand) -> Dim:
        return 0

    @override
    def start(self, result: TileType, functional: bool) -> State:
        return None

    @override
    def update(self, state: State, *inputs: Value) -> State:
        return None

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        return integer(1)
