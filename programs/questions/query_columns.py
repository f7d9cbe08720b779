"""The cost of scanning whole columns, over that of reading pieces that have a row of the year.

Run: python -m fabric study programs/questions/query_columns.py -o query_columns
"""

from __future__ import annotations

from beyond.savings import by, saving_study

from fabric import Study


def study() -> Study:
    return saving_study(
        "What does a scan of all columns cost over pieces that have a row of the year?",
        "tpch_q6.py",
        "A scan of all columns over pieces with a row of the year",
        by("late", (0, 60, 500), name="{} days late", rows=65536),
        {"scan": {"columns": "scan"}},
        {"columns": "sparse"},
    )
