"""The cost of attention to a whole cache, over its cost for eight tiles that scores choose.

Run: python -m fabric study programs/questions/chosen_tiles.py -o chosen_tiles
"""

from __future__ import annotations

from beyond.savings import by, saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does attention to all of a cache cost over eight tiles that scores choose?",
        "top_k_attention.py",
        "All tiles of a cache over eight that a score chooses",
        by("context", (256, 512, 1024, 2048, 4096), kept=8),
        {"dense": {"cache": "dense"}},
        {"cache": "sparse"},
    )
