"""The savings of ragged frontiers, over a frontier with room for all vertices.

Run: python -m fabric study programs/questions/search_frontiers.py -o search_frontiers
"""

from __future__ import annotations

from beyond.graphs import GRAPHS
from beyond.savings import saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What do frontiers of any size save over one with room for all vertices?",
        "breadth_first_search.py",
        "Padded over ragged frontiers and lists of neighbours",
        GRAPHS,
        {"all lists padded": {"lists": "padded"}},
        {"lists": "ragged"},
        "Both forms run the same number of levels and mark all vertices in each level, so FLOPs "
        "and on-chip bytes are the same.",
    )
