"""The cost of computing a whole product of which a sparse matrix needs some elements.

Run: python -m fabric study programs/questions/sampled_products.py -o sampled_products
"""

from __future__ import annotations

from beyond.savings import by, saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does a product of all rows cost if a sparse matrix samples it?",
        "sampled_product.py",
        "All rows and columns over those that are sampled",
        by("matrix", ("banded", "power-law", "circuit"), rows=64, block=4),
        {"dense": {"order": "dense"}},
        {"order": "sampled"},
    )
