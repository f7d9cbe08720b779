from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fabric import simulate
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.messages.vocabulary import TABLES
from fabric.shell.cli import main
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record
from tests.profiles import spread


class Printed:
    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.status = main(["trace", *map(str, arguments)])
        self.out, self.err = capsys.readouterr()


@pytest.fixture(autouse=True)
def fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wired = chain(("s0",), ("r0", "s0"), ("r0", "c10"), elements=5)
    return record(wired, tmp_path_factory.mktemp("slow"))[1].folder.parent


@pytest.fixture(scope="module")
def faster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wired = chain(("s0",), ("r0", "s0"), ("r0", "c4"), elements=5)
    return record(wired, tmp_path_factory.mktemp("faster"))[1].folder.parent


@pytest.mark.parametrize("width", spread(["100", "50"], 1))
def test_commands_print_as_in_the_snapshot(
    width: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
    slow: Path,
    faster: Path,
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    text = ""
    for command in (
        ("summary", slow),
        ("stalls", slow),
        ("show", slow, "--at", 20, "--around", "unit_1"),
        ("diff", faster, slow),
        ("what-if", slow, "--depth", "unit_1.0=4", "--work", "unit_2=0.5x"),
        ("query", slow, "SELECT name, cycle FROM states JOIN units USING (unit)"),
    ):
        printed = Printed(capsys, *command)
        assert (0, "") == (printed.status, printed.err)
        text += f"$ {command[0]}\n{printed.out}\n"
    golden(f"commands_{width}.txt", re.sub(r"\S*?(\w+\.py):\d+", r"\1:N", text))


@pytest.mark.parametrize("name", spread(QUERIES, 1))
def test_ready_query_of_a_program_has_rows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    _, trace = record(program("simplified_moe"), tmp_path)
    printed = Printed(capsys, "query", trace.folder, name)

    assert (0, "") == (printed.status, printed.err)
    assert len(printed.out.splitlines()) > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stalls", "nowhere"], "nowhere: there is no trace here: expected the folder of a run "
         "with --trace events"),
        (["show", "{run}", "--at", "99"], "cycle 99: expected a cycle from 0 to 52"),
        (["show", "{run}", "--at", "9", "--around", "unit_9"],
         "unit unit_9: expected one of unit_0, unit_1, unit_2 (did you mean unit_2?)"),
        (["query", "{run}", "SELECT"], "query 'SELECT': Parser Error: SELECT clause without "
         "selection list: expected SQL over the tables " + ", ".join(TABLES) + ", or one of "
         + ", ".join(QUERIES)),
        (["export", "{run}", "--csv", "-o", "/nowhere/run.csv"],
         "/nowhere/run.csv: No such file or directory"),
    ],
)  # fmt: skip
def test_trace_command_with_wrong_arguments_is_refused(
    capsys: pytest.CaptureFixture[str],
    slow: Path,
    arguments: list[str],
    message: str,
) -> None:
    printed = Printed(capsys, *(each.replace("{run}", str(slow)) for each in arguments))

    assert (2, "", f"fabric: {message}\n") == (printed.status, printed.out, printed.err)


def test_damage_of_a_trace_is_a_warning(
    capsys: pytest.CaptureFixture[str], slow: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(slow, tmp_path / "run")
    (run / "trace" / "end.json").unlink()
    printed = Printed(capsys, "stalls", run)

    assert 0 == printed.status
    assert printed.err == (
        f"fabric: warning: {run}: the run did not record its end: "
        "this is the trace up to its last write\n"
    )


def test_trace_of_a_grown_run_warns_of_the_stopped_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = simulate(program("pack_rows"), trace="events", log_dir=tmp_path, on_deadlock="grow")
    assert report.log_dir is not None
    run = Path(report.log_dir)
    stalls, deadlock = Printed(capsys, "stalls", run), Printed(capsys, "deadlock", run)

    assert "completed" == report.status
    assert f"each row sums to {report.cycles:,} cycles" in stalls.out
    assert f"{run / 'trace'} has the run that stopped" in stalls.err
    assert deadlock.out.startswith("error[FAB-D001]: capacity deadlock")
