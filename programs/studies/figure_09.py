"""Figure 9: static tiles against the dynamic one, mixture-of-experts layers of batch 64.

Run: python -m fabric study programs/studies/figure_09.py -o figure_09
"""

from __future__ import annotations

from paper import camera_ready
from paper.claims import claim
from paper.published import known, tiling
from paper.tables import PROGRAMS
from paper.tiling import BATCH_64
from paper.tradeoff import CAPTION, tradeoff
from paper.workloads import MIXTRAL_64, QWEN_64

from fabric import Picture, Study

LAYERS = (MIXTRAL_64, QWEN_64)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="Does a dynamic tile take fewer cycles or less memory than every static one?",
        fixed={"tile_f": 64},
        space=LAYERS[0].space + LAYERS[1].space,
        known=known(camera_ready.tiling(64), tiling(64)),
        claims=tuple(claim(text, compute) for text, compute in BATCH_64.items()),
        pictures=(
            Picture(
                "figure_09",
                "Figure 9: cycles and on-chip memory, batch 64",
                tradeoff(LAYERS, camera_ready.tiling(64)),
                CAPTION,
            ),
        ),
    )
