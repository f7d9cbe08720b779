"""Figure 17 over all layers: 48 of Qwen3-30B-A3B and 32 of Mixtral-8x7B, each with its routing.

The time of a layer does not depend on the results of the layer before, so every layer is a separate
run.

Run: python -m fabric study programs/studies/long/whole_models.py -o whole_models
"""

from __future__ import annotations

import sys
from pathlib import Path

# The studies' shared parts are beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decoders.claims import CLAIMS
from decoders.layers import draw_layers, space
from decoders.pictures import draw_points, draw_ratios
from decoders.points import PROGRAM

from fabric import Picture, Study


def study() -> Study:
    return Study(
        program=PROGRAM,
        question="What do the three optimisations save together over all layers of a decoder?",
        fixed={"batch": 64, "layers": 1},
        space=space(),
        claims=CLAIMS,
        pictures=(
            Picture("layers", "Cycles of every layer", draw_layers),
            Picture("layouts", "A layer, on the average over all layers", draw_points),
            Picture("ratios", "Ratios of section 5.5", draw_ratios),
        ),
    )
