from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.shell.cli import main

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=_ENVIRONMENT | environment,
    )


def written(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.deep
def test_new_program_runs_and_its_test_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pytest", None)
        assert main(["new", "my-first program.py"]) == 0
    assert "test_my_first_program.py  (after pip install pytest)\n" in capsys.readouterr().out
    assert {"my_first_program.py", "test_my_first_program.py"} == written(tmp_path)

    ran = python(tmp_path, "-m", "fabric", "run", "my_first_program.py", "-p", "rows=128")
    assert ran.returncode == 0
    assert "completed, verified in functional mode" in ran.stdout
    tested = python(tmp_path, "-m", "pytest", "-q", "-W", "error", "-p", "fabric.pytest_plugin")
    assert "2 passed" in tested.stdout
    for file in sorted(tmp_path.glob("*.py")):
        assert all(len(line) <= 100 for line in file.read_text("utf-8").splitlines())


def test_new_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("test_one.py").write_text("mine", encoding="utf-8")
    assert main(["new", "one"]) == 2
    assert "test_one.py is here already: expected another name" in capsys.readouterr().err
    assert written(tmp_path) == {"test_one.py"}
    assert Path("test_one.py").read_text("utf-8") == "mine"

    Path("two.py").symlink_to("nowhere.py")
    assert main(["new", "two"]) == 2
    assert "two.py is here already: expected another name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "3d", "../up", "class", "é", "a.b"])
def test_new_refuses_odd_names(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--", name]) == 2
    assert "expected a name of letters, digits and _" in capsys.readouterr().err
    assert not written(tmp_path)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("step-fabric ne", "plain,new"),
        ("step-fabric run own.py -p ro", "plain,rows="),
        ("step-fabric trace stalls lo", "plain,logs/own-1"),
        ("step-fabric run own.py --depth st", "plain,store.0="),
        ("step-fabric run other.py --depth st", ""),
    ],
)
def test_completion_offers_words_of_the_program(words: str, completed: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def build(rows=1, *, seed=0): ...\n", encoding="utf-8")
    logged = tmp_path / "logs" / "own-1"
    (logged / "trace").mkdir(parents=True)
    (logged / "report.json").write_text('{"program": "own.py"}', encoding="utf-8")
    counters = '{"channels": [{"name": "load.0 -> store.0"}]}'
    (logged / "counters.json").write_text(counters, encoding="utf-8")
    code = (
        "import sys; sys.argv = ['step-fabric']; from fabric.__main__ import run; sys.exit(run())"
    )
    found = python(
        tmp_path,
        "-c",
        code,
        _STEP_FABRIC_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(words.count(" ")),
    )
    assert completed in (found.stdout.splitlines() or [""])
