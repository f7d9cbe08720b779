"""A hardware function of your own: clipping, as a frozen dataclass with its type, cost and result.

Run:      python -m fabric run programs/own_function.py -p limit=0.5
Hardware: python -m fabric rtl programs/own_function.py -o build/own --run
Computes: y = clip(x, -limit, limit)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabric import Program, Tile, TileType
from operators import Function, LinearOffChipLoad, LinearOffChipStore, Map, narrow, wide
from operators.rtl import description


@dataclass(frozen=True)
class Clip(Function):
    limit: float

    def infer(self, x: TileType) -> TileType:  # the type of the result
        return x

    def flops(self, x: Tile) -> int:  # the work, which decides the cycles
        return 2 * x.rows * x.cols

    def apply(self, x: Tile) -> Tile:  # the result; no data in timing mode
        if x.data is None:
            return x
        data = np.clip(wide(x.data), -self.limit, self.limit)
        return Tile(x.rows, x.cols, x.dtype, narrow(data, x.dtype), valid_rows=x.valid_rows)

    def hardware(self) -> description.Function:  # the sizes of the result
        return description.Function(1, lambda x: (x.rows, x.cols, x.valid_rows, x.cols))


def build(limit: float = 0.5, seed: int = 0) -> Program:
    x = np.random.default_rng(seed).standard_normal((64, 64))
    with Program("own-function", mode="functional") as program:
        LinearOffChipStore("y")(Map(Clip(limit))(LinearOffChipLoad(x, tile=(16, 16))()))
    program.expect(y=lambda: np.clip(x, -limit, limit))
    return program
