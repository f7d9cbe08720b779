"""The cost of multiplying blocks without an entry when a sparse matrix is squared.

Run: python -m fabric study programs/questions/sparse_products.py -o sparse_products
"""

from __future__ import annotations

from beyond.savings import saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What do blocks without an entry cost if a sparse matrix is squared?",
        "sparse_product.py",
        "Other orders over rows joined with columns",
        {
            f"{matrix}, {block}": {"matrix": matrix, "rows": 64, "block": block}
            for matrix in ("banded", "power-law", "circuit")
            for block in (4, 8)
        },
        {"all blocks": {"order": "dense"}, "rows added up": {"order": "gustavson"}},
        {"order": "inner"},
    )
