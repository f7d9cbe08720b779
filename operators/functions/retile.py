"""Retiling: tiles put together by rows or columns, and taken apart again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, Layout, Tile, TileType
from fabric.extend import Loop, kept_as
from operators.functions.base import Shaped
from operators.functions.reduction import Reduction, State

__all__ = ["RetileCol", "RetileRow"]


class _Retile(Reduction):
    """Concatenate the tiles of a group; no cycles.

    The result is where the inputs were, and its valid rows (columns) are theirs, added up.
    """

    operands: ClassVar = 1

    @property
    @override
    def roundings(self) -> int:
        return 0

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 0

    @property
    @override
    def keeps_placement(self) -> bool:
        return True

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def start(self, result: TileType, functional: bool) -> State:
        return []

    @override
    def start_bytes(self, result: TileType) -> int:
        return 0

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        return inputs[0].size_bytes

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        state.append(inputs[0])
        return state


@dataclass(frozen=True)
class RetileRow(_Retile):
    """Put the tiles of a group below each other.

    Shapes:
        R x C tiles in groups of G: (G * R) x C; R and G may be decided by data.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     packed = Accum(RetileRow(), rank=2)(rows)
        ...     LinearOffChipStore("y")(packed)
        >>> print(rows.type)
        [1, 4, 1] of 1x64 bfloat16
        >>> print(packed.type)
        [1] of 4x64 bfloat16
        >>> print(simulate(program).cycles)
        113
    """

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        last = len(layout.shape) - 1
        tile = list(layout.tile)
        for trips, step, dim in reversed(layout.nested(inner).canonical().loops):
            if dim is None or dim == last or step != tile[dim] or math.prod(tile[:dim]) > 1:
                return "it puts tiles below each other that are not so in the tensor"
            tile[dim] *= trips
        return layout.nested(outer, tuple(tile))

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        (tile,) = inputs
        return TileType(group * tile.rows, tile.cols, tile.dtype)

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if not state:
            cols = result.cols if isinstance(result.cols, int) else 0
            empty = np.zeros((0, cols), kept_as(result.dtype)) if functional else None
            return Tile(0, cols, result.dtype, empty)
        return Tile(
            sum(tile.rows for tile in state),
            state[0].cols,
            result.dtype,
            _joined(state, axis=0) if functional else None,
            in_memory=state[0].in_memory,
            valid_rows=sum(tile.valid_rows for tile in state),
            valid_cols=state[0].valid_cols,
        )


@dataclass(frozen=True)
class RetileCol(_Retile):
    """Put the tiles of a group beside each other.

    Shapes:
        R x C tiles in groups of G: R x (G * C); C and G may be decided by data.

    Example:
        >>> with Program("example") as program:
        ...     parts = LinearOffChipLoad(np.ones((4, 256)), tile=(4, 64))()
        ...     row = Accum(RetileCol())(parts)
        ...     LinearOffChipStore("y")(row)
        >>> print(parts.type)
        [1, 1, 4] of 4x64 bfloat16
        >>> print(row.type)
        [1, 1] of 4x256 bfloat16
        >>> print(simulate(program).cycles)
        167
    """

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        last = len(layout.shape) - 1
        tile = list(layout.tile)
        for trips, step, dim in reversed(layout.nested(inner).canonical().loops):
            if dim != last or step != tile[last]:
                return "it puts tiles beside each other that are not so in the tensor"
            tile[last] *= trips
        return layout.nested(outer, tuple(tile))

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        (tile,) = inputs
        return TileType(tile.rows, group * tile.cols, tile.dtype)

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if not state:
            rows = result.rows if isinstance(result.rows, int) else 0
            empty = np.zeros((rows, 0), kept_as(result.dtype)) if functional else None
            return Tile(rows, 0, result.dtype, empty)
        return Tile(
            state[0].rows,
            sum(tile.cols for tile in state),
            result.dtype,
            _joined(state, axis=1) if functional else None,
            in_memory=state[0].in_memory,
            valid_rows=state[0].valid_rows,
            valid_cols=sum(tile.valid_cols for tile in state),
        )


def _joined(tiles: list[Tile], axis: int) -> np.ndarray:
    """Return their data in one array that nobody can write to: tiles are packed to be reread."""
    data = np.concatenate([tile.data for tile in tiles if tile.data is not None], axis=axis)
    data.flags.writeable = False
    return data
