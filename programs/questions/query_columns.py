"""What does a scan of all columns cost over pieces that have a row of the year?

Run: python -m fabric study programs/questions/query_columns.py -o query_columns
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

LATE = (0, 60, 500)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "tpch_q6.py",
        question="What does a scan of all columns cost over pieces that have a row of the year?",
        space=grid(rows=[65536], late=LATE, columns=["sparse", "scan"]),
        pictures=(
            Picture(
                "query_columns",
                "A scan of all columns over pieces with a row of the year",
                savings(
                    {f"{late} days late": {"late": late} for late in LATE},
                    {"scan": {"columns": "scan"}},
                    {"columns": "sparse"},
                ),
                CAPTION,
            ),
        ),
    )
