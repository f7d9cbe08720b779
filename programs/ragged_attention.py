"""Attention of one query per request over caches of different lengths, some empty.

Scores arrive tile by tile. A Scan computes the largest score so far, and the factor that rescales
earlier sums to it. With both, an Accum sums the numerators and denominators of the softmax. So the
scores of a request are never stored as a whole (the inner loop of FlashAttention).

Run:      python -m fabric run programs/ragged_attention.py -p requests=8
Computes: y[r] = softmax(q[r] @ k[r].T / sqrt(64)) @ v[r], zeros for requests without a cache
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabric import Program
from fabric.extend import Bounds
from operators import (
    Accum,
    CacheReadAddresses,
    Div,
    Expand,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Metadata,
    Promote,
    RandomOffChipLoad,
    RescaledSum,
    RunningMaximum,
    Scan,
    ShiftedExp,
)

HEAD = 64  # columns of q, k and v
ROWS = 8  # rows of a cache tile


def build(
    requests: Annotated[int, Bounds(0)] = 8,
    longest: Annotated[int, Bounds(1)] = 5,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the program for random lengths and numbers.

    Args:
        requests: the number of requests in the batch. Every third one has no cache.
        longest: tiles of the longest possible cache.
        seed: for random lengths and numbers.
    """
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, requests)  # in tiles
    lengths[1::3] = 0
    q = random.standard_normal((requests, HEAD)) / np.sqrt(HEAD)
    k, v = random.standard_normal((2, requests, longest * ROWS, HEAD))

    with Program("ragged-attention", mode="functional", channel_depth=longest + 1) as program:
        places = CacheReadAddresses(longest)(
            Metadata(np.arange(requests))(), Metadata(lengths)()
        )  # [1, B, n~]
        query = Flatten(0, 1)(LinearOffChipLoad(q, tile=(1, HEAD))())  # [1, B] of 1x64
        queries = Expand(1)(Promote(0)(query), places)  # [1, B, n~] of 1x64
        keys = RandomOffChipLoad(k, tile=(ROWS, HEAD))(places)  # [1, B, n~] of 8x64
        values = RandomOffChipLoad(v, tile=(ROWS, HEAD))(places)
        scores = Map(Matmul(transposed=True))(queries, keys)  # [1, B, n~] of 1x8
        running = Scan(RunningMaximum())(scores)  # [1, B, n~] of (maximum, factor)
        weights = Map(ShiftedExp())(scores, running)  # [1, B, n~] of 1x8
        sums = Accum(RescaledSum())(weights, values, running)  # [1, B] of (1x64, 1x1)
        LinearOffChipStore("y")(Promote(0)(Map(Div())(sums)))  # [1, B, 1] of 1x64

    def reference() -> NDArray[np.float64]:
        rows = np.zeros((requests, HEAD))
        for request, length in enumerate(lengths * ROWS):
            weight = np.exp(q[request] @ k[request, :length].T)
            rows[request] = weight / max(weight.sum(), 1e-9) @ v[request, :length]
        return rows

    program.expect(y=reference)
    return program
