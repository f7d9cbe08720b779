from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import fabric.messages.files
from fabric import ConfigurationError, load_hardware
from fabric.messages.files import programs
from fabric.shell.cli import main
from fabric.shell.commands.examples import copied, examples

ROOT = Path(__file__).parents[2]


def test_examples_lists_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["examples"])
    lines = capsys.readouterr().out.splitlines()

    assert sorted(file.stem for file in (ROOT / "programs").glob("*.py")) == [
        line.split()[0] for line in lines
    ]
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", ["moe", "moe_or_attention", "decoder"])
def test_copy_of_an_example_can_be_checked(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert 0 == main(["examples", name, "-o", "own/new/copy.py"])
    written = {str(each.relative_to("own/new")) for each in Path("own/new").rglob("*.py")}
    assert (programs() / f"{name}.py").read_bytes() == Path("own/new/copy.py").read_bytes()
    assert ("moe.py" in written) == (name == "moe_or_attention")

    size = ["-p", "model=tiny", "-p", "batch=2"]
    assert 0 == main(["check", "own/new/copy.py", *size])
    assert capsys.readouterr().out


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copied("moe", Path("one.py"))
    assert [Path("two.py")] == copied("moe", Path("two.py"))

    Path("layers/experts.py").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"layers/experts\.py is here already, with"):
        copied("moe", Path("three.py"))
    assert not Path("three.py").exists()

    Path("folder.py").mkdir()
    with pytest.raises(ConfigurationError, match=r"folder\.py is here already, with"):
        copied("swiglu", Path("folder.py"))


def test_hardware_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list((ROOT / "programs" / "hardware").glob("*.toml"))
    assert files
    for file in files:
        assert load_hardware(file) == load_hardware(file.stem)

    monkeypatch.chdir(tmp_path)
    Path("paper").write_text("[clock]\nfrequency_hz = 3.0\n")
    assert 3.0 == load_hardware("paper").clock.frequency_hz
    with pytest.raises(ConfigurationError, match=r"the hardware is 'papre': expected a file, FILE"):
        load_hardware("papre")


def test_installed_programs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    ((source, inside),) = wheel["targets"]["wheel"]["force-include"].items()
    assert programs() == ROOT / source

    package = Path(inside).parts[0]
    installed = tmp_path / inside
    installed.mkdir(parents=True)
    (installed / "mine.py").write_text('"""Mine."""\n')
    monkeypatch.setattr(fabric.messages.files, "_PACKAGE", tmp_path / package)
    assert {"mine": "Mine."} == examples()
