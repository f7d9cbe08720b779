"""The on-chip memory of experts without tokens, as the authors' scripts count it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import ARTIFACT_BYTES
from layers.decoder_parts import Layout
from layers.models import Model


def idle_artifact_bytes(
    size: Model, choice: NDArray[np.int64], regions: int, layout: Layout, element_bytes: int
) -> int:
    """Return the bytes that the authors leave out if they count only experts with tokens.

    An expert without tokens packs nothing. A region without tokens repeats, computes and loads
    nothing. ``choice`` has the experts of each token, [B, k].
    """
    tokens = np.bincount(choice.flat, minlength=size.experts).reshape(regions, -1)
    experts, idle_regions = int((tokens == 0).sum()), int((~tokens.any(axis=1)).sum())
    rows = (experts + 2 * idle_regions) * (layout.tile_n or 0)
    loads = idle_regions * 3 * size.hidden * layout.tile_f * element_bytes
    return rows * size.hidden * ARTIFACT_BYTES + loads
