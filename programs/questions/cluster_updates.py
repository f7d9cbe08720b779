"""What does a tile of all centres for each point cost over an update of its own?

Run: python -m fabric study programs/questions/cluster_updates.py -o cluster_updates
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

CLUSTERS = (4, 16, 64)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "k_means.py",
        question="What does a tile of all centres for each point cost over an update of its own?",
        space=grid(points=[256], dimensions=[31], clusters=CLUSTERS, update=["scatter", "dense"]),
        pictures=(
            Picture(
                "cluster_updates",
                "A tile of all centres for each point over an update of one",
                savings(
                    {str(clusters): {"clusters": clusters} for clusters in CLUSTERS},
                    {"dense": {"update": "dense"}},
                    {"update": "scatter"},
                ),
                CAPTION,
            ),
        ),
    )
