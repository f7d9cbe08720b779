"""Tables that a study adds: on the terminal, on its page, and when they cannot be computed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fabric import Findings, Outcome, Study, StudyTable, grid
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.page import page_html
from fabric.explore.study.written.pictures import Pictures
from fabric.explore.study.written.terminal import study_sheet
from fabric.messages.terminal.tables import print_sheet
from tests.fabric.study.written.made import HOSTILE

COLUMNS = ("tile", "cycles", "what became of it")


def by_tile(findings: Findings) -> Iterator[tuple[object, ...]]:
    """A row for each point, the first with a text that would be markup."""
    for each in findings.outcomes:
        tile_n = each.setting["tile_n"]
        told = HOSTILE if tile_n == 1 else "holds"
        yield tile_n, findings.value("cycles", tile_n=tile_n), told


def result(table: StudyTable) -> StudyResult:
    """Return a study of two points that has a table."""
    study = Study(name="tables", program=Path("x.py"), space=grid(tile_n=(1, 2)), tables=(table,))
    outcomes = [
        Outcome(index=at, setting=each, status="completed", numbers={"cycles": 1000 + at})
        for at, each in enumerate(study.space)
    ]
    return StudyResult(study, tuple(outcomes))


def printed(found: StudyResult, width: int = 200) -> str:
    """Return what the command prints."""
    console = Console(file=io.StringIO(), width=width)
    print_sheet(study_sheet(found), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 200])
def test_printed(width: int) -> None:
    """Title, rows and caption; numbers with thousands separators; nothing steers the terminal."""
    text = printed(result(StudyTable("By tile", COLUMNS, by_tile, "Both run.")), width)

    assert "By tile" in text
    assert "1,000" in text
    assert "1,001" in text
    assert "Both run." in text
    assert "\x1b" not in text


def test_on_the_page() -> None:
    """The same in a section of its own; no text of it is markup."""
    page = page_html(
        result(StudyTable("By <tile>", COLUMNS, by_tile, "Both run.")), Pictures((), ()), ""
    )

    assert "<h2>By &lt;tile&gt;</h2>" in page
    assert "<p>Both run.</p>" in page
    assert "1,001</td>" in page
    assert "<b>&amp;" not in page


def short(_: Findings) -> Sequence[Sequence[object]]:
    """Return a row that lacks a cell."""
    return [(1, 2)]


def missing(findings: Findings) -> Sequence[Sequence[object]]:
    """Ask for a point that there is not."""
    return [(1, findings.value("cycles", tile_n=3), "")]


def broken(_: Findings) -> Sequence[Sequence[object]]:
    """Fail as code does."""
    raise ZeroDivisionError("of nothing")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (short, "a row has 2 cells: expected 3"),
        (missing, "0 points have tile_n=3: expected one"),
        (broken, "of nothing"),
    ],
)
def test_trouble(rows: object, why: str) -> None:
    """It is told in the table's place, and the rest is there all the same."""
    assert callable(rows)
    found = result(StudyTable("By tile", COLUMNS, rows))

    for text in (printed(found), page_html(found, Pictures((), ()), "")):
        assert "not computed: " in text
        assert why in text
        assert "2 of 2 points" in text or "tile_n" in text
