"""The SwiGLU layer in pieces or in tiles, for studies that compare both.

Run:      python -m fabric run programs/swiglu_in_pieces.py --hardware hdl_as_run
Computes: what swiglu.py computes.
"""

from __future__ import annotations

from typing import Annotated

import swiglu

from fabric import Program
from fabric.extend import Bounds
from operators.pieces import in_pieces


def build(
    batch: Annotated[int, Bounds(1)] = 64,
    hidden: Annotated[int, Bounds(1)] = 256,
    inter: Annotated[int, Bounds(1)] = 512,
    tile_batch: int = 16,
    tile_inter: int = 16,
    seed: Annotated[int, Bounds(0)] = 42,
    pieces: int = 16,
) -> Program:
    """Wire the layer.

    A piece has ``pieces`` rows and columns. With 0, the layer stays in tiles. ``swiglu.py``
    describes all other parameters.
    """
    program = swiglu.build(batch, hidden, inter, tile_batch, tile_inter, seed)
    return in_pieces(program, pieces, pieces) if pieces else program
