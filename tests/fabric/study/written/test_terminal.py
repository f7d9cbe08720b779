from __future__ import annotations

from collections.abc import Callable

import pytest

from fabric.display.terminal import plain_text
from fabric.explore.study.written.answer import rows_sheet
from fabric.explore.study.written.words import listed_points
from tests.fabric.study.written.made import RESULTS


def printed(name: str, width: int) -> str:
    return plain_text(RESULTS[name]().sheet(), width) + "\n"


@pytest.mark.parametrize("name", ["design", "paper", "over"])
def test_study_is_printed_as_in_the_snapshot(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", printed(name, 180))


@pytest.mark.parametrize("name", RESULTS)
def test_every_study_fits_a_narrow_terminal(name: str) -> None:
    text = printed(name, 60)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_values_that_all_rows_share_are_above_the_table() -> None:
    rows = [(1, 5, None, 7), (2, 5, None, 8)]
    text = plain_text(rows_sheet(("point", "a", "b", "c"), rows))
    assert text.splitlines() == ["In all rows: a 5; b empty.", "point  c", "    1  7", "    2  8"]
    assert plain_text(rows_sheet(("point", "a"), rows[:1])).splitlines()[0] == "point  a"


def test_points_are_listed_in_spans() -> None:
    assert listed_points([3]) == "point 3"
    assert listed_points([0, 1, 2, 5, 6]) == "points 0 to 2, 5 and 6"
    many = [*range(6), *range(8, 22, 2)]
    assert listed_points(many) == "points 0 to 5, 8, 10 and 5 others"
