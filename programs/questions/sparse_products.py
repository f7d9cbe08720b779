"""What do blocks without an entry cost where a sparse matrix is squared?

Run: python -m fabric study programs/questions/sparse_products.py -o sparse_products
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

MATRICES = ("banded", "power-law", "circuit")
BLOCKS = (4, 8)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "sparse_product.py",
        question="What do blocks without an entry cost where a sparse matrix is squared?",
        space=grid(matrix=MATRICES, rows=[64], block=BLOCKS, order=["inner", "gustavson", "dense"]),
        pictures=(
            Picture(
                "sparse_products",
                "Other orders over rows joined with columns",
                savings(
                    {
                        f"{matrix}, {block}": {"matrix": matrix, "block": block}
                        for matrix in MATRICES
                        for block in BLOCKS
                    },
                    {"all blocks": {"order": "dense"}, "rows added up": {"order": "gustavson"}},
                    {"order": "inner"},
                ),
                CAPTION,
            ),
        ),
    )
