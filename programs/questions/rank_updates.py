"""The cost of PageRank with a matrix of all pairs of vertices, over its cost with neighbour lists.

Run: python -m fabric study programs/questions/rank_updates.py -o rank_updates
"""

from __future__ import annotations

from beyond.graphs import GRAPHS
from beyond.savings import saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does a matrix of all pairs cost over lists of neighbours in PageRank?",
        "pagerank.py",
        "All pairs over lists of neighbours",
        GRAPHS,
        {"dense": {"edges": "dense"}},
        {"edges": "sparse"},
    )
