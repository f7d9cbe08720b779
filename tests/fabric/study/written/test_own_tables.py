from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fabric import Findings, Outcome, Study, StudyTable, grid
from fabric.display.terminal import plain_text
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.page import page_html

COLUMNS = ("tile", "cycles", "what became of it")


def result(table: StudyTable) -> StudyResult:
    study = Study(name="tables", program=Path("x.py"), space=grid(tile_n=(1, 2)), tables=(table,))
    outcomes = [
        Outcome(index=at, setting=each, status="completed", numbers={"cycles": 1000 + at})
        for at, each in enumerate(study.space)
    ]
    return StudyResult(study, tuple(outcomes))


def short(_: Findings) -> Sequence[Sequence[object]]:
    return [(1, 2)]


def missing(findings: Findings) -> Sequence[Sequence[object]]:
    return [(1, findings.value("cycles", tile_n=3), "")]


def broken(_: Findings) -> Sequence[Sequence[object]]:
    raise ZeroDivisionError("of nothing")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (short, "a row has 2 cells: expected 3"),
        (missing, "0 points have tile_n=3: expected one"),
        (broken, "of nothing"),
    ],
)
def test_own_table_that_fails_is_reported_in_its_place(rows: object, why: str) -> None:
    assert callable(rows)
    found = result(StudyTable("By tile", COLUMNS, rows))

    for text in (plain_text(found.sheet(), 200), page_html(found, ())):
        assert "not computed: " in text
        assert why in text
        assert "2 of 2 points" in text or "tile_n" in text
