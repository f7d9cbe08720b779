"""The paper's three optimisations on a layer of a whole decoder, in all eight combinations.

The paper shows dynamic tiles, dynamic parallelisation and shared regions separately, and all three
together. All combinations show the effect of each with and without the others, and whether they
help or hinder each other.

Run: python -m fabric study programs/studies/long/optimisations.py -o optimisations
"""

from __future__ import annotations

import sys
from pathlib import Path

# The studies' shared parts are beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decoders.combinations import draw_effects, space
from decoders.points import PROGRAM

from fabric import Picture, Study


def study() -> Study:
    return Study(
        program=PROGRAM,
        question="What does each of the three optimisations gain, with and without the other two?",
        fixed={"batch": 64, "layers": 1},
        space=space(),
        pictures=(
            Picture(
                "interactions",
                "Main effects and interactions",
                draw_effects,
                "The factor by which each option changes a number, as the geometric mean over all "
                "settings of the other options; below it, the factor by which options together "
                "differ from the product of their single effects.",
            ),
        ),
    )
