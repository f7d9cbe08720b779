"""The cost of padding buckets to the fullest bucket if keys are skewed.

Run: python -m fabric study programs/questions/hash_buckets.py -o hash_buckets
"""

from __future__ import annotations

from beyond.savings import by, saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does padding of buckets to the fullest cost if keys are skewed?",
        "hash_join.py",
        "Buckets padded to the fullest over buckets as they are",
        by("skew", (0.0, 0.6, 1.2), keys=256, orders=192, items=1024, buckets=16),
        {"padded": {"rows": "padded"}},
        {"rows": "ragged"},
    )
