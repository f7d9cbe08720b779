"""The savings of dynamic tiles of neighbours in a layer of a graph neural network.

Run: python -m fabric study programs/questions/graph_tiles.py -o graph_tiles
"""

from __future__ import annotations

from beyond.graphs import GRAPHS
from beyond.savings import CAPTION, PROGRAMS, points, savings

from fabric import Picture, Study, grid

ROWS = (1, 4, 16)


def study() -> Study:
    static = grid(tiling=["static"], rows=ROWS) + grid(tiling=["padded"], rows=[4])
    forms = {f"tiles of {rows}": {"tiling": "static", "rows": rows} for rows in ROWS}
    return Study(
        program=PROGRAMS / "graph_layer.py",
        question="What does a tile of all neighbours of a vertex save over tiles of fixed size?",
        space=points(GRAPHS.values()) * (grid(tiling=["dynamic"]) + static),
        pictures=(
            Picture(
                "tiles",
                "Static over dynamic tiles of neighbours",
                savings(
                    GRAPHS,
                    {**forms, "padded, tiles of 4": {"tiling": "padded"}},
                    {"tiling": "dynamic"},
                ),
                CAPTION,
            ),
        ),
    )
