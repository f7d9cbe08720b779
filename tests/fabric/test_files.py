"""Files that are read by their lines, and written as a whole or not at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from fabric import ConfigurationError, ProgramError
from fabric.messages.telling import files
from fabric.messages.telling.errors import FabricError, said
from fabric.messages.telling.files import (
    hardware_file,
    line_in,
    open_given,
    output_file,
    read_json,
    read_toml,
    write_parts,
    write_whole,
)
from fabric.messages.telling.users_code import Interrupted, first_of, users_code

_TOML = """# a comment
top = 1

[a]
b.c = 2
"d e" = [
  3,
]
[ a . 'f' ] # another
g= 1
[[lists]]
[a.f.h]
"""

LINES = {
    ("top",): 2,
    ("a",): 4,
    ("a", "b", "c"): 5,
    ("a", "d e"): 6,
    ("a", "f"): 9,
    ("a", "f", "g"): 10,
    ("a", "f", "h"): 12,
}


def test_lines(tmp_path: Path) -> None:
    """A key has its line, or that of the innermost table around it that has one."""
    path = tmp_path / "it.toml"
    path.write_text(_TOML, encoding="utf-8")
    assert {names: line_in(str(path), *names) for names in LINES} == LINES
    file = str(path)
    assert line_in(file, "a", "f", "g") == 10
    assert line_in(file, "a", "f", "x", "y") == 9
    assert line_in(file, "x") is line_in(file) is line_in(None, "a") is None
    assert line_in(str(tmp_path / "none.toml"), "a") is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a = 1\nb = = 2\n", (2,)),
        (b"a = 1\nb = [\n", (None,)),
        (b"a = " + b"9" * 5000, (None,)),
        (b"#" + b"." * 100 + b"x" * 899, ()),
        (b"#" + b"." * 101 + b"x" * 899, (1,)),
        (b"#\n#" + b"[" * 50 + b"." * 51 + b"x" * 899, (2,)),
        (b"#" + b"." * 100 + b"x" * 9999, ()),
        (b"#" * 4_000_000, ()),
        (b"#" * 4_000_001, (None,)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_limits_of_toml(content: bytes, told: tuple[int | None, ...], tmp_path: Path) -> None:
    """What is too much is refused, at its line where it has one; what is as much is not."""
    path = tmp_path / "it.toml"
    path.write_bytes(content)
    if not told:
        assert read_toml(path, "a file") == {}
        return
    with pytest.raises(ConfigurationError) as refused:
        read_toml(path, "a file")
    assert refused.value.line in told
    assert refused.value.file == str(path)
    assert refused.value.message.startswith("not a TOML file: ")
    assert "at line" not in refused.value.message


def test_files_only(tmp_path: Path) -> None:
    """A pipe is not read, which nobody may ever write to, nor an object of another kind."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe or a device") as refused:
        open_given(tmp_path / "pipe")
    assert refused.value.filename == str(tmp_path / "pipe")
    for text, told in (
        ("[1]", "it is no object"),
        ("[" * 100_000, "are too deep"),
        ("x", "Expecting"),
    ):
        (tmp_path / "it.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=told):
            read_json(tmp_path / "it.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_MOST_BYTES_OF_JSON", 1_000)
        (tmp_path / "it.json").write_bytes(b"{}" + b" " * 998)
        assert {} == read_json(tmp_path / "it.json")
        (tmp_path / "it.json").write_bytes(b"{}" + b" " * 999)
        with pytest.raises(ValueError, match=r"^it has more than 1,000 bytes$"):
            read_json(tmp_path / "it.json")
    (tmp_path / "it.json").write_text('{"a": [1]}', encoding="utf-8")
    assert read_json(tmp_path / "it.json") == {"a": [1]}


def test_whole(tmp_path: Path) -> None:
    """What was there before stays where a writer fails, and nothing else is left."""
    path = tmp_path / "it"
    write_whole(path, "é")
    assert path.read_text(encoding="utf-8") == "é"

    def parts() -> Iterator[bytes]:
        yield b"a"
        raise KeyError

    with pytest.raises(KeyError):
        write_parts(path, parts())
    assert path.read_text(encoding="utf-8") == "é"
    write_parts(path, [b"a", b"b"])
    assert path.read_bytes() == b"ab"
    assert [each.name for each in tmp_path.iterdir()] == ["it"]
    with pytest.raises(OSError, match="No such file") as failed:
        write_whole(tmp_path / "no" / "it", "")
    assert failed.value.filename == str(tmp_path / "no" / "it")


def _fill(path: Path, error: OSError) -> None:
    with output_file(path) as file:
        file.write("a")
        raise error


def test_half_an_output(tmp_path: Path) -> None:
    """Half of a file is removed; a link to one, and a device, stay."""
    path, link = tmp_path / "it", tmp_path / "link"
    link.symlink_to(tmp_path / "other")
    for each in (path, link):
        with pytest.raises(OSError, match="full") as failed:
            _fill(each, OSError(28, "full"))
        assert failed.value.filename == str(each)
    assert (path.exists(), link.is_symlink()) == (False, True)
    with pytest.raises(OSError, match="full") as failed:
        _fill(path, OSError(28, "full", "another"))
    assert failed.value.filename == "another"
    with output_file(path, encoding="ascii", errors="replace") as file:
        file.write("é")
    assert path.read_bytes() == b"?"


def test_hardware_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is one of ours unless it is a file's; a path is what it is."""
    monkeypatch.chdir(tmp_path)
    assert hardware_file("mesh_paper").name == "mesh_paper.toml"
    assert hardware_file("mesh_paper").is_absolute()
    assert hardware_file("mesh_paper.toml") == Path("mesh_paper.toml")
    assert hardware_file("in/mesh_paper") == Path("in/mesh_paper")
    with pytest.raises(ConfigurationError, match=r"'mesh_papr': expected a file, FILE.toml, or on"):
        hardware_file("mesh_papr")
    (tmp_path / "mesh_paper").touch()
    assert hardware_file("mesh_paper") == Path("mesh_paper")


def test_first() -> None:
    """The first of a group, however deep, and what Python says RuntimeError in the place of."""
    one, other = KeyError(1), KeyError(2)
    assert first_of(BaseExceptionGroup("a", [BaseExceptionGroup("b", [one, other]), other])) is one
    hidden = RuntimeError("coroutine raised StopIteration")
    hidden.__cause__ = stopped = StopIteration(3)
    assert first_of(hidden) is stopped
    hidden.__cause__ = one
    assert first_of(hidden) is hidden
    other.__cause__ = stopped
    assert first_of(other) is other


class _UnsaidError(Exception):
    @override
    def __str__(self) -> str:
        raise KeyError


def _raises(error: BaseException) -> Callable[[], None]:
    def door() -> None:
        with users_code("it", when=", at noon"):
            raise error

    return door


def test_users_code() -> None:
    """Whatever is raised is said with its type; our own errors get a place, signals go through."""
    assert said(ValueError(" odd ")) == "ValueError: odd"
    assert said(ValueError("  ")) == "ValueError"
    assert said(_UnsaidError()) == "_UnsaidError, whose text raised KeyError"
    with pytest.raises(ProgramError) as told:
        _raises(SystemExit(3))()
    assert told.value.message == "it raised SystemExit: 3, at noon"
    assert (told.value.file, told.value.line) == (__file__, _raises.__code__.co_firstlineno + 3)
    own = ConfigurationError("own")
    with pytest.raises(ConfigurationError) as same:
        _raises(own)()
    assert same.value is own
    assert own.line == _raises.__code__.co_firstlineno + 3
    placed = ConfigurationError("own", file="a", line=1)
    with pytest.raises(ConfigurationError):
        _raises(placed)()
    assert str(placed) == "a:1: own"
    assert str(FabricError("b", file="a")) == "a: b"
    with pytest.raises(Interrupted) as signalled:
        _raises(Interrupted())()
    assert signalled.value.number == signal.SIGINT
