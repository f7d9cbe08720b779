"""SwiGLU experts, each stage wired over all of them (or all regions) before the next one.

The order in which loads are wired is the order in which the HBM serves them: all up weights, all
gate weights, all down weights. N is the rows of a packed tile, D the hidden dimension, F the inner
one; J = F / tile_f weight tiles make up an expert's matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric import Stream
from operators import (
    Accum,
    EagerMerge,
    ExpertAddresses,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    Map,
    Matmul,
    MatmulSum,
    Mul,
    Partition,
    RandomOffChipLoad,
    Repeat,
    Reshape,
    RetileRow,
    SiLU,
    SplitRows,
    Tensor,
)

__all__ = ["ExpertWeights", "experts", "pack", "pack_dynamically"]


@dataclass(frozen=True)
class ExpertWeights:
    """Weights of the experts of one region, one below the other.

    Attributes:
        up, gate: [experts of the region, D, F].
        down: [experts of the region, F, D].
    """

    up: Tensor
    gate: Tensor
    down: Tensor


def pack(routed: Sequence[Stream], rows: int) -> list[Stream]:
    """Pack ``rows`` tokens to a tile, the last tile of an expert padded: [D_i] -> [n_i] of NxD."""
    chunks = [Reshape(rows, pad=0.0, outermost=True)(each)[0] for each in routed]  # [c_i, n_i, N]
    chunks = [Flatten(1, 2)(each) for each in chunks]  # [n_i, N] of 1xD
    return [Accum(RetileRow())(each) for each in chunks]  # [n_i] of NxD


def pack_dynamically(routed: Sequence[Stream]) -> list[Stream]:
    """Pack all tokens of an expert into one tile: [D_i] -> [c_i] of D_i x D, c_i = 1 or 0."""
    chunks = [Reshape(1, outermost=True)(each)[0] for each in routed]  # [c_i, D_i, 1]
    chunks = [Flatten(0, 1)(each) for each in chunks]  # [c_i, D_i] of 1xD
    return [Accum(RetileRow())(each) for each in chunks]  # [c_i] of D_i x D


def experts(
    packed: Sequence[Stream], weights: Sequence[ExpertWeights], tile_f: int
) -> list[Stream]:
    """Compute ``(silu(x @ gate) * (x @ up)) @ down`` for every expert.

    Args:
        packed: per expert, [n_i] of NxD.
        weights: per region, for ``len(packed) / len(weights)`` neighbouring experts.
        tile_f: columns of a weight tile; it divides F.

    Returns:
        Per expert, [D_i] of 1xD.
    """
    share = len(packed) // len(weights)
    hidden, inter = weights[0].up.shape[1:]
    tiles = inter // tile_f
    if share == 1:
        rows, readings, selectors = list(packed), list(packed), []
    else:
        # First come first served: [n], the sum of the region's n_i, of NxD; and whose it is.
        merged = [
            EagerMerge()(packed[first : first + share]) for first in range(0, len(packed), share)
        ]
        rows, selectors = [data for data, _ in merged], [selector for _, selector in merged]
        readings = [ExpertAddresses(tiles)(selector) for selector in selectors]  # [n, J, 1]

    def load(part: Tensor, tile: tuple[int, int], reading: Stream) -> Stream:
        """[n] or addresses -> [n, J] of weight tiles."""
        if share == 1:
            loaded = LinearOffChipLoad(part, tile, shape=(tiles, 1), strides=(1, 1))(reading)
        else:
            loaded = RandomOffChipLoad(part, tile)(reading)
        return Flatten(0, 1)(loaded)

    pairs = list(zip(weights, readings, strict=True))
    repeated = [Repeat(tiles)(each) for each in rows]  # [n, J] of NxD
    ups = [load(each.up, (hidden, tile_f), reading) for each, reading in pairs]  # of D x tile_f
    upped = [Map(Matmul())(*each) for each in zip(repeated, ups, strict=True)]  # of N x tile_f
    gates = [load(each.gate, (hidden, tile_f), reading) for each, reading in pairs]
    gated = [Map(Matmul())(*each) for each in zip(repeated, gates, strict=True)]
    activated = [Map(SiLU())(each) for each in gated]
    product = [Map(Mul())(*each) for each in zip(upped, activated, strict=True)]  # N x tile_f
    downs = [load(each.down, (tile_f, hidden), reading) for each, reading in pairs]  # tile_f x D
    out = [Accum(MatmulSum())(*each) for each in zip(product, downs, strict=True)]  # [n] of NxD
    if share > 1:
        pairs_out = zip(out, selectors, strict=True)
        out = [one for each, selector in pairs_out for one in Partition(share)(each, selector)]
    return [FlatMap(SplitRows(valid_only=True))(each) for each in out]  # [D_i] of 1xD
