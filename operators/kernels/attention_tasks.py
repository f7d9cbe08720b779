"""The inner loop of attention over tiles of keys: a softmax that comes piece by piece.

Source: FlashAttention, arXiv 2205.14135, algorithm 1; Streaming Tensor Programs, arXiv
2511.07776v2, section 5.5 for how STeP wires it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabric import Stream
from fabric.extend import dtype_name
from operators.accum import Accum
from operators.expand import Expand
from operators.flatten import Flatten
from operators.functions.attention import AttentionScores, MaskScores, Quotient
from operators.functions.softmax import RescaledSum, RunningMaximum, ShiftedExp
from operators.kernels.attention_keys import Lists, Sizes, dealt, integers, selectors
from operators.map import Map
from operators.metadata import Metadata
from operators.partition import Partition
from operators.promote import Promote
from operators.random_off_chip_load import RandomOffChipLoad
from operators.reassemble import Reassemble
from operators.scan import Scan
from operators.tiles.tensor import Tensor

__all__ = ["Masks", "attend"]


@dataclass(frozen=True, eq=False)
class Masks:
    """Tiles of masks, and which scores take them.

    Attributes:
        table: in off-chip memory, tiles below each other.
        tile: rows and columns of one.
        numbers: of each task, for each tile of keys that it sees, the tile of the table; -1 for
            none.
    """

    table: Tensor
    tile: tuple[int, int]
    numbers: Lists


def attend(
    name: str,
    queries: Stream,
    keys: Stream,
    values: Stream,
    masks: Masks,
    *,
    sizes: Sizes,
    scale: float,
    dtype: np.dtype,
) -> Stream:
    """Return ``softmax(scale * queries @ keys.T + mask) @ values`` for each task.

    A task that sees no key gives zeros.

    Args:
        name: what the names of its operators start with.
        queries: [1, tasks] of R x d.
        keys: [1, tasks, n] of N x d.
        values: [1, tasks, n] of N x e.
        masks: of the scores.
        sizes: that known data give to dimensions are added to.
        scale: of the scores.
        dtype: that the result is rounded to.

    Returns:
        [1, tasks] of R x e.
    """
    values = values.assume(*keys.shape)
    repeated = Expand(name=f"{name}_queries")(Promote(0)(queries), keys)  # [1, tasks, n] of R x d
    product = Map(AttentionScores(scale), name=f"{name}_scores")
    scores = _masked(name, product(repeated, keys), masks, sizes)  # [1, tasks, n] of R x N
    running = Scan(RunningMaximum(), name=f"{name}_maximum")(scores)  # of (R x 1, R x 1)
    weights = Map(ShiftedExp(), name=f"{name}_exp")(scores, running)  # of R x N
    sums = Accum(RescaledSum(), name=f"{name}_weighted")(weights, values, running)  # [1, tasks]
    return Map(Quotient(dtype_name(dtype)), name=f"{name}_quotient")(sums)


def _masked(name: str, scores: Stream, masks: Masks, sizes: Sizes) -> Stream:
    """Return scores with their masks: those that take none pass by."""
    taken = [number for each in masks.numbers for number in each if number >= 0]
    count = sum(map(len, masks.numbers))
    if not taken:
        return scores

    def loaded(addresses: Stream) -> Stream:
        return RandomOffChipLoad(masks.table, masks.tile, name=f"{name}_mask_load")(addresses)

    masking = Map(MaskScores(), name=f"{name}_mask")
    if len(taken) == count:
        return masking(scores, loaded(integers(masks.numbers, sizes)).assume(*scores.shape))
    chosen = [[int(number >= 0) for number in each] for each in masks.numbers]
    route = selectors(chosen, 2, sizes).assume(*scores.shape)
    plain, partly = Partition(2, name=f"{name}_partly")(scores, route)
    sizes.extend(dealt((plain, partly), np.concatenate([np.array(each, int) for each in chosen])))
    tiles = Flatten(0, 1)(loaded(Metadata(np.array(taken, np.int64))()))
    joined = Reassemble(name=f"{name}_masked")([plain, masking(partly, tiles)], route)
    return Flatten(0, 1)(joined).assume(*scores.shape)
