"""A program for a study of many points that take milliseconds each."""

from __future__ import annotations

import numpy as np

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


def build(tiles: int = 2) -> Program:
    with Program("signalled", mode="timing") as program:
        rows = LinearOffChipLoad(np.ones((2 * tiles, 2), np.float32), tile=(2, 2))()
        LinearOffChipStore("y")(Map(SiLU())(rows))
    return program
