"""``new``: a first program that runs and whose test passes; ``--version``; completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabric.shell import completing
from fabric.shell.cli import main

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder``."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=_ENVIRONMENT | environment,
    )


def written(folder: Path) -> set[str]:
    """Return the names of what is in ``folder``."""
    return {file.name for file in folder.iterdir()}


def test_runs_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh folder, at once."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-first program.py"]) == 0
    assert {"my_first_program.py", "test_my_first_program.py"} == written(tmp_path)

    ran = python(tmp_path, "-m", "fabric", "run", "my_first_program.py", "-p", "rows=128")
    assert ran.returncode == 0
    assert "completed, verified in functional mode" in ran.stdout
    tested = python(tmp_path, "-m", "pytest", "-q", "-W", "error", "-p", "fabric.pytest_plugin")
    assert "2 passed" in tested.stdout
    for file in sorted(tmp_path.glob("*.py")):
        assert all(len(line) <= 100 for line in file.read_text("utf-8").splitlines())


def test_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file that is there is enough."""
    monkeypatch.chdir(tmp_path)
    Path("test_one.py").write_text("mine", encoding="utf-8")
    assert main(["new", "one"]) == 2
    assert "test_one.py is here already: expected another name" in capsys.readouterr().err
    assert written(tmp_path) == {"test_one.py"}
    assert Path("test_one.py").read_text("utf-8") == "mine"

    Path("two.py").symlink_to("nowhere.py")
    assert main(["new", "two"]) == 2
    assert "two.py is here already: expected another name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "3d", "../up", "a/b", "class", "é", "a.b", "--", "test/"])
def test_odd_names(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is no name of a module is refused."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--", name]) == 2
    assert "expected a name of letters, digits and _" in capsys.readouterr().err
    assert not written(tmp_path)


@pytest.mark.parametrize(
    "name", ["numpy", "fabric", "json", "Operators", "click", "Rich", "conftest"]
)
def test_taken_names(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file that hides a module would break the program."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 2
    assert f"would hide the module {name}: expected another name" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the package and of Python."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("step-fabric ")


def test_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was typed is no name of a module: that is said; else it is not."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-own.py"]) == 0
    assert "'my-own.py' is no name of a module: it is called my_own" in capsys.readouterr().out
    assert main(["new", "another.py"]) == 0
    assert "is called" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("step-fabric ne", "plain,new"),
        ("step-fabric run --break", "plain,--break-at"),
        ("step-fabric operators Accu", "plain,Accum"),
        ("step-fabric run own.py -p ro", "plain,rows="),
        ("step-fabric trace stalls lo", "plain,logs/own-1"),
        ("step-fabric graph own.py --run lo", "plain,logs/own-1"),
        ("step-fabric trace what-if logs/own-1 --depth st", "plain,store.0="),
        ("step-fabric run own.py --depth st", "plain,store.0="),
        ("step-fabric run other.py --depth st", ""),
    ],
)
def test_completion(words: str, completed: str, tmp_path: Path) -> None:
    """As ``--help`` says: click's own, and what a program and its runs have."""
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
    source = python(tmp_path, "-c", code, _STEP_FABRIC_COMPLETE="bash_source")
    assert "complete -o nosort -F _step_fabric_completion step-fabric" in source.stdout


def test_what_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels of the run that is named, or else of the last of the program; what build takes."""
    monkeypatch.chdir(tmp_path)
    runs = (
        ("a-1", 100, "p.py", ("x.0 -> y.1", "x.0 -> z.0")), ("a-2", 300, "p.py", ("w.0 -> y.2",)),
        ("a-3", 200, "p.py", ("v.0 -> y.3",)), ("b-1", 400, "q.py", ("v.0 -> y.4",)),
    )  # fmt: skip
    for name, seconds, program, names in runs:
        folder = tmp_path / "logs" / name
        (folder / "trace").mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps({"program": program}), encoding="utf-8")
        file = folder / "counters.json"
        file.write_text(json.dumps({"channels": [{"name": each} for each in names]}), "utf-8")
        os.utime(file, (seconds, seconds))
    text = "def other(d): ...\ndef build(a, b=1, *, c=2):\n  def build(e): ...\nx = 1\n"
    (tmp_path / "p.py").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("def build(:", encoding="utf-8")
    given: Any = None

    def offered(complete: Any, words: str, typed: str = "") -> list[str]:
        monkeypatch.setenv("COMP_WORDS", words)
        return [each.value for each in complete(given, given, typed)]

    assert ["y.2="] == offered(completing.channels, "run p.py --depth")
    assert ["y.4="] == offered(completing.channels, "run q.py --depth", "y")
    assert [] == offered(completing.channels, "run q.py --depth", "z")
    assert [] == offered(completing.channels, "run r.py --depth")
    assert ["y.1=", "z.0="] == offered(completing.channels, "trace what-if logs logs/a-1 --depth")
    for damaged in ("[]", "{"):
        (tmp_path / "logs" / "a-2" / "report.json").write_text(damaged, encoding="utf-8")
        assert ["y.3="] == offered(completing.channels, "run p.py --depth")
    assert ["a=", "b=", "c="] == offered(completing.parameters, "run p.py x.py -p")
    assert ["b="] == offered(completing.parameters, "run p.py -p", "b")
    for words in ("run", "run none.py -p", "run wrong.py -p"):
        assert [] == offered(completing.parameters, words)
    every = ["logs/a-1", "logs/a-2", "logs/a-3", "logs/b-1"]
    assert every == offered(completing.runs, "") == offered(completing.runs, "", "logs/")
    assert every[3:] == offered(completing.runs, "", "logs/b")
    (nowhere,) = completing.runs(given, given, "in/x")
    assert ("in/x", "dir") == (nowhere.value, nowhere.type)
