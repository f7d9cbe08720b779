"""Figure 20: the runs of figure 10 once more, by tile: cycles, off-chip traffic, operations.

The appendix shows these runs a second time; which of their numbers to draw is our choice.

Run: python -m fabric study programs/studies/figure_20.py -o figure_20
"""

from __future__ import annotations

from paper.by_tile import CAPTION, by_tile
from paper.published import closed_forms, known, tiling
from paper.tables import PROGRAMS
from paper.workloads import MIXTRAL_1024, QWEN_1024

from fabric import Picture, Study

LAYERS = (MIXTRAL_1024, QWEN_1024)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="What do static tiles of batch 1024 cost in traffic and in padding?",
        fixed={"tile_f": 64},
        space=LAYERS[0].published_space + LAYERS[1].published_space,
        known=known((each for each in tiling(1024) if each.metric == "cycles"), closed_forms(1024)),
        pictures=(
            Picture(
                "figure_20",
                "Figure 20: cycles, off-chip traffic and operations, batch 1024",
                by_tile(LAYERS),
                CAPTION,
            ),
        ),
    )
