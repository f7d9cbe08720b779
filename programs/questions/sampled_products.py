"""What does a product of all rows cost where a sparse matrix samples it?

Run: python -m fabric study programs/questions/sampled_products.py -o sampled_products
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

MATRICES = ("banded", "power-law", "circuit")


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "sampled_product.py",
        question="What does a product of all rows cost where a sparse matrix samples it?",
        space=grid(matrix=MATRICES, rows=[64], block=[4], order=["sampled", "dense"]),
        pictures=(
            Picture(
                "sampled_products",
                "All rows and columns over those that are sampled",
                savings(
                    {matrix: {"matrix": matrix} for matrix in MATRICES},
                    {"dense": {"order": "dense"}},
                    {"order": "sampled"},
                ),
                CAPTION,
            ),
        ),
    )
