"""Pipes, devices, folders and circular links in place of files are refused without waiting."""

from __future__ import annotations

import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from fabric import ConfigurationError
from fabric.shell.cli import main
from tests.programs.loading import PROGRAMS

_PROGRAM: Final = str(Path(__file__).parent / "small_program.py")

_KINDS: Final = ("pipe", "folder", "itself", "zeros")

_COMMANDS: Final = (
    ("run", "{}"),
    ("check", "{}"),
    ("study", "{}"),
    ("study", "{}", "--vary", "stop=5,6"),
    ("run", _PROGRAM, "--hardware", "{}"),
    ("check", _PROGRAM, "--hardware", "{}"),
    ("study", _PROGRAM, "--vary", "stop=5,6", "--hardware", "{}"),
    ("size", _PROGRAM, "--hardware", "{}"),
    ("serve", "{}"),
    ("run", _PROGRAM, "--depths", "{}"),
)


@pytest.fixture(autouse=True)
def never() -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=_KINDS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "given"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "itself":
            path.symlink_to(path)
        case _:
            path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize(
    "command", _COMMANDS, ids=lambda command: " ".join(Path(each).name for each in command)
)
def test_command_refuses_what_is_not_a_file(
    command: tuple[str, ...],
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status = main([each.format(file) for each in command])
    errors = capsys.readouterr().err
    refusals = [each for each in errors.splitlines() if each.startswith(("fabric: ", "Error: "))]
    assert (status, len(refusals), "Traceback" in errors) == (2, 1, False), errors
    assert str(file) in refusals[0]


def test_arrays_that_are_not_a_file_are_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(PROGRAMS)
    from layers.files import load

    with pytest.raises(ConfigurationError, match="lengths: "):
        load(file, "lengths", "a file of numpy")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROGRAMS)
    from layers.files import load

    path = tmp_path / "twice.npz"
    np.savez(path, first=np.arange(3))
    with zipfile.ZipFile(path) as archive:
        content = archive.read("first.npy")
    for name in ("first.npy", "first"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("first.npy", content)
            archive.writestr(name, content)
        with pytest.raises(ConfigurationError, match="holds two arrays of one name"):
            load(path, "lengths", "a file of numpy", "first")
