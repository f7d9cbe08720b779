"""Analyses print the command's output at a prompt, and show tables in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric import Trace, lower_bounds, simulate, size
from fabric.runs.cost import Cost
from fabric.shell.cli import main
from tests.fabric.study.written.made import RESULTS
from tests.fabric.test_notebook import read
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(program("simplified_moe"), tmp_path_factory.mktemp("run"))[1]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("summary",), lambda trace: trace.summary()),
        (("stalls",), lambda trace: trace.stalls()),
        (("show", "--at", "100"), lambda trace: trace.at(100)),
        (
            ("show", "--at", "100", "--around", "matmul_1"),
            lambda trace: trace.at(100).around("matmul_1"),
        ),
        (("what-if", "--work", "matmul_1=2x"), lambda trace: trace.what_if(work={"matmul_1": 2})),
    ],
)
def test_analysis_prints_what_its_command_prints(
    arguments: tuple[str, ...], asked: object, trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(asked)
    command, *options = arguments
    assert main(["trace", command, str(trace.folder), *options]) == 0
    printed = capsys.readouterr().out

    assert f"{asked(trace)}\n" == printed == f"{asked(trace)!r}\n"


def test_difference_prints_what_its_command_prints(
    trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(trace.folder)
    assert main(["trace", "diff", folder, folder]) == 0
    assert capsys.readouterr().out == f"{trace.diff(trace)}\n"


def test_query_prints_a_table(trace: Trace) -> None:
    assert str(trace.query("SELECT 1000 AS a, 'x' AS b")) == "    a  b\n1,000  x"
    assert str(trace.query("SELECT name FROM units")).endswith("\n20 of 28 rows")
    assert str(trace.query("SELECT name, unit FROM units WHERE unit < 0")) == "name  unit"


def test_deadlock_shows_its_remedy(tmp_path: Path) -> None:
    run = simulate(program("simplified_moe"), depths={"reassemble_1.2": 2}, log_dir=tmp_path)
    stuck = run.explained
    assert stuck is not None
    assert repr(stuck).startswith("error[FAB-D001]: capacity deadlock at cycle 68")
    assert "--depth reassemble_1.2=5" in repr(stuck)
    found = read(stuck._repr_html_())
    assert "svg" in found.names
    assert any("\n  the loop\n" in x and "--depth reassemble_1.2=5" in x for x in found.texts)


def test_results_show_what_they_found() -> None:
    small = program("simplified_moe")
    assert "1,474" in str(size(small))
    report = simulate(small)
    bounds = lower_bounds(small)
    least = f"{bounds.at_least['cycles']:,}"
    for found, printed in (
        (bounds, least),
        (Cost.of(report, report), "2,948"),
        (RESULTS["design"](), "The front"),
    ):
        assert printed in str(found)
        assert any(printed in text for text in read(found._repr_html_()).texts)
