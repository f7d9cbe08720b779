"""What does a matrix of all pairs cost over lists of neighbours in PageRank?

Run: python -m fabric study programs/questions/rank_updates.py -o rank_updates
"""

from __future__ import annotations

from beyond.graphs import GRAPHS, groups
from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "pagerank.py",
        question="What does a matrix of all pairs cost over lists of neighbours in PageRank?",
        space=GRAPHS * grid(edges=["sparse", "dense"]),
        pictures=(
            Picture(
                "rank_updates",
                "All pairs over lists of neighbours",
                savings(
                    groups(),
                    {"dense": {"edges": "dense"}},
                    {"edges": "sparse"},
                ),
                CAPTION,
            ),
        ),
    )
