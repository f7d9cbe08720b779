"""The tensors that a decoder layer reads from off-chip memory, and its layout on the fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layers.attention_region import Caches
from layers.experts import ExpertWeights
from layers.models import Attention
from operators import Tensor

Parallelisation: TypeAlias = Literal["coarse", "interleaved", "dynamic"]


@dataclass(frozen=True)
class Layout:
    """The tiles of a layer, and its distribution over units.

    Attributes:
        tile_n: rows of a packed tile of an expert; None for one tile of all its tokens.
        tile_f: columns of a weight tile of an expert.
        tile_p: columns of a weight tile of a projection.
        parallelisation: how pairs of a head and a request are assigned to attention regions.
    """

    tile_n: int | None
    tile_f: int
    tile_p: int
    parallelisation: Parallelisation
    attention_regions: int


@dataclass(frozen=True)
class Layer:
    """The tensors of one layer in off-chip memory.

    D columns of a token; E experts; G query heads of d columns share a key-value head.

    Attributes:
        name: the prefix of the names of operators.
        choice: [B, k], the experts of each token.
        queries: weights for each key-value head, [D, G * d].
        keys, values: weights for each key-value head, [D, d].
        output: weights for each key-value head, [G * d, D].
        router: [D, E].
        caches: the caches of all pairs of a head and a request, head by head.
    """

    name: str
    choice: NDArray[np.int64]
    queries: Sequence[Tensor]
    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    output: Sequence[Tensor]
    router: Tensor
    experts: Sequence[ExpertWeights]
    caches: Caches


@dataclass(frozen=True)
class Step:
    """The inputs that all layers of a decode step share.

    Attributes:
        lengths: [B], tokens in the caches before the step, which are also the positions of the new
            tokens.
        positions: the same numbers in off-chip memory, [B, 1].
    """

    attention: Attention
    lengths: NDArray[np.int64]
    positions: Tensor
