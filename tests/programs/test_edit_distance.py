from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric import Report, simulate
from tests.profiles import examples
from tests.programs.loading import program

Pairs = list[tuple[str, str]]


@cache
def defined(left: str, right: str) -> int:
    if not left or not right:
        return len(left) + len(right)
    return min(
        defined(left[:-1], right) + 1,
        defined(left, right[:-1]) + 1,
        defined(left[:-1], right[:-1]) + (left[-1] != right[-1]),
    )


def distances(pairs: Pairs, **parameters: Any) -> tuple[list[int], Report]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.txt"
        file.write_text("".join(f"{left},{right}\n" for left, right in pairs), encoding="utf-8")
        report = simulate(program("edit_distance", file=file, **parameters))
    assert ("completed", True) == (report.status, report.verified)
    return np.asarray(report.outputs["y"])[:, 0].tolist(), report


words = st.text("abc", max_size=9)


@examples(quick=5, deep=25)
@given(
    pairs=st.lists(st.tuples(words, words), min_size=1, max_size=6),
    sequences=st.sampled_from(["ragged", "padded"]),
    lanes=st.integers(1, 7),
    piece=st.integers(1, 5),
)
def test_edit_distance_equals_its_definition(
    pairs: Pairs, sequences: str, lanes: int, piece: int
) -> None:
    found, report = distances(pairs, sequences=sequences, lanes=lanes, piece=piece)

    assert [defined(*pair) for pair in pairs] == found
    assert not [each for each in report.warnings if "FAB" in each]


def test_edit_distance_flops_follow_the_widths() -> None:
    pairs = [("kitten", "sitting"), ("", "ab"), ("intention", "execution")]
    room = {"ragged": [(8, 13), (0, 2), (12, 18)], "padded": [(12, 18)] * 3}
    for sequences, widths in room.items():
        _, report = distances(pairs, sequences=sequences, piece=4)

        assert sum(5 * (width + 1) * laps for width, laps in widths) == report.flops
