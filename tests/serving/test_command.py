from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.explore.serving.driver import conduct_serving
from fabric.explore.serving.measured_costs import TableDescription
from fabric.explore.serving.question import open_servings
from fabric.messages.errors import ProgramError
from fabric.shell.cli import main
from tests.serving.test_fabric_cost import Here
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
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def served(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["serve", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.deep
def test_serve_writes_the_same_object_and_folder_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = config(tmp_path), tmp_path / "out"
    status, printed, said = served(capsys, file, "--json", "-o", out)
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
        "serving.json",
        "study.db",
    }
    assert {path.name for path in (out / "pictures").iterdir()} == {
        "load.svg",
        "load.png",
        "time.svg",
        "time.png",
    }
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert served(capsys, file, "--json", "-o", out)[:2] == (0, printed)
    for path, content in files.items():
        assert path.read_bytes() == content, path.name
    assert served(capsys, file, "--json")[:2] == (0, printed)


def test_kept_runs_are_resumed_unless_the_question_changed(tmp_path: Path) -> None:
    (serving,) = open_servings(config(tmp_path))
    workers, folder = Here(), tmp_path / "new" / "one"
    first = conduct_serving(serving, workers, folder)
    assert len(workers.jobs) == 2
    assert first.resumed == 0
    again = conduct_serving(serving, workers, folder)
    assert len(workers.jobs) == 2
    assert again.resumed == 2
    assert again.as_json() == first.as_json()
    rates = (1.0, 2.0, 50_000.0)
    more = replace(serving, requests=replace(serving.requests, rates=rates))
    assert conduct_serving(more, workers, folder).resumed == 2
    changed = replace(serving, server=replace(serving.server, max_num_seqs=5))
    assert conduct_serving(changed, workers, folder).resumed == 0
    promised = replace(serving, level=replace(serving.level, latency_seconds=9.0))
    assert conduct_serving(promised, workers, folder).resumed == 0
    assert conduct_serving(serving, workers, folder).resumed == 2


def test_serve_runs_a_users_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN)
    theirs = json.loads(served(capsys, config(tmp_path), "--json")[1])
    file = config(tmp_path, top='scheduler = "own.py:OneAtATime"\n')
    status, printed, _ = served(capsys, file, "--json")
    assert status == 0
    ours = json.loads(printed)
    running = [each["designs"][0]["runs"][1]["mean_running"] for each in (ours, theirs)]
    assert running[0] == pytest.approx(1)
    assert running[1] > 3


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"requests": ""}, "server.toml: has no [requests]: expected [requests] and [cost]"),
        ({"cost": "kin = 3"}, "[cost] has no kind: expected one of tables, fabric"),
        (
            {"cost": 'kind = "fabric"\nprogram = "a.py"\nlayers = 2\nexact_steps = 1'},
            "[cost] has no hardware, routing, decode_requests, cache_tokens, prefill_tokens, "
            "cache_bytes_per_token, attention_flops_per_pair, attention_flops_per_cycle: expected "
            "a path for hardware, routing; a tuple of integers from 1 to 2147483647 for "
            "decode_requests, cache_tokens, prefill_tokens; an integer from 1 to 2147483647 for "
            "cache_bytes_per_token, attention_flops_per_pair, attention_flops_per_cycle",
        ),
        (
            {"requests": 'file = "requests.csv"\nrates = [2, 1]'},
            "[requests] rates is [2, 1]: expected ascending",
        ),
        ({"requests": 'file = "none.csv"'}, "none.csv: cannot be read"),
        ({"server": "max_num_seq = 4"}, "[server] has no key max_num_seq (found max_num_seq = 4)"),
        ({"server": "num_blocks = 0"}, "[server] num_blocks is 0: expected"),
        (
            {"server": "block_size = 1\nnum_blocks = 7"},
            "request 19 needs 10 tokens of cache, and a replica has 7 blocks, 7 tokens",
        ),
        ({"cost": 'kind = "guess"'}, "[cost] kind is 'guess': expected one of tables, fabric"),
        ({"cost": 'kind = "tables"'}, "[cost] has no attention, dense, "),
        ({"top": 'scheduler = "own.py:1st"\n'}, "expected FILE.py:NAME"),
        ({"top": 'scheduler = "own.py:Own"\n'}, "own.py: cannot be read"),
        (
            {"top": "[designs]\nfast = 3\n"},
            "server.toml:2: designs.fast is 3: expected a section, [designs.fast]",
        ),
    ],
)
def test_serve_refuses_wrong_configurations(
    replaced: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed, errors = served(capsys, config(tmp_path, **replaced), "--json")
    found = json.loads(printed)
    assert status == 2
    assert list(found) == ["status", "error"]
    assert found["status"] == "error"
    assert said in errors
    assert errors.startswith("fabric: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("3", "servings() returned 3: expected a list of Serving"),
        ("[3]", "servings() returned the list [3]: expected a list of Serving"),
        ("[]", "servings() returned an empty list: expected at least one Serving"),
        ("[one, replace(one, name='own')]", "servings() returned own twice: expected each name"),
        ("[replace(one, name='a'), one]", ""),
    ],
)
def test_servings_of_python_are_checked(returned: str, said: str, tmp_path: Path) -> None:
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


def test_design_overrides_keys_of_the_cost(tmp_path: Path) -> None:
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


@pytest.mark.deep
def test_interrupted_serve_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(
        "import os, signal\nfrom pathlib import Path\n"
        "from fabric.serving import ContinuousBatching\n\n"
        f"one, two = Path({str(tmp_path / 'one')!r}), Path({str(tmp_path / 'two')!r})\n\n\n"
        "class Stopping(ContinuousBatching):\n"
        "    def __init__(self, server):\n"
        "        super().__init__(server)\n"
        "        if one.exists() and not two.exists():\n"
        "            two.touch()\n"
        "            os.killpg(0, signal.SIGINT)\n"
        "            signal.pause()\n"
        "        one.touch()\n"
    )
    file = config(tmp_path, top='scheduler = "own.py:Stopping"\n')
    stopped = serve(file, "--json", "--jobs", "1", "-o", tmp_path / "out")
    assert stopped.returncode == 130
    found = json.loads(stopped.stdout)
    assert found["status"] == "interrupted"
    runs = found["designs"][0]["runs"]
    assert [each["completed"] for each in runs] == [40]
    status, again, _ = served(capsys, file, "--json", "-o", tmp_path / "out")
    assert status == 0
    assert served(capsys, file, "--json")[1] == again
    assert json.loads(again)["designs"][0]["runs"][0] == runs[0]
