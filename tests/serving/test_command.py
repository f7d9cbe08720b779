"""The command serve: what it prints, keeps and exits with."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from typing_extensions import override

from fabric.explore.serving.conducting import Watching, conduct_serving
from fabric.explore.serving.measured_costs import TableDescription
from fabric.explore.serving.question import RequestDescription, open_servings
from fabric.explore.study.workers import Workers
from fabric.messages.telling.errors import ProgramError
from fabric.shell.cli import main
from fabric.shell.json_object import one_object
from fabric.shell.serving import Serves, ServingWatch
from tests.fabric.study.written.test_watch import session
from tests.serving.test_tables import written

ROOT = Path(__file__).parents[2]

REQUESTS = "arrival_seconds,prompt_tokens,output_tokens\n" + "".join(
    f"{number / 4},{3 + number % 5},{1 + number % 4}\n" for number in range(40)
)

OWN = """
from fabric.serving import Batch

class OneAtATime:
    blocks = preemptions = 0

    def __init__(self, server):
        self.most, self.queue = server.max_num_batched_tokens, []

    @property
    def waiting(self):
        return max(0, len(self.queue) - 1)

    @property
    def running(self):
        return min(1, len(self.queue))

    def add(self, request):
        self.queue.append(request)

    def schedule(self):
        batch = Batch()
        for request in self.queue[:1]:
            batch.add(request, min(self.most, request.known - request.computed))
        return batch

    def finish(self, request):
        self.queue.remove(request)
"""


def config(folder: Path, **replaced: str) -> Path:
    written(folder)
    (folder / "requests.csv").write_text(REQUESTS)
    sections = {
        "requests": 'file = "requests.csv"\nrates = [1, 50_000]',
        "server": "max_num_seqs = 4\nmax_num_batched_tokens = 8\nnum_blocks = 64",
        "cost": 'kind = "tables"\nattention = "attention.csv"\ndense = "dense.csv"\nlayers = 3\n'
        'in_each_layer = { a = 2 }\nin_each_step = { b = 1 }\noutside = "edge"',
        "level": "latency_seconds = 0.001",
    } | replaced
    top = sections.pop("top", "")
    text = top + "".join(f"\n[{name}]\n{body}\n" for name, body in sections.items() if body)
    file = folder / "server.toml"
    file.write_text(text)
    return file


def serve(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fabric", "serve", *map(str, arguments)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["serve", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_object_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = config(tmp_path), tmp_path / "out"
    status, printed, said = told(capsys, file, "--json", "-o", out)
    assert status == 0
    assert f"page in {out / 'index.html'}" in said
    found = json.loads(printed)
    runs = found["designs"][0]["runs"]
    assert [each["rate_per_second"] for each in runs] == [1, 50_000]
    assert [each["completed"] for each in runs] == [40, 40]
    assert runs[0]["kept"] == 1 > runs[1]["kept"]
    assert {path.name for path in out.iterdir()} == {
        "index.html",
        "pictures",
        "runs.jsonl",
        "serving.json",
    }
    assert {path.name for path in (out / "pictures").iterdir()} == {
        "load.svg",
        "load.png",
        "time.svg",
        "time.png",
    }
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert told(capsys, file, "--json", "-o", out)[:2] == (0, printed)
    for path, content in files.items():
        assert path.read_bytes() == content, path.name
    assert told(capsys, file, "--json")[:2] == (0, printed)


def test_runs_that_are_kept(tmp_path: Path) -> None:
    (serving,) = open_servings(config(tmp_path))
    told: list[tuple[str, float | None, int, int]] = []

    class Noted(Watching):
        @override
        def requests(self, design: str, rate: float | None, done: int, all_runs: int) -> None:
            told.append((design, rate, done, all_runs))

    workers = cast("Workers", None)  # nothing runs on the fabric
    folder = tmp_path / "new" / "one"
    first = conduct_serving(serving, workers, folder, Noted())
    assert told == [("", 1, 40, 80), ("", 50_000, 80, 80)]
    assert first.resumed == 0
    file = folder / "runs.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[1], "no JSON", lines[0][:-9], '{"identity": 3}']))
    told.clear()
    again = conduct_serving(serving, workers, folder, Noted())
    assert told == [("", 1, 40, 80)]
    assert again.resumed == 1
    assert again.as_json() == first.as_json()
    changed = replace(serving, server=replace(serving.server, max_num_seqs=5))
    assert conduct_serving(changed, workers, folder).resumed == 0
    promised = replace(serving, level=replace(serving.level, latency_seconds=9.0))
    assert conduct_serving(promised, workers, folder).resumed == 0
    assert conduct_serving(serving, workers, folder).resumed == 2
    assert len(file.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("design", "rate", "told"),
    [("", None, "serving"), ("", 2.5, "2.5/s"), ("a\nb", 1e6, "a\\nb 1e+06/s"), ("a", None, "a")],
)
def test_line(design: str, rate: float | None, told: str) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)
    clock = itertools.count()
    with ServingWatch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch.requests(design, rate, 17, 40)
        watch.requests("other", rate, 18, 40)
        for _ in range(2):
            watch.situations(session("situations", ["completed"] * 7))
        watch.requests("last", 3, 39, 40)
    assert isinstance(terminal.file, io.StringIO)
    text = terminal.file.getvalue()
    shown = (
        f"{told} ", "0/40 requests", "other", "18/40 requests", "situations", "7/200 points",
        "last 3/s", "39/40 requests",
    )  # fmt: skip
    at = 0
    for said in shown:
        at = text.index(said, at)
    assert text.count("\x1b[?25h") == 3
    assert text.endswith("\x1b[2K")


def test_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, wanted = list[Path](), [tmp_path / "a_b", tmp_path / "c"]

    def conducted(serving: Any, *_: object) -> Any:
        return SimpleNamespace(interrupted=False, as_json=lambda: {"serving": serving.name})

    def kept(_: object, folder: Path, *, command: str) -> list[str]:
        assert command == "python -m fabric serve some.py"
        written.append(folder)
        return ["c is full"] if folder.name == "c" else []

    monkeypatch.setattr("sys.argv", ["fabric", "serve", "some.py"])
    monkeypatch.setattr("fabric.explore.serving.conducting.conduct_serving", conducted)
    monkeypatch.setattr("fabric.explore.serving.folder.write_folder", kept)
    questions: list[Any] = [SimpleNamespace(name="a/b"), SimpleNamespace(name="c")]
    serves = Serves(questions, tmp_path)
    one_object()
    serves.run(1, as_json=True)
    assert 4 == serves.conclude(as_json=True)
    told = capsys.readouterr()
    assert wanted == written
    assert [*(f"page in {each / 'index.html'}" for each in wanted), "fabric: c is full"] == (
        told.err.splitlines()
    )
    assert {"servings": [{"serving": "a/b"}, {"serving": "c"}]} == json.loads(told.out)


def test_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    top = 'question = "Who waits?"\n'
    status, printed, _ = told(capsys, config(tmp_path, top=top))
    lines = printed.splitlines()
    assert status == 0
    assert lines[0] == "server  Who waits?"
    assert "tokens/s at 50,000 requests/s" in lines[1]
    table = lines[lines.index("Runs") + 1 :]
    first = [line.split()[0] for line in table if line.strip()]
    assert first[first.index("load/s") + 1 :][:2] == ["1", "50,000"]


def test_designs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"designs.short": "layers = 1", 'designs."long one"': "layers = 9"}
    status, printed, _ = told(capsys, config(tmp_path, **more), "--json")
    designs = json.loads(printed)["designs"]
    assert status == 0
    assert [each["design"] for each in designs] == ["short", "long one"]
    short, long = (each["runs"][0]["latency"]["mean"] for each in designs)
    assert long > short


def test_own_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN)
    theirs = json.loads(told(capsys, config(tmp_path), "--json")[1])
    file = config(tmp_path, top='scheduler = "own.py:OneAtATime"\n')
    status, printed, _ = told(capsys, file, "--json")
    assert status == 0
    ours = json.loads(printed)
    running = [each["designs"][0]["runs"][1]["mean_running"] for each in (ours, theirs)]
    assert running[0] == pytest.approx(1)
    assert running[1] > 3


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"requests": ""}, "server.toml: has no [requests]: expected one"),
        (
            {"requests": 'file = "requests.csv"\nrates = [0]'},
            "[requests] rates is [0]: expected ascending",
        ),
        (
            {"requests": 'file = "requests.csv"\nrates = [2, 1]'},
            "rates is [2, 1]: expected ascending",
        ),
        ({"requests": 'file = "requests.csv"\npoisson = true'}, "rates is empty: expected rates"),
        ({"requests": 'file = "none.csv"'}, "none.csv: cannot be read"),
        ({"server": "max_num_seq = 4"}, "[server] has no key max_num_seq (found max_num_seq = 4)"),
        ({"server": "max_num_seqs = 0"}, "[server] max_num_seqs is 0: expected"),
        ({"server": "num_blocks = 0"}, "[server] num_blocks is 0: expected"),
        (
            {"server": "block_size = 1\nnum_blocks = 7"},
            "request 19 needs 10 tokens of cache, and a replica has 7 blocks, 7 tokens",
        ),
        ({"cost": 'kind = "guess"'}, "[cost] kind is 'guess': expected one of tables, fabric"),
        ({"cost": "kind = [1]"}, "[cost] kind is the list [1]: expected one of tables, fabric"),
        ({"cost": 'kind = "tables"'}, "[cost] has no attention: expected a"),
        ({"level": "latency = 3"}, "[level] has no key latency"),
        ({"top": "speed = 3\n"}, "speed is not known here: expected"),
        ({"top": 'scheduler = "own"\n'}, "expected FILE.py:NAME"),
        ({"top": 'scheduler = "own.py:1st"\n'}, "expected FILE.py:NAME"),
        ({"top": 'scheduler = "own.py:Own"\n'}, "own.py: cannot be read"),
        ({"top": "question = 3\n"}, "server.toml:1: question is 3: expected a text"),
        (
            {"level": "", "top": "level = 3\n"},
            "server.toml:1: level is 3: expected a section, [level] with keys",
        ),
        (
            {"top": "[designs]\nfast = 3\n"},
            "server.toml:2: designs.fast is 3: expected a section, [designs.fast]",
        ),
    ],
)
def test_refused(
    replaced: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed, errors = told(capsys, config(tmp_path, **replaced), "--json")
    found = json.loads(printed)
    assert status == 2
    assert list(found) == ["serving", "question", "status", "error", "notes", "designs"]
    assert found["status"] == "error"
    assert said in errors
    assert errors.startswith("fabric: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("3", "servings() returned 3: expected a list of Serving"),
        ("[3]", "servings() returned the list [3]: expected a list of Serving"),
        ("[]", "servings() returned none: expected at least one"),
        ("[one, replace(one, name='own')]", "servings() returned own twice: expected each name"),
        ("[replace(one, name='a'), one]", ""),
    ],
)
def test_questions_of_python(returned: str, said: str, tmp_path: Path) -> None:
    written(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import replace\nfrom pathlib import Path\n\n"
        "from fabric.explore.serving.measured_costs import TableDescription\n"
        "from fabric.explore.serving.question import RequestDescription, Serving\n\n"
        "cost = TableDescription(attention=Path('a'), dense=Path('d'), layers=1,\n"
        "    in_each_layer={}, in_each_step={})\n"
        "one = Serving(requests=RequestDescription(file=Path('r')), designs={'': cost})\n\n\n"
        f"def servings():\n    return {returned}\n"
    )
    if said:
        with pytest.raises(ProgramError) as raised:
            open_servings(file)
        assert raised.value.message.startswith(said)
    else:
        assert [each.name for each in open_servings(file)] == ["a", "own"]


def test_designs_change_keys_of_sections(tmp_path: Path) -> None:
    more = {"designs.short": "layers = 1\nin_each_step = { a = 5 }", "designs.same": ""}
    file = config(tmp_path, **more)
    file.write_text(file.read_text() + "[designs.same]\n")
    (found,) = open_servings(file)
    short, same = found.designs.values()
    assert isinstance(short, TableDescription)
    assert isinstance(same, TableDescription)
    assert (short.layers, same.layers) == (1, 3)
    assert short.in_each_step == {"b": 1, "a": 5}
    assert same.in_each_step == {"b": 1}
    assert same.attention == tmp_path / "attention.csv"
    assert found.requests.file == tmp_path / "requests.csv"
    assert found.loads == (1, 50_000)


def test_loads_that_are_drawn(tmp_path: Path) -> None:
    config(tmp_path)
    described = RequestDescription(file=tmp_path / "requests.csv", rates=(2.0,), poisson=True)
    table = described.read()
    assert len(table) == len(described.at(table, 2.0)) == 40
    few = replace(described, count=7)
    assert (len(few.read()), len(few.at(table, 2.0))) == (40, 7)
    assert few.at(table, 2.0).arrival_seconds[0] != few.at(table, 4.0).arrival_seconds[0]
    stretched = replace(few, poisson=False)
    assert len(stretched.read()) == 7
    assert len(stretched.at(table, 2.0)) == 40
    assert stretched.at(table, 2.0).per_second == pytest.approx(2)
    assert stretched.at(table, None) is table


def test_a_users_fault_is_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(
        "from fabric.serving import ContinuousBatching\n\n\n"
        "class Own(ContinuousBatching):\n    def schedule(self):\n        return 1 / 0\n"
    )
    file = config(tmp_path, top='scheduler = "own.py:Own"\n')
    status, _, errors = told(capsys, file)
    assert status == 2
    assert "own.py:6" in errors
    assert "the scheduler raised ZeroDivisionError" in errors


def test_ctrl_c_keeps_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(
        "import os, signal\nfrom pathlib import Path\n"
        "from fabric.serving import ContinuousBatching\n\n"
        f"mark = Path({str(tmp_path / 'stopped')!r})\n\n\n"
        "class Stopping(ContinuousBatching):\n"
        "    steps = 0\n\n"
        "    def schedule(self):\n"
        "        Stopping.steps += 1\n"
        "        if Stopping.steps > 150 and not mark.exists():\n"
        "            mark.touch()\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        return super().schedule()\n"
    )
    file = config(tmp_path, top='scheduler = "own.py:Stopping"\n')
    stopped = serve(file, "--json", "-o", tmp_path / "out")
    assert stopped.returncode == 130
    found = json.loads(stopped.stdout)
    assert found["status"] == "interrupted"
    runs = found["designs"][0]["runs"]
    assert [each["interrupted"] for each in runs] == [False, True]
    assert runs[0]["completed"] == 40 > runs[1]["completed"]
    assert len((tmp_path / "out" / "runs.jsonl").read_text().splitlines()) == 1
    status, again, _ = told(capsys, file, "--json", "-o", tmp_path / "out")
    assert status == 0
    assert told(capsys, file, "--json")[1] == again
    assert json.loads(again)["designs"][0]["runs"][0] == runs[0]


def test_nobody_else_imports_it() -> None:
    program = ROOT / "tests/fabric/small_program.py"
    code = (
        "import sys, fabric\n"
        "from fabric.shell.cli import main\n"
        f"status = main(['run', {str(program)!r}])\n"
        "main(['check', " + repr(str(program)) + "])\n"
        "print([name for name in sys.modules if name.startswith('fabric.serving')], status,"
        " file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "[] 0"
