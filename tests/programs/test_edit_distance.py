"""The edit distance, against its definition; and what padded sequences cost."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Program, Report, simulate
from tests.profiles import examples
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

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


@examples(quick=10, deep=25)
@given(
    pairs=st.lists(st.tuples(words, words), min_size=1, max_size=6),
    sequences=st.sampled_from(["ragged", "padded"]),
    lanes=st.integers(1, 7),
    piece=st.integers(1, 5),
)
def test_is_as_defined(pairs: Pairs, sequences: str, lanes: int, piece: int) -> None:
    found, report = distances(pairs, sequences=sequences, lanes=lanes, piece=piece)

    assert [defined(*pair) for pair in pairs] == found
    assert not [each for each in report.warnings if "FAB" in each]


def test_known_pairs() -> None:
    found, _ = distances(
        [("kitten", "sitting"), ("saturday", "sunday"), ("intention", "execution"), ("a", "a")]
    )

    assert [3, 3, 5, 0] == found


def test_costs() -> None:
    pairs = [("kitten", "sitting"), ("", "ab"), ("intention", "execution")]
    room = {"ragged": [(8, 13), (0, 2), (12, 18)], "padded": [(12, 18)] * 3}
    for sequences, widths in room.items():
        _, report = distances(pairs, sequences=sequences, piece=4)

        assert sum(5 * (width + 1) * laps for width, laps in widths) == report.flops


def test_lanes_fill_each_other_s_waits() -> None:
    pairs = [("abcabc", "bcabca")] * 6
    cycles = [distances(pairs, lanes=lanes)[1].cycles or 0 for lanes in (1, 2, 4)]

    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > 2 * cycles[2]


def test_a_peak_of_ragged_tiles_is_no_fault() -> None:
    pairs = [("a", "b")] * 9 + [("a" * 30, "b" * 30)]
    _, report = distances(pairs)

    (warning,) = report.warnings
    assert warning.startswith("on-chip bytes at the peak")
    assert warning.endswith("it counts ragged sizes with their mean")


@pytest.mark.parametrize("name", SCHEDULES)
def test_any_schedule(name: str | int) -> None:
    with schedule(name):
        report = simulate(small())

    assert simulate(small()).cycles == report.cycles
    assert report.verified is True


def small() -> Program:
    return program("edit_distance", pairs=5, longest=6, lanes=2)


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("pairs", 0, 1), ("longest", -1, 0), ("lanes", 0, 1), ("piece", 0, 1), ("seed", -1, 0)],
)
def test_values_that_cannot_be(name: str, value: int, least: int) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError) as caught:
        program("edit_distance", **given)
    assert f"{name} is {value}: expected at least {least}" == caught.value.message


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", "is empty"),
        (b"ab,c\nab\n", "line 2 is 'ab'"),
        (b"a,b,c\n", "line 1 is 'a,b,c'"),
        (b"\xff", "cannot be read (is no text)"),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: bytes | None, found: str) -> None:
    file = tmp_path / "pairs.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigurationError) as caught:
        program("edit_distance", file=file)
    expected = "expected two words with a comma between them on every line"
    assert f"file of pairs {file}: {found}: {expected}" == caught.value.message
