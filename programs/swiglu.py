"""The SwiGLU layer that the paper validates against a hardware description (figure 8).

The products with gate and up read whole rows of x. The product with down reads a part of its inner
dimension at a time, and sums the parts on chip.

Run:      python -m fabric run programs/swiglu.py --hardware programs/hardware/hdl_validation.toml
Computes: y = (silu(x @ gate) * (x @ up)) @ down
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Program
from fabric.extend import Bounds
from operators import (
    Accum,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    MatmulSum,
    Mul,
    Reshape,
    SiLU,
    Tensor,
)

MOST = 2**31 - 1  # rows or columns


def build(
    batch: Annotated[int, Bounds(1, MOST)] = 64,
    hidden: Annotated[int, Bounds(1, MOST)] = 256,
    inter: Annotated[int, Bounds(1, MOST)] = 512,
    tile_batch: int = 16,
    tile_inter: int = 16,
    seed: Annotated[int, Bounds(0)] = 42,
    by_columns: bool = False,
) -> Program:
    """Wire one expert for ``batch`` tokens.

    Args:
        batch: rows of x and y.
        hidden: columns of x and y.
        inter: columns of gate and up.
        tile_batch: rows of a tile; it divides ``batch``.
        tile_inter: columns of a tile of gate and up; it divides ``inter``.
        seed: for all data.
        by_columns: gate and up are stored column by column, so that all tiles have rows of
            ``hidden`` elements.
    """
    for name, tile, what, whole in (
        ("tile_batch", tile_batch, "batch", batch),
        ("tile_inter", tile_inter, "inter", inter),
    ):
        if tile < 1 or whole % tile:
            raise ConfigurationError(f"{name} is {tile}: expected a divisor of {what}={whole}")

    def random(part: int, rows: int, cols: int) -> Tensor:
        def numbers() -> NDArray[np.float32]:
            random = np.random.default_rng((seed, part))
            return random.standard_normal((rows, cols), dtype=np.float32) * np.float32(cols**-0.5)

        return Tensor((rows, cols), numbers)

    x, down = random(0, batch, hidden), random(3, inter, hidden)
    weight_shape, weight_tile = (hidden, inter), (hidden, tile_inter)
    if by_columns:
        weight_shape, weight_tile = weight_shape[::-1], weight_tile[::-1]
    gate, up = random(1, *weight_shape), random(2, *weight_shape)
    rows, cols = batch // tile_batch, inter // tile_inter  # tiles

    with Program("swiglu") as program:
        # [1, rows, cols, 1] of tile_batch x hidden, read again for every column block
        x_tiles = LinearOffChipLoad(
            x, tile=(tile_batch, hidden), shape=(rows, cols, 1), strides=(1, 0, 1)
        )()
        # [1, rows, cols, 1] of hidden x tile_inter (or transposed), read again for every row block
        gate_tiles, up_tiles = (
            LinearOffChipLoad(
                weight, tile=weight_tile, shape=(rows, cols, 1), strides=(0, 1, cols)
            )()
            for weight in (gate, up)
        )
        # [1, rows, cols] of tile_batch x tile_inter
        gated = Accum(MatmulSum(transposed=by_columns))(x_tiles, gate_tiles)
        upped = Accum(MatmulSum(transposed=by_columns))(x_tiles, up_tiles)
        product = Map(Mul())(Map(SiLU())(gated), upped)
        inner, _ = Reshape(chunk=1, dimension=1)(product)  # [1, rows, 1, cols]
        # [1, rows, 1, cols] of tile_inter x hidden
        down_tiles = LinearOffChipLoad(
            down, tile=(tile_inter, hidden), shape=(rows, 1, cols), strides=(0, 1, 1)
        )()
        y = Accum(MatmulSum(), to_memory=True)(inner, down_tiles)  # [1, rows, 1]
        LinearOffChipStore("y")(y)

    def reference() -> NDArray[np.float64]:
        inputs = x.array.astype(np.float64)
        gates, ups = (
            inputs @ (weight.array.T if by_columns else weight.array) for weight in (gate, up)
        )
        result: NDArray[np.float64] = (gates / (1 + np.exp(-gates)) * ups) @ down.array
        return result

    program.expect(y=reference)
    return program
