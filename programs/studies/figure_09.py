"""Figure 9: static tiles and the dynamic tile, mixture-of-experts layers of batch 64.

Run: python -m fabric study programs/studies/figure_09.py -o figure_09
"""

from __future__ import annotations

from paper.claims import claim
from paper.tile_sizes import cycles_study
from paper.tiling import BATCH_64

from fabric import Study


def study() -> Study:
    return cycles_study(9, 64, [claim(text, compute) for text, compute in BATCH_64.items()])
