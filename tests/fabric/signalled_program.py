"""A program of a study of many points, each of which takes a moment."""

from __future__ import annotations

import numpy as np

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


def build(tiles: int = 2) -> Program:
    """Wire a function over so many tiles."""
    with Program("signalled", mode="timing") as program:
        rows = LinearOffChipLoad(np.ones((2 * tiles, 2), np.float32), tile=(2, 2))()
        LinearOffChipStore("y")(Map(SiLU())(rows))
    return program
