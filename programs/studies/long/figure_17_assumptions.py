"""The sensitivity of figure 17's ratios to its assumptions: 70 runs, which take minutes.

Run: python -m fabric study programs/studies/long/figure_17_assumptions.py -o assumptions
"""

from __future__ import annotations

import sys
from pathlib import Path

# The studies' shared parts are beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decoders.assumptions import draw_variants, space
from decoders.points import PROGRAM

from fabric import Picture, Study


def study() -> Study:
    return Study(
        program=PROGRAM,
        question="How do the ratios of figure 17 depend on assumptions that the paper leaves open?",
        fixed={"batch": 64, "layers": 1},
        space=space(),
        pictures=(
            Picture(
                "assumptions",
                "Ratios of section 5.5 under other assumptions",
                draw_variants,
                "A row for each assumption that is changed; lines are the published ratios.",
            ),
        ),
    )
