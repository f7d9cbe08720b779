"""Rows of cells as lines: nothing is lost, and no line is longer than there is room."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fabric import simulate
from fabric.analysis.deadlock.text import report_lines
from fabric.messages.telling.columns import aligned
from tests.profiles import examples
from tests.symbolic.programs import wired

WORDS = st.lists(st.text("abc_.0", min_size=1, max_size=14), min_size=1, max_size=9)
TABLES = st.integers(1, 6).flatmap(
    lambda count: st.lists(
        st.lists(WORDS.map(" ".join), min_size=count, max_size=count), min_size=1, max_size=4
    )
)


@examples(quick=40, deep=2000)
@given(rows=TABLES, room=st.integers(24, 160))
def test_rows_keep_every_word_within_the_room(rows: list[list[str]], room: int) -> None:
    lines = aligned(rows, room)
    assert max(map(len, lines)) <= room
    for row in rows:
        (alone,) = {" ".join(aligned([row], None))}
        assert alone.split() == " ".join(row).split()
        found = " ".join(aligned([row], room)).split()
        assert sorted(found) == sorted(alone.split())


def test_columns_that_do_not_fit_move_below() -> None:
    rows = [("unit", "cycles", "what it does"), ("load", "1,280", "waits for the memory")]
    assert aligned(rows, 80, right=frozenset({1})) == [
        "unit  cycles  what it does",
        "load   1,280  waits for the memory",
    ]
    assert aligned(rows, 24, right=frozenset({1})) == [
        "unit  cycles",
        "    what it does",
        "load   1,280",
        "    waits for the memory",
    ]
    assert aligned([("a b c d e", "1")], 8) == ["a b c d", "  e", "    1"]


@pytest.mark.parametrize(("columns", "longest"), [(60, 50), (100, 90), (200, 180)])
def test_deadlock_report_keeps_every_word_at_any_width(columns: int, longest: int) -> None:
    stuck = simulate(wired("simplified_moe"), depths={"reassemble_1.2": 2}).explained
    assert stuck is not None
    whole, found = (_sections(report_lines(stuck, width)) for width in (None, columns))
    assert whole == found
    lines = report_lines(stuck, columns)[1:]
    assert longest < max(map(len, lines)) <= columns


def _sections(lines: list[str]) -> list[list[str]]:
    return [sorted(part.split()) for part in "\n".join(lines).split("\n\n")]
