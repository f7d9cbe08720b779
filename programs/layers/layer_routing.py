"""Which experts the tokens of each layer go to, made of one layer's record or drawn."""

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

    The record of one layer stands for those of all: layer 0 has it as it is, each of the others
    under a renaming of the experts that ``seed`` and the layer decide. So all layers have its skew,
    and others than neighbours share a region. Without a file each layer is drawn for itself.

    Raises:
        ConfigurationError: the file does not hold a routing.
    """
    if file is None:
        return draw_routing(tokens, size.top_k, size.experts, seed + layer)
    recorded = read_routing(file, tokens, size.top_k, size.experts)
    if layer == 0:
        return recorded
    renamed = np.random.default_rng((seed, 7, layer)).permutation(size.experts)
    return renamed[recorded]
