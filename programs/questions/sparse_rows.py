"""The savings of ragged rows in products of a sparse matrix, for real and power-law graphs.

Run: python -m fabric study programs/questions/sparse_rows.py -o sparse_rows
"""

from __future__ import annotations

from beyond.graphs import GRAPHS
from beyond.savings import CAPTION, PROGRAMS, points, savings

from fabric import Picture, Study, grid

COLUMNS = (1, 8, 32)


def study() -> Study:
    return Study(
        program=PROGRAMS / "sparse_matrix.py",
        question="What do ragged rows save over rows that are padded to the longest?",
        space=points(GRAPHS.values()) * grid(columns=COLUMNS, rows=["ragged", "padded"]),
        pictures=tuple(
            Picture(
                f"columns_{columns}",
                f"Padded over ragged rows, x with {columns} column{'s' * (columns > 1)}",
                savings(
                    {name: {**graph, "columns": columns} for name, graph in GRAPHS.items()},
                    {"all rows padded": {"rows": "padded"}},
                    {"rows": "ragged"},
                ),
                CAPTION,
            )
            for columns in COLUMNS
        ),
    )
