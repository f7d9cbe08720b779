"""The simplified mixture of experts of the paper's section 3.3 (figures 6 and 7, listing 1).

Each token goes to one expert, which is one matrix product. Four tokens of an expert are packed
to a tile. The last tile of an expert is padded. Weights are read once per packed tile.

Run:      python -m fabric run programs/simplified_moe.py -p tokens=10 -p seed=0
Computes: y[t] = x[t] @ w[expert of t]
"""

from __future__ import annotations

import numpy as np

from fabric import ConfigurationError, Program
from operators import (
    Accum,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Partition,
    Reassemble,
    Repeat,
    Reshape,
    RetileCol,
    RetileRow,
    Selectors,
    SplitRows,
)

HIDDEN = 64  # columns of x
OUTPUT = 256  # columns of y
ROWS = 4  # tokens in a packed tile
COLS = 64  # columns of a weight tile


def build(tokens: int = 10, experts: int = 2, seed: int = 0) -> Program:
    """Wire the program for random tokens, weights and routing."""
    if tokens < 0 or experts < 1 or seed < 0:
        raise ConfigurationError(f"{tokens=}, {experts=}, {seed=}: expected at least 0, 1 and 0")
    random = np.random.default_rng(seed)
    x = random.standard_normal((tokens, HIDDEN)).astype(np.float32)
    weights = random.standard_normal((experts, HIDDEN, OUTPUT)).astype(np.float32)
    choice = random.integers(0, experts, (tokens, 1))

    # A row waits until the tile of its expert is full, and rows of other experts wait behind it.
    with Program("simplified-moe", mode="functional", channel_depth=max(2, tokens)) as program:
        rows = LinearOffChipLoad(x, tile=(1, HIDDEN))()  # [1, T, 1] of 1x64
        tokens_in = Flatten(1, 2)(rows)  # [T, 1] of 1x64
        route = Flatten(0, 1)(Selectors(choice, width=experts)())  # [T]
        done = []
        for weight, routed in zip(
            weights, Partition(experts, rank=1)(tokens_in, route), strict=True
        ):  # [D_i, 1] of 1x64
            chunks, _ = Reshape(chunk=ROWS, pad=0.0)(Flatten(0, 1)(routed))  # [ceil(D_i/4), 4]
            packed = Accum(RetileRow())(chunks)  # [ceil(D_i/4)] of 4x64
            repeated = Repeat(OUTPUT // COLS)(packed)  # [ceil(D_i/4), 4] of 4x64
            tiles = LinearOffChipLoad(weight, tile=(HIDDEN, COLS))(packed)  # [.., 1, 4] of 64x64
            columns = Map(Matmul())(repeated, Flatten(0, 1)(tiles))  # [ceil(D_i/4), 4] of 4x64
            out = Accum(RetileCol())(columns)  # [ceil(D_i/4)] of 4x256
            done.append(FlatMap(SplitRows(valid_only=True))(out))  # [D_i] of 1x256
        y = Reassemble()(done, route)  # [T, 1] of 1x256
        LinearOffChipStore("y")(y)

    program.expect(y=lambda: np.einsum("th,tho->to", x, weights[choice[:, 0]]))
    return program
