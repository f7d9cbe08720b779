"""SwiGLU experts. Each stage is wired for all experts (or regions) before the next stage.

The order in which loads are wired is the order in which the HBM serves them: all up weights, all
gate weights, all down weights. N rows of a packed tile; D columns of a token; F columns between up
and down; J = F / tile_f weight tiles of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True)
class ExpertWeights:
    """The weights of the experts of one region.

    Attributes:
        up, gate: [experts of the region, D, F].
        down: [experts of the region, F, D].
    """

    up: Tensor
    gate: Tensor
    down: Tensor


def pack(routed: Sequence[Stream], rows: int, prefix: str = "") -> list[Stream]:
    """Pack ``rows`` tokens to a tile, and pad the last tile: from [D_i] to [n_i] of NxD."""
    chunks = [Reshape(rows, pad=0.0, outermost=True)(each)[0] for each in routed]  # [c_i, n_i, N]
    chunks = [Flatten(1, 2)(each) for each in chunks]  # [n_i, N] of 1xD
    # [n_i] of NxD
    return [Accum(RetileRow(), name=f"{prefix}pack_{i}")(each) for i, each in enumerate(chunks)]


def pack_dynamically(routed: Sequence[Stream], prefix: str = "") -> list[Stream]:
    """Pack all tokens of an expert into one tile: from [D_i] to [c_i] of D_i x D, c_i = 1 or 0."""
    chunks = [Reshape(1, outermost=True)(each)[0] for each in routed]  # [c_i, D_i, 1]
    chunks = [Flatten(0, 1)(each) for each in chunks]  # [c_i, D_i] of 1xD
    # [c_i] of D_i x D
    return [Accum(RetileRow(), name=f"{prefix}pack_{i}")(each) for i, each in enumerate(chunks)]


def experts(
    packed: Sequence[Stream], weights: Sequence[ExpertWeights], tile_f: int, prefix: str = ""
) -> list[Stream]:
    """Compute ``(silu(x @ gate) * (x @ up)) @ down`` for every expert.

    Args:
        packed: for each expert, [n_i] of NxD.
        weights: for each region of ``len(packed) / len(weights)`` neighbouring experts.
        tile_f: columns of a weight tile; it divides F.
        prefix: the prefix of operators' names.

    Returns:
        For each expert, [D_i] of 1xD.
    """
    share = len(packed) // len(weights)
    hidden, inter = weights[0].up.shape[1:]
    tiles = inter // tile_f
    if share == 1:
        rows, readings, selectors = list(packed), list(packed), []
    else:
        # Tiles in order of arrival, [n] of NxD, and their experts, [n]. n is the sum of the n_i.
        merged = [
            EagerMerge(name=f"{prefix}merge_{i}")(packed[first : first + share])
            for i, first in enumerate(range(0, len(packed), share))
        ]
        rows, selectors = [data for data, _ in merged], [selector for _, selector in merged]
        readings = [ExpertAddresses(tiles)(selector) for selector in selectors]  # [n, J, 1]

    def load(name: str, part: Tensor, tile: tuple[int, int], reading: Stream) -> Stream:
        """Return [n, J] of weight tiles, from [n] or from addresses."""
        if share > 1:
            loaded = RandomOffChipLoad(part, tile, name=prefix + name)(reading)
        else:
            loaded = LinearOffChipLoad(part, tile, (tiles, 1), (1, 1), name=prefix + name)(reading)
        return Flatten(0, 1)(loaded)

    numbered = list(enumerate(zip(weights, readings, strict=True)))
    inwards, outwards = (hidden, tile_f), (tile_f, hidden)
    repeated = [Repeat(tiles, name=f"{prefix}repeat_{i}")(each) for i, each in enumerate(rows)]
    # [n, J] of D x tile_f
    ups = [load(f"load_up_{i}", each.up, inwards, reading) for i, (each, reading) in numbered]
    # [n, J] of N x tile_f
    upped = [Map(Matmul(), name=f"{prefix}up_{i}")(*each) for i, each in _pairs(repeated, ups)]
    gates = [load(f"load_gate_{i}", each.gate, inwards, reading) for i, (each, reading) in numbered]
    gated = [Map(Matmul(), name=f"{prefix}gate_{i}")(*each) for i, each in _pairs(repeated, gates)]
    active = [Map(SiLU(), name=f"{prefix}silu_{i}")(each) for i, each in enumerate(gated)]
    inner = [Map(Mul(), name=f"{prefix}product_{i}")(*each) for i, each in _pairs(upped, active)]
    # [n, J] of tile_f x D
    downs = [
        load(f"load_down_{i}", each.down, outwards, reading) for i, (each, reading) in numbered
    ]
    # [n] of NxD
    out = [Accum(MatmulSum(), name=f"{prefix}down_{i}")(*each) for i, each in _pairs(inner, downs)]
    if share > 1:
        out = [one for _, each in _pairs(out, selectors) for one in Partition(share)(*each)]
    # Per expert [D_i] of 1xD
    split = SplitRows(valid_only=True)
    return [FlatMap(split, name=f"{prefix}rows_{i}")(each) for i, each in enumerate(out)]


def _pairs(
    left: Sequence[Stream], right: Sequence[Stream]
) -> Iterator[tuple[int, tuple[Stream, Stream]]]:
    return enumerate(zip(left, right, strict=True))
