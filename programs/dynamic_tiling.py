"""A two-layer perceptron over a batch of sequences of different lengths, some empty.

With dynamic tiling, all tokens of a sequence are packed to one tile, and the weights are read once
for each sequence. With static tiling, ``rows`` tokens are packed to a tile, the last tile of a
sequence is padded, and the weights are read once for each tile.

Run:      python -m fabric run programs/dynamic_tiling.py -p tiling=dynamic
Computes: y[t] = silu(x[t] @ up) @ down for the tokens t of all sequences
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from fabric import Program, Stream
from fabric.extend import Bounds
from operators import (
    Accum,
    CacheReadAddresses,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Metadata,
    Promote,
    RandomOffChipLoad,
    Reshape,
    RetileRow,
    SiLU,
    SplitRows,
)

HIDDEN = 64  # columns of x
INTER = 128  # columns between up and down


def build(
    sequences: Annotated[int, Bounds(0)] = 6,
    longest: Annotated[int, Bounds(1)] = 12,
    tiling: Literal["static", "dynamic"] = "dynamic",
    rows: int = 4,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the program for random lengths and numbers.

    Args:
        sequences: the number of sequences in the batch. Every third one is empty.
        longest: tokens of the longest possible sequence.
        tiling: ``dynamic`` or ``static``.
        rows: tokens of a tile, for static tiling.
        seed: for random lengths and numbers.
    """
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, sequences)
    lengths[1::3] = 0
    x = random.standard_normal((sequences, longest, HIDDEN))
    up = random.standard_normal((HIDDEN, INTER)) / 8
    down = random.standard_normal((INTER, HIDDEN)) / 8

    with Program("dynamic-tiling", mode="functional", channel_depth=longest + 1) as program:
        numbers = Metadata(np.arange(sequences))()
        places = CacheReadAddresses(longest)(numbers, Metadata(lengths)())  # [1, B, n~]
        tokens = RandomOffChipLoad(x, tile=(1, HIDDEN))(places)  # [1, B, n~] of 1 x hidden
        if tiling == "static":
            tokens, _ = Reshape(chunk=rows, pad=0.0)(tokens)  # [1, B, tiles~, rows]
        packed = Accum(RetileRow())(tokens)  # [1, B] of n~ x hidden, or [1, B, tiles~] of rows x ..
        y = _perceptron(packed, up, down)
        lines = FlatMap(SplitRows(valid_only=True))(y)  # of 1 x hidden
        LinearOffChipStore("y")(Promote(0)(lines))

    def reference() -> NDArray[np.float64]:
        tokens = x[np.arange(longest) < lengths[:, np.newaxis]]
        inner = tokens @ up
        result: NDArray[np.float64] = inner / (1 + np.exp(-inner)) @ down
        return result

    program.expect(y=reference)
    return program


def _perceptron(packed: Stream, up: NDArray[np.float64], down: NDArray[np.float64]) -> Stream:
    """Multiply every tile by both weights, each read once per tile."""
    upward = Flatten(0, 2)(_once_for_each(packed, up))
    inner = Map(SiLU())(Map(Matmul())(packed, upward))
    return Map(Matmul())(inner, Flatten(0, 2)(_once_for_each(inner, down)))


def _once_for_each(tiles: Stream, weight: NDArray[np.float64]) -> Stream:
    rows, cols = weight.shape
    return LinearOffChipLoad(weight, tile=(rows, cols))(tiles)  # [..., 1, 1] of the whole weight
