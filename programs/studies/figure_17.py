"""Figure 17: a layer of a whole decoder with all three optimisations, and static layers.

The authors publish only bars. ``decoders/points.py`` has our assumptions,
``long/figure_17_assumptions.py`` varies them, and ``long/whole_models.py`` runs every layer.

Run: python -m fabric study programs/studies/figure_17.py -o figure_17
"""

from __future__ import annotations

from decoders.claims import CLAIMS
from decoders.pictures import draw_points, draw_ratios
from decoders.points import ASSUMED, DECODERS, PROGRAM

from fabric import Picture, Study


def study() -> Study:
    first, second = (decoder.space(ASSUMED) for decoder in DECODERS)
    return Study(
        program=PROGRAM,
        question="What do dynamic tiles, dynamic parallelisation and shared regions save together "
        "in a layer of a whole decoder?",
        fixed={"batch": 64, "layers": 1},
        space=first + second,
        claims=CLAIMS,
        pictures=(
            Picture(
                "layouts",
                "A decode step of one layer, batch 64",
                draw_points,
                "Static tiles of all sizes, and a design with all three optimisations.",
            ),
            Picture(
                "ratios",
                "Ratios of section 5.5",
                draw_ratios,
                "Values of the text, values from the printed bars, and ours. All bytes follow the "
                "paper's equations. Assumed: a median trace of cache lengths, the one recorded "
                "routing of each model, heads of 128 columns, 1,024 FLOPs per cycle for every "
                "unit, and requests assigned in turn in static attention.",
            ),
        ),
    )
