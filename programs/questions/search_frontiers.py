"""What do ragged frontiers and lists of neighbours save in a breadth-first search?

Run: python -m fabric study programs/questions/search_frontiers.py -o search_frontiers
"""

from __future__ import annotations

from beyond.graphs import GRAPHS, groups
from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "breadth_first_search.py",
        question="What do frontiers of any size save over one with room for all vertices?",
        space=GRAPHS * grid(lists=["ragged", "padded"]),
        pictures=(
            Picture(
                "lists",
                "Padded over ragged frontiers and lists of neighbours",
                savings(groups(), {"all lists padded": {"lists": "padded"}}, {"lists": "ragged"}),
                f"{CAPTION} Both run as many levels and mark all vertices in each, so that FLOPs "
                "and what is held on chip are the same.",
            ),
        ),
    )
