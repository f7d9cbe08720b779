from __future__ import annotations

import re
import traceback
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pydot
import pytest
from typing_extensions import override

from fabric import ProgramError, simulate
from fabric.graph.loading.program_file import load_on
from fabric.shell.cli import main

TEXT: Final = (
    "\x1b[8m\x1b]0;t\x07<script>x()</script><b>&amp;\"'\0\n\r\u202e\u2066\x9b2J\ud800]]>--><u>"
)

_OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_PROGRAM: Final = f"""
import numpy as np
from fabric import Program
from operators import Exp, LinearOffChipLoad, LinearOffChipStore, Map

TEXT = {TEXT!a}

def bad(value):
    raise ValueError(TEXT)
bad.__name__ = bad.__doc__ = TEXT

def build(fault: str = "none") -> Program:
    with Program(TEXT) as program:
        x = LinearOffChipLoad(np.eye(32), tile=(1, 32), name=TEXT + "load")()
        if fault == "while wired":
            raise ValueError(TEXT)
        if fault == "no function":
            x = Map(bad, name=TEXT + "bad")(x)
        LinearOffChipStore(TEXT + "store")(Map(Exp(), name=TEXT + "map")(x))
    program.expect(**{{TEXT + "store": lambda: np.eye(32)}})
    return program
build.__doc__ = TEXT
"""

_WORD: Final = TEXT.replace("\0", "")

COMMANDS: Final = {
    "run": (0, "run", "p.py", "--trace", "events"),
    "run --json": (0, "run", "p.py", "--json"),
    "functional": (None, "run", "p.py", "--mode", "functional"),
    "while wired": (2, "run", "p.py", "-p", "fault=while wired"),
    "no function": (2, "run", "p.py", "-p", "fault=no function"),
    "check": (0, "check", "p.py"),
    "check --json": (0, "check", "p.py", "--json"),
    "size": (0, "size", "p.py", "--goal", "deadlock-free"),
    "svg": (0, "graph", "p.py", "-o", "it.svg"),
    "dot": (0, "graph", "p.py", "-o", "it.dot"),
    "mermaid": (0, "graph", "p.py", "-o", "it.mmd"),
    "parameter": (2, "run", "p.py", "-p", f"{_WORD}=1"),
    "depth": (2, "run", "p.py", "--depth", f"{_WORD}=3"),
    "operators": (2, "operators", _WORD),
    "command": (2, _WORD),
    "option": (2, "run", f"--{_WORD}"),
    "query": (2, "trace", "query", "nowhere", _WORD),
}


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: Final[list[str]] = []
        self.feed(page)
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(_PROGRAM, encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_no_control_characters(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, *arguments = COMMANDS[name]
    status = main([str(each) for each in arguments])
    out, err = capsys.readouterr()

    assert wanted in (None, status), err
    assert "Traceback" not in err
    assert not _OBEYED.search(out + err)
    if name == "svg":
        tree = ET.parse("it.svg")
        assert not {each.tag.rpartition("}")[2] for each in tree.iter()} & {"script", "b", "u"}
    if name == "dot":
        assert pydot.graph_from_dot_data(Path("it.dot").read_text(encoding="utf-8"))


@pytest.mark.deep
def test_pages_and_exports_have_no_foreign_elements(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["run", "p.py", "--trace", "events"])
    (run,) = Path("logs").iterdir()
    assert 0 == main(["trace", "report", str(run), "-o", "it.html"])
    tags = Tags(Path("it.html").read_text(encoding="utf-8")).found
    assert 3 == tags.count("script")
    assert not {"b", "u"} & set(tags)
    for form in ("vcd", "jsonl", "csv"):
        assert 0 == main(["trace", "export", str(run), f"--{form}", "-o", f"it.{form}"])
        assert not _OBEYED.search(Path(f"it.{form}").read_text(encoding="utf-8"))
    assert 0 == main(["trace", "export", str(run), "--perfetto", "-o", "it.perfetto"])
    for command in ("summary", "stalls", "deadlock"):
        assert 0 == main(["trace", command, str(run)])
    assert not _OBEYED.search("".join(capsys.readouterr()))


def test_error_prints_no_control_characters() -> None:
    error = ProgramError(TEXT, file=TEXT, line=3)
    assert error.message == TEXT
    assert not _OBEYED.search(str(error).replace("\n", ""))
    assert not _OBEYED.search("".join(traceback.format_exception(error)).replace("\n", ""))


def test_notebook_shows_no_foreign_elements() -> None:
    program = load_on(None, "p.py", [], {}).program
    report = simulate(program, trace="events")
    for thing in (program, report, report.trace()):
        page = thing._repr_html_()
        assert not {"script", "u"} & set(Tags(page).found)
        assert not _OBEYED.search(page)
        assert not _OBEYED.search(repr(thing))
