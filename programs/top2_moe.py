"""A mixture of experts in which every token goes to two experts, and some experts get no token.

Tokens of an expert are packed to tiles, and the last tile is padded. The streams of an expert
without tokens are empty, so it reads no weights.

Run:      python -m fabric run programs/top2_moe.py -p tokens=12 -p experts=6
Computes: y[t] = sum over both experts e of token t of share[t, e] * silu(x[t] @ w[e])
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Program, Stream
from fabric.extend import Bounds
from operators import (
    Accum,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Mul,
    Partition,
    Promote,
    Reassemble,
    Reshape,
    RetileRow,
    Selectors,
    SiLU,
    SplitRows,
    Sum,
)

HIDDEN = 32  # columns of x
OUTPUT = 64  # columns of y
ROWS = 4  # tokens in a packed tile


def build(
    tokens: Annotated[int, Bounds(0)] = 12, experts: int = 6, seed: Annotated[int, Bounds(0)] = 0
) -> Program:
    """Wire the layer for random tokens, weights and routing.

    Args:
        tokens: the number of tokens.
        experts: the number of experts, at least 4. Experts with odd numbers get no token.
        seed: for the routing and all numbers.
    """
    if experts < 4:
        raise ConfigurationError(f"experts is {experts}: expected at least 4, so that 2 are used")
    random = np.random.default_rng(seed)
    x = random.standard_normal((tokens, HIDDEN))
    weights = random.standard_normal((experts, HIDDEN, OUTPUT)) / 6
    used = np.arange(0, experts, 2)
    choice = np.sort(random.permuted(np.tile(used, (tokens, 1)), axis=1)[:, :2], axis=1)
    shares = random.uniform(0.2, 0.8, (tokens, 2))

    # A token waits until the tiles of both of its experts are full, and all others wait behind it.
    with Program("top2-moe", mode="functional", channel_depth=max(1, 2 * tokens)) as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(x, tile=(1, HIDDEN))())  # [1, T] of 1x32
        route = Selectors(choice, experts)()  # [1, T], two hits each
        single = Selectors(choice[:, :, np.newaxis], experts)()  # [1, T, 2], one hit each
        scales = LinearOffChipLoad(shares, tile=(1, 1))()  # [1, T, 2] of 1x1
        routed = Partition(experts)(rows, route)  # per expert [D_i] of 1x32
        shared = Partition(experts)(scales, single)  # per expert [D_i] of 1x1
        done = [
            Map(Mul())(_expert(part, weight), scale)  # [D_i] of 1x64
            for part, weight, scale in zip(routed, weights, shared, strict=True)
        ]
        y = Accum(Sum())(Reassemble()(done, route))  # [1, T, 2] -> [1, T] of 1x64
        LinearOffChipStore("y")(Promote(0)(y))

    def reference() -> NDArray[np.float64]:
        inner = np.einsum("td,tkdo->tko", x, weights[choice])
        activated = inner / (1 + np.exp(-inner))
        result: NDArray[np.float64] = (activated * shares[:, :, None]).sum(axis=1)
        return result

    program.expect(y=reference)
    return program


def _expert(tokens: Stream, weight: NDArray[np.float64]) -> Stream:
    """Compute one expert: [D] of 1x32 to [D] of 1x64."""
    chunks, _ = Reshape(chunk=ROWS, pad=0.0)(tokens)  # [ceil(D / 4), 4]
    packed = Accum(RetileRow())(chunks)  # [ceil(D / 4)] of 4x32
    read = LinearOffChipLoad(weight, tile=weight.shape)(packed)  # [ceil(D / 4), 1, 1] of 32x64
    out = Map(SiLU())(Map(Matmul())(packed, Flatten(0, 2)(read)))  # [ceil(D / 4)] of 4x64
    return FlatMap(SplitRows(valid_only=True))(out)
