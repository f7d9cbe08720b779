"""Figure 20: off-chip traffic of the runs of figure 10, over the bytes that they need on chip.

Run: python -m fabric study programs/studies/figure_20.py -o figure_20
"""

from __future__ import annotations

from paper import camera_ready
from paper.published import closed_forms, known
from paper.tables import PROGRAMS
from paper.tradeoff import CAPTION, TRAFFIC, Annotation, tradeoff
from paper.workloads import MIXTRAL_1024, QWEN_1024

from fabric import Picture, Study

LAYERS = (MIXTRAL_1024, QWEN_1024)
ANNOTATIONS = (
    Annotation(MIXTRAL_1024, 256, "traffic"),
    Annotation(QWEN_1024, 64, "traffic"),
    Annotation(QWEN_1024, 1024, "bytes"),
)
"""The paper's 1.37, 2.21 and 12.5."""


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="What do static tiles of batch 1024 cost in traffic and in padding?",
        fixed={"tile_f": 64},
        space=LAYERS[0].published_space + LAYERS[1].published_space,
        known=known(camera_ready.tiling(1024), closed_forms(1024)),
        pictures=(
            Picture(
                "figure_20",
                "Figure 20: off-chip traffic and on-chip memory, batch 1024",
                tradeoff(LAYERS, camera_ready.tiling(1024), TRAFFIC, ANNOTATIONS),
                CAPTION,
            ),
        ),
    )
