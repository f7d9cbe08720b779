"""Figure 19: off-chip traffic of the runs of figure 9, over the bytes that they need on chip.

Run: python -m fabric study programs/studies/figure_19.py -o figure_19
"""

from __future__ import annotations

from paper import camera_ready
from paper.published import closed_forms, known
from paper.tables import PROGRAMS
from paper.tradeoff import CAPTION, TRAFFIC, Annotation, tradeoff
from paper.workloads import MIXTRAL_64, QWEN_64

from fabric import Picture, Study

LAYERS = (MIXTRAL_64, QWEN_64)
ANNOTATIONS = (
    Annotation(MIXTRAL_64, 32, "bytes"),
    Annotation(QWEN_64, 8, "bytes"),
    Annotation(QWEN_64, 8, "traffic"),
    Annotation(QWEN_64, 64, "bytes"),
)
"""The paper's 1.33, 2.1, 1.58 and 5.05."""


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="What do static tiles of batch 64 cost in traffic and in padding?",
        fixed={"tile_f": 64},
        space=LAYERS[0].published_space + LAYERS[1].published_space,
        known=known(camera_ready.tiling(64), closed_forms(64)),
        pictures=(
            Picture(
                "figure_19",
                "Figure 19: off-chip traffic and on-chip memory, batch 64",
                tradeoff(LAYERS, camera_ready.tiling(64), TRAFFIC, ANNOTATIONS),
                CAPTION,
            ),
        ),
    )
