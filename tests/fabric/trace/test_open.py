from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import ConfigurationError, Trace, export_trace, open_trace
from tests.fabric.trace.recording import program, record
from tests.profiles import spread

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


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    parent = tmp_path_factory.mktemp("runs")
    stopped = record(program("simplified_moe"), parent, depths={"reassemble_1.2": 2})
    return [stopped[1].folder.parent, record(program("swiglu"), parent)[1].folder.parent]


@pytest.fixture
def traces(folders: list[Path]) -> Iterator[list[Trace]]:
    with open_trace(folders[0]) as first, open_trace(str(folders[1])) as second:
        yield [first, second]


@pytest.mark.deep
def test_traces_in_threads_answer_as_alone(traces: list[Trace], folders: list[Path]) -> None:
    questions = [(trace, ask) for trace in traces for ask in ASKED.values()] * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda question: question[1](question[0]), questions))

    alone = [ask(open_trace(folder)) for folder in folders for ask in ASKED.values()] * 4
    assert alone == answers


@pytest.mark.parametrize("name", spread(ASKED, 1))
def test_closed_trace_is_refused(folders: list[Path], name: str) -> None:
    with open_trace(folders[0]) as trace:
        table = trace.tables["units"]
    for ask in (ASKED[name], lambda _: table.rows()):
        with pytest.raises(ConfigurationError, match=r"/trace: it is closed: expected") as caught:
            ask(trace)
        assert __file__ == caught.value.file
    trace.close()


def test_trace_answers_without_its_folder(folders: list[Path], tmp_path: Path) -> None:
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


@pytest.mark.parametrize("closes", spread([False, True], 1))
def test_script_with_an_open_trace_ends_quietly(folders: list[Path], closes: bool) -> None:
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
