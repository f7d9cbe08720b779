"""The cost of adding a tile of all centres for each point, over that of updating one centre.

Run: python -m fabric study programs/questions/cluster_updates.py -o cluster_updates
"""

from __future__ import annotations

from beyond.savings import by, saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does a tile of all centres for each point cost over an update of one centre?",
        "k_means.py",
        "A tile of all centres for each point over an update of one",
        by("clusters", (4, 16, 64), points=256, dimensions=31),
        {"dense": {"update": "dense"}},
        {"update": "scatter"},
    )
