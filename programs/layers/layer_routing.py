"""The experts of the tokens in each layer, derived from the record of one layer or random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layers.models import Model
from layers.routing import draw_routing, read_routing


def layer_routing(
    file: Path | str | None, size: Model, tokens: int, layer: int, seed: int
) -> NDArray[np.int64]:
    """Return the experts of each token in layer number ``layer``, [tokens, top_k].

    All layers use the record of one layer. Layer 0 uses it unchanged. Every other layer renames the
    experts, at random by ``seed`` and the layer. So all layers have the same skew, but different
    experts share a region. Without a file, each layer has its own random routing.
    """
    if file is None:
        return draw_routing(tokens, size.top_k, size.experts, seed + layer)
    recorded = read_routing(file, tokens, size.top_k, size.experts)
    if layer == 0:
        return recorded
    renamed = np.random.default_rng((seed, 7, layer)).permutation(size.experts)
    return renamed[recorded]
