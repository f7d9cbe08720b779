"""Traces opened in a program: several at once, from threads, after their folder, after a kill."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import ConfigurationError, Trace, export_trace, open_trace
from fabric.messages.telling.vocabulary import TABLES
from tests.fabric.trace.recording import program, record

_ROOT: Final = Path(__file__).parents[3]

ASKED: Final[dict[str, Callable[[Trace], Any]]] = {
    "tables": lambda trace: trace.tables["transfers"].rows(),
    "query": lambda trace: trace.query("utilisation").rows(),
    "rows": lambda trace: trace.rows("FROM waits"),
    "summary": Trace.summary,
    "stalls": Trace.stalls,
    "critical_path": Trace.critical_path,
    "deadlock": Trace.deadlock,
    "at": lambda trace: trace.at(60),
    "diff": lambda trace: trace.diff(trace),
}
"""All that a trace can be asked."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the runs of two programs, the first of which stops."""
    parent = tmp_path_factory.mktemp("runs")
    stopped = record(program("simplified_moe"), parent, depths={"reassemble_1.2": 2})
    return [stopped[1].folder.parent, record(program("swiglu"), parent)[1].folder.parent]


@pytest.fixture
def traces(folders: list[Path]) -> Iterator[list[Trace]]:
    """Open both at once."""
    with open_trace(folders[0]) as first, open_trace(str(folders[1])) as second:
        yield [first, second]


def test_several_in_threads(traces: list[Trace], folders: list[Path]) -> None:
    """Every answer is that of a trace that is asked alone."""
    questions = [(trace, ask) for trace in traces for ask in ASKED.values()] * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda question: question[1](question[0]), questions))

    alone = [ask(open_trace(folder)) for folder in folders for ask in ASKED.values()] * 4
    assert alone == answers


@pytest.mark.parametrize("name", ASKED)
def test_closed(folders: list[Path], name: str) -> None:
    """It says so, and where it is asked."""
    with open_trace(folders[0]) as trace:
        table = trace.tables["units"]
    for ask in (ASKED[name], lambda _: table.rows()):
        with pytest.raises(ConfigurationError, match=r"/trace: it is closed: expected") as caught:
            ask(trace)
        assert __file__ == caught.value.file
    trace.close()


def test_a_table_of_a_closed_trace(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its name and columns still."""
    monkeypatch.setenv("COLUMNS", "120")
    with open_trace(folders[0]) as trace:
        table = trace.tables["units"]
        assert str(table).splitlines()[0].split()[:3] == ["unit", "name", "operator"]
    assert str(table) == repr(table)
    assert repr(table).startswith("Table('units', columns=['unit', ")


@pytest.mark.parametrize("name", ASKED)
def test_frozen(traces: list[Trace], name: str) -> None:
    """Results cannot be changed, and two of one run are equal."""
    result = ASKED[name](traces[0])

    assert result == ASKED[name](traces[0])
    if is_dataclass(result):
        with pytest.raises(FrozenInstanceError):
            setattr(result, fields(result)[0].name, None)


def test_without_its_folder(folders: list[Path], tmp_path: Path) -> None:
    """All of it is read when it is opened: the remedy of a deadlock, too."""
    folder = shutil.copytree(folders[0], tmp_path / "run")
    trace = open_trace(folder)
    shutil.rmtree(folder)

    remedy = trace.deadlock()
    assert remedy is not None
    assert ["reassemble_1.2"] == [depth.option for depth in remedy.remedy.depths]
    for ask in ASKED.values():
        ask(trace)
    for form in ("csv", "jsonl", "vcd", "perfetto"):
        assert export_trace(trace, form, tmp_path / form)


def test_read_only_folder(folders: list[Path], tmp_path: Path) -> None:
    """Nothing is written beside what is read."""
    folder = shutil.copytree(folders[0], tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}
    for path in before:
        path.chmod(0o555)
    with open_trace(folder) as trace:
        for ask in ASKED.values():
            ask(trace)
    assert before == {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def test_killed(folders: list[Path], tmp_path: Path) -> None:
    """It has what was written, and says what is missing."""
    folder = shutil.copytree(folders[1], tmp_path / "run")
    for name in ("end.json", *(path.name for path in (folder / "trace").glob("states-*"))):
        (folder / "trace" / name).unlink()
    trace = open_trace(folder)

    assert ["the run did not say how it ended: this is what it wrote until then"] == trace.problems
    summary = trace.summary()
    assert ("killed", False, ()) == (summary.status, summary.has_state, summary.not_ended)
    assert "not completed (killed)" in trace.stalls().verdict.lower()
    assert {None} == {unit.ended for unit in trace.at(trace.cycles).units}
    assert sum(step.end_cycle - step.start_cycle for step in trace.critical_path().steps) > 0


@pytest.mark.parametrize("query", ["DROP TABLE units", "SELECT 1; SELECT 2", "SELEC", "COPY units"])
def test_only_reads(traces: list[Trace], query: str) -> None:
    """Whatever changes anything is refused, whichever way it is asked."""
    with pytest.raises(ConfigurationError, match=f"query '{query}': .*: expected SQL over the tab"):
        traces[0].query(query)
    for read in ("SELECT * FROM read_text('/etc/hostname')", "FROM traces", "FROM folders"):
        with pytest.raises(ConfigurationError, match="expected SQL over the tables"):
            traces[0].query(read).rows()
    with pytest.raises(Exception, match="read-only"):
        traces[0].rows("DELETE FROM units")
    assert set(TABLES) == set(traces[0].tables)


@pytest.mark.parametrize("closes", [False, True])
def test_left_open(folders: list[Path], closes: bool) -> None:
    """A script that leaves a trace open ends quietly: the database has nothing to complain of."""
    script = (
        "import sys, fabric\n"
        "trace = fabric.open_trace(sys.argv[1])\n"
        "table = trace.tables['units']\n"
        "def kept():\n    return trace, table\n"
        "sys.kept = kept\n"
        f"{'trace.close()' if closes else ''}\n"
        "print(trace, repr(table))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, folders[0]],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "" == ran.stderr
    assert ran.stdout.startswith(
        "Trace(name='simplified-moe', status='deadlock', cycles=201) Table"
    )


def test_nothing_there(tmp_path: Path) -> None:
    """It names the folder, and the line that asks."""
    with pytest.raises(
        ConfigurationError, match="there is no trace here: expected the fo"
    ) as found:
        open_trace(tmp_path)
    assert __file__ == found.value.file
