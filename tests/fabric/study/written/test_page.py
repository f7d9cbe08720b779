"""The page of a study and that of several, as they are written, and where they leave things out."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from fabric import Claim, Findings, Judgement, KnownValue, Outcome, Study, StudyTable, Verdict, grid
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.folder import overview_html
from fabric.explore.study.written.page import page_data, page_html
from fabric.explore.study.written.pictures import Drawn, Pictures
from fabric.explore.study.written.terminal import study_sheet
from fabric.messages.terminal.tables import print_sheet
from tests.fabric.study.written.made import RESULTS, completed, design, one_metric, over_inputs

DRAWN = Drawn("a/b", "A & b", "what is seen", "<svg/>", b"")
BARE = Drawn("bare", "Bare", "", "<svg/>", b"")


def apart() -> StudyResult:
    """Return the study over inputs: of its front one fails and two break a condition apart."""
    result = over_inputs()
    study = replace(
        result.study,
        hardware=Path("large.toml"),
        fixed={"batch": 64, "exact_name": None},
        depths={"map_1.0": 3, "map_2.0": 5},
        exact=True,
    )
    runs = []
    for run in result.runs:
        changed = run
        if study.is_held_out(run.index):
            place = study.design_of(run.index)
            if place == 8:
                changed = Outcome(
                    index=run.index, setting=run.setting, status="error", reason="no <room>"
                )
            elif place in (5, 2):
                more = run.numbers | {"off_chip_traffic_bytes": 2_600_000}
                changed = replace(run, numbers=more)
            elif place == 0:
                continue
        runs.append(changed)
    return StudyResult(study, result.outcomes, 1, 12.5, runs=tuple(runs), resumed_runs=5)


def _same(found: Judgement, _: Findings) -> Judgement:
    return found


def verdicts() -> StudyResult:
    """Return a study with a claim for each verdict, published values and tables."""
    notes = ("a note", *[""] * 5)
    claims = []
    for at, (verdict, note) in enumerate(zip(Verdict, notes, strict=True)):
        found = Judgement("", verdict, note)
        claims.append(Claim(f"claim {at}", f"section {at}", "2", partial(_same, found)))
    study = Study(
        name="verdicts",
        program=Path("x.py"),
        space=grid({"hardware.hbm.channels": (1, 2), "file": ("a/x.npz", "b/y.npz"), "one": (7,)}),
        known=(
            KnownValue({"hardware.hbm.channels": 1, "file": "a/x.npz"}, "cycles", 800, "table 1"),
            KnownValue({"hardware.hbm.channels": 2, "file": "a/x.npz"}, "cycles", 0, "table 1"),
            KnownValue({"hardware.hbm.channels": 1, "file": "b/y.npz"}, "cycles", 9, "table 1"),
            KnownValue({"hardware.hbm.channels": 1}, "extra.rows", 9, "table <2>"),
            KnownValue({"hardware.hbm.channels": 2, "file": "b/y.npz"}, "cycles", 9, "table 1"),
        ),
        claims=tuple(claims),
        tables=(
            StudyTable("Mine", ("name", "it is"), lambda _: [("a", 1500.25), ("", None)], "As if."),
            StudyTable("Theirs", ("flag", "text"), lambda _: [(True, "1,000"), (False, "-3.5")]),
        ),
    )
    ran = [
        completed(0, study, cycles=1000),
        completed(1, study, cycles=3),
        replace(completed(2, study), status="lost", reason="gone"),
    ]
    return StudyResult(study, (ran[0], replace(ran[1], status="timeout"), ran[2]))


def body(page: str) -> str:
    """Return a page without its style and its scripts, the data it draws from apart."""
    found = page[page.index("<body>") :]
    return re.sub(r"(<script>).*?(</script>)", r"\1\2", found, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("name", "result", "made", "command"),
    [
        ("design", design, (DRAWN, BARE), "python -m fabric study <x.py>"),
        ("apart", apart, (), ""),
        ("verdicts", verdicts, (), ""),
    ],
)
def test_page(
    name: str,
    result: Callable[[], StudyResult],
    made: tuple[Drawn, ...],
    command: str,
    golden: Callable[[str, str], None],
) -> None:
    """Its sections, their tables and sentences, and the data that it draws from."""
    page = page_html(result(), Pictures(made, ()), command)
    golden(f"page_{name}.html", body(page))
    assert page.count("<script>") == page.count("<style>") == 1
    assert page.count("script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:") == 1


def test_overview(golden: Callable[[str, str], None]) -> None:
    """A row for each study and their sums; below, each with its pictures, values and claims."""
    results = [design(), verdicts(), RESULTS["paper"](), apart(), RESULTS["nothing"]()]
    folders = ["design", "ver&dicts", "paper", "apart", "nothing"]
    page = overview_html(results, folders, [[DRAWN, BARE], [], [BARE], [], []])
    golden("overview.html", body(page))
    assert page.count("default-src 'none'; style-src 'unsafe-inline'; img-src data:") == 1
    alone = overview_html([one_metric()], ["x"], [[]])
    assert '<div class="verdict" id="answer">1 study, 5 points.</div>' in alone
    assert "Claims" not in alone


def failing(count: int) -> StudyResult:
    """Return a study of which each point failed otherwise."""
    study = Study(name="failing", program=Path("x.py"), space=grid(a=range(count)))
    return StudyResult(
        study,
        tuple(
            Outcome(index=n, setting={"a": n}, status="error", reason=f"trouble {chr(65 + n)}")
            for n in range(count)
        ),
    )


def printed(result: StudyResult) -> str:
    """Return what the command prints."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_sheet(study_sheet(result), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("count", "on_terminal", "on_page"),
    [
        (5, "", ""),
        (6, "and 1 more reason", ""),
        (20, "and 15 more reasons", ""),
        (21, "and 16 more reasons", "and 1 more reason"),
        (22, "and 17 more reasons", "and 2 more reasons"),
    ],
)
def test_reasons(count: int, on_terminal: str, on_page: str) -> None:
    """A terminal has five reasons of failures, a page twenty; how many more there are is said."""
    result = failing(count)
    text = printed(result)
    assert text.count("trouble ") == min(count, 5)
    assert re.findall(r"and .* more reasons?", text) == [on_terminal] * bool(on_terminal)

    page = body(page_html(result, Pictures((), ()), ""))
    assert page.count("<li>") == min(count, 20)
    assert re.findall(r"and .* more reasons?", page) == [on_page] * bool(on_page)
    assert overview_html([result], ["x"], [[]]).count("trouble ") == 5


@pytest.mark.parametrize(
    ("count", "on_terminal", "on_page"),
    [(20, [], []), (21, ["and 1 more"], []), (50, ["and 30 more"], []), (51, ["and 31 more"], [1])],
)
def test_rows(count: int, on_terminal: list[str], on_page: list[int]) -> None:
    """A terminal has twenty rows of a table, a page fifty."""
    study = Study(name="rows", program=Path("x.py"), space=grid(a=range(count)))
    runs = tuple(completed(n, study, cycles=n) for n in range(count))
    text = printed(StudyResult(study, runs))
    assert re.findall(r"and \d+ more", text) == on_terminal

    page = body(page_html(StudyResult(study, runs), Pictures((), ()), ""))
    front = page[page.index('id="front"') : page.index('id="explore"')]
    assert front.count("<tr>") == 1 + min(count, 50)
    assert re.findall(r'<p class="quiet">and (\d+) more</p>', front) == list(map(str, on_page))


def test_points_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that has not all points has the front, then runs, then others, in their order."""
    result = design()
    for most, expected in (
        (24, list(range(24))),
        (23, [*range(22), 23]),
        (6, [0, 1, 2, 7, 13, 19]),
    ):
        monkeypatch.setattr("fabric.explore.study.written.page.POINTS", most)
        data = page_data(result)
        assert data["index"] == expected
        told = f"This page has {most} of 24 points, the front among them; points.parquet and"
        assert (told in page_html(result, Pictures((), ()), "")) is (most < 24)
    assert [expected[at] for at in data["front"]] == [0, 1, 7, 13, 19]


def test_metrics_of_the_page() -> None:
    """Beside those that the study is about, those of which points have different values."""
    study = Study(name="m", program=Path("x.py"), space=grid(a=(1, 2, 3)), minimize=("cycles",))
    numbers = [{"cycles": 5, "flops": n // 2, "spilled_bytes": 7} for n in range(3)]
    runs = [completed(n, study, **each) for n, each in enumerate(numbers)]
    runs[2] = replace(runs[2], numbers=runs[2].numbers | {"extra.b": 2, "extra.a": 1.5})
    runs[1] = replace(runs[1], numbers=runs[1].numbers | {"extra.a": 1})
    data = page_data(StudyResult(study, tuple(runs)))
    assert [each["id"] for each in data["metrics"]] == ["cycles", "flops", "extra.a"]
    assert [each["whole"] for each in data["metrics"]] == [True, True, False]
    assert data["about"] == 1
    assert data["metrics"][2]["values"] == [None, 1, 1.5]
