"""What does padding of buckets to the fullest cost where keys are skewed?

Run: python -m fabric study programs/questions/hash_buckets.py -o hash_buckets
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

SKEWS = (0.0, 0.6, 1.2)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "hash_join.py",
        question="What does padding of buckets to the fullest cost where keys are skewed?",
        space=grid(
            skew=SKEWS,
            keys=[256],
            orders=[192],
            items=[1024],
            buckets=[16],
            rows=["ragged", "padded"],
        ),
        pictures=(
            Picture(
                "hash_buckets",
                "Buckets padded to the fullest over buckets as they are",
                savings(
                    {str(skew): {"skew": skew} for skew in SKEWS},
                    {"padded": {"rows": "padded"}},
                    {"rows": "ragged"},
                ),
                CAPTION,
            ),
        ),
    )
