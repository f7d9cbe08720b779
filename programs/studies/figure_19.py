"""Figure 19: the runs of figure 9 once more, by tile: cycles, off-chip traffic, operations.

The appendix shows these runs a second time; which of their numbers to draw is our choice.

Run: python -m fabric study programs/studies/figure_19.py -o figure_19
"""

from __future__ import annotations

from paper.by_tile import CAPTION, by_tile
from paper.published import closed_forms, known, tiling
from paper.tables import PROGRAMS
from paper.workloads import MIXTRAL_64, QWEN_64

from fabric import Picture, Study

LAYERS = (MIXTRAL_64, QWEN_64)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="What do static tiles of batch 64 cost in traffic and in padding?",
        fixed={"tile_f": 64},
        space=LAYERS[0].published_space + LAYERS[1].published_space,
        known=known((each for each in tiling(64) if each.metric == "cycles"), closed_forms(64)),
        pictures=(
            Picture(
                "figure_19",
                "Figure 19: cycles, off-chip traffic and operations, batch 64",
                by_tile(LAYERS),
                CAPTION,
            ),
        ),
    )
