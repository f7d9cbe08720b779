"""Paths and names are data: whatever letters they have, files and figures stay what they are."""

from __future__ import annotations

import csv
import json
import os
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pydot
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from vcdvcd import VCDVCD

from fabric import Feedback, Program, ProgramError, StreamType, simulate
from fabric.analysis.drawing.picture import picture_of
from fabric.analysis.drawing.svg import dot, mermaid, svg
from fabric.analysis.trace.export import _identifiers
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import BoolType
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.wording import visible
from fabric.shell.cli import main
from tests.deadlock.parts import Script
from tests.profiles import of_profile, spread

HOSTILE_PATHS = (
    "channel=7",
    "seed=3",
    "element=a/unit=b",
    "a*b",
    "**",
    "q?",
    "[x]",
    "[!a]",
    "{a,b}",
    "it's",
    'd"q',
    "50%",
    "%s%n",
    "new\nline",
    "tab\t",
    "\x1b[31m",
    "ünï ☃ 漢",
    "back\\slash*",
    "file:",
    "s3:/bucket",
    "https:/host",
    "a/-o",
    "~",
    "$HOME",
    " spaces ",
    "'); DROP TABLE units; --",
    "[red]",
    "x" * 200,
    os.fsdecode(b"not utf-8 \xff"),
)
"""Folders, of which each means something to somebody."""

WORST_PATHS = (
    "channel=7/[x]*?/'\"%s\n\x1b[31m[red]",
    "s3:/back\\slash*",
    os.fsdecode(b"file:/not utf-8 \xff"),
)
"""Folders that mean all of it."""

HOSTILE_NAMES = (
    "../../escaped",
    "/etc/escaped",
    "..",
    ".",
    "a/b",
    "nul\0",
    "new\nline",
    "x" * 600,
    "ünï ☃ 漢",
    "[red]text[/red]",
    "[/]",
    "\x1b]0;title\x07\x1b[2J",
    "right\u202eto left",
    "'); DROP TABLE units; --",
    'quote"s and \\n and \\',
    "<script>alert(1)</script>&amp;",
    "$end $var wire 1 ! x $end",
    ":smile: %s {0}",
    "a b.c[0]*?",
    "\udcff",
    "a -> b",
    "=x=",
)
"""Names of programs and of operators."""

_PROGRAM = (Path(__file__).parents[1] / "small_program.py").read_bytes()

_EXPORTS = ("perfetto", "vcd", "jsonl", "csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of one's own, two levels down, and print as to a file."""
    folder = tmp_path / "two" / "levels"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)


class Printed:
    """What a command printed, and what it exited with."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.status = main([str(each) for each in arguments])
        self.out, self.err = capsys.readouterr()


_SHORT = ("run", "query", "csv")


def _said(
    capsys: pytest.CaptureFixture[str], folder: Path, only: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return what each command says of a program and its runs, all of them in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    program = Path("program.py")
    program.write_bytes(_PROGRAM)
    hardware = folder / "hardware.toml"
    hardware.write_text("[channel]\ndepth = 2\n", encoding="utf-8")
    wired = ("--hardware", hardware, "-p", "stop=40")
    runs = folder / "logs"
    traced = ("--trace", "events", "--log-dir", runs)
    said = {}
    for title, *arguments in (
        ("run", "run", *wired, *traced, program),
        ("stuck", "run", *wired, *traced, "-p", "fault=stuck", program),
        ("check", "check", *wired, program),
        ("graph", "graph", *wired, "--run", runs / "small-1", "-o", folder / "graph.svg", program),
        ("query", "trace", "query", runs / "small-1", "SELECT * FROM transfers"),
        ("bursts", "trace", "query", runs / "small-1", "SELECT * FROM operations"),
        ("summary", "trace", "summary", runs / "small-2"),
        ("stalls", "trace", "stalls", runs / "small-1"),
        ("deadlock", "trace", "deadlock", runs / "small-2"),
        ("show", "trace", "show", runs / "small-1", "--at", "20"),
        ("diff", "trace", "diff", runs / "small-1", runs / "small-2"),
        ("report", "trace", "report", runs / "small-2", "-o", folder / "page.html"),
        *(
            (form, "trace", "export", runs / "small-1", f"--{form}", "-o", folder / f"run.{form}")
            for form in _EXPORTS
        ),
    ):
        if only and title not in only:
            continue
        printed = Printed(capsys, *(str(each) for each in arguments))
        assert (3 if title == "stuck" else 0) == printed.status, (title, printed.err)
        said[str(title)] = printed.out.partition(" drawn in ")[0]
    for file in ("graph.svg", "page.html", *(f"run.{form}" for form in _EXPORTS)):
        if (folder / file).exists():
            said[file] = (folder / file).read_bytes().decode("utf-8", "replace")
    return said


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


class _Page(HTMLParser):
    """A page that has no elements but those of the fabric."""

    def __init__(self, page: str) -> None:
        """Refuse what a name has smuggled in: data, uPlot and the page's own script are three."""
        super().__init__()
        self._scripts = 0
        self.feed(page)
        self.close()
        assert 3 == self._scripts

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        """Count scripts; other such elements the page has none of before it is drawn."""
        assert tag not in {"b", "i"}
        self._scripts += tag == "script"


class TestPaths:
    @pytest.mark.deep
    def test_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Every command says of a run what it says where all names are tame."""
        wanted = _said(capsys, Path("tame"))

        for name in WORST_PATHS:
            assert wanted == _said(capsys, Path(name))

    def test_each(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The folders are side by side, so that a pattern has others to match."""
        paths = HOSTILE_PATHS[:: of_profile(quick=12, deep=1)]
        wanted = _said(capsys, Path("tame"), _SHORT)
        found = {name: _said(capsys, Path(name), _SHORT) for name in ("aXb", *paths)}
        _said(capsys, Path("aYb"), _SHORT)

        assert dict.fromkeys(found, wanted) == found
        for name in found:
            assert [(40,)] == Trace(Path(name, "logs", "small-1")).rows(
                "SELECT count(*) FROM transfers WHERE channel = 0"
            )

    @pytest.mark.parametrize("name", WORST_PATHS)
    def test_program(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        """A program may lie anywhere; pictures and tables that name its file stay well-formed."""
        Path(name).mkdir(parents=True)
        program = Path(name, "bell\x07 <b>[red]\n*.py")
        program.write_bytes(_PROGRAM)
        assert 0 == Printed(capsys, "check", program).status
        assert 0 == Printed(capsys, "graph", program, "-o", "graph.svg").status
        assert 3 == Printed(capsys, "run", program, "-p", "fault=stuck", "--trace", "events").status
        printed = Printed(capsys, "trace", "summary", "logs/small-1")

        assert re.search(r"bell\\x07 <b>\[red\]\\n\*\.py:\d+$", printed.out, re.MULTILINE)
        assert not re.search("[\x00-\x08\x0b-\x1f]", printed.out)
        assert 0 == Printed(capsys, "trace", "report", "logs/small-1", "-o", "page.html").status
        for file in ("graph.svg", "logs/small-1/deadlock.svg"):
            ET.parse(file)
        _Page(Path("page.html").read_text(encoding="utf-8"))

    @pytest.mark.parametrize("keyword", ["run", "check", "graph", "--hardware", "--run", "trace"])
    def test_missing(self, capsys: pytest.CaptureFixture[str], keyword: str) -> None:
        """What is not there is named, without what would move the cursor of a terminal."""
        name = "no\x1b[2J\r[red]such*=1"
        Path("small.py").write_bytes(_PROGRAM)
        arguments = {
            "run": ("run", name),
            "check": ("check", name),
            "graph": ("graph", "-o", "x.svg", name),
            "--hardware": ("run", "--hardware", name, "small.py"),
            "--run": ("graph", "--run", name, "-o", "x.svg", "small.py"),
            "trace": ("trace", "summary", name),
        }[keyword]
        printed = Printed(capsys, *arguments)

        assert (2, "") == (printed.status, printed.out)
        assert r"no\x1b[2J\r[red]such*=1" in printed.err
        assert "\x1b" not in printed.err


def _program(name: str, operators: tuple[str, ...]) -> Program:
    """Return a program in which ``operators`` pass elements on, and the last loop is stuck."""
    with Program(name) as wired:
        (stream,) = Script(("s0",), rounds=3, counts=(3,), name=operators[0])()
        for each in operators[1:-2]:
            (stream,) = Script(("r0", "s0"), counts=(3,), name=each)(stream)
        loop = Feedback(StreamType((3,), BoolType()))
        (stream,) = Script(("r0", "r1", "s0"), counts=(3,), name=operators[-2])(stream, loop)
        (stream,) = Script(("r0", "s0"), counts=(3,), name=operators[-1])(stream)
        loop.connect(stream)
    return wired


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run, all of whose operators have hostile names."""
    wired = _program(HOSTILE_NAMES[-1], HOSTILE_NAMES)
    report = simulate(wired, log_dir=tmp_path_factory.mktemp("run"), trace=TraceOptions())
    assert report.log_dir is not None
    return Path(report.log_dir)


class TestNames:
    @pytest.mark.parametrize("name", spread(["", *HOSTILE_NAMES], 4))
    def test_log_folder(self, name: str, tmp_path: Path) -> None:
        """A run writes into a folder of its own in the log folder; the report has the name."""
        before = _files(tmp_path)
        reports = [
            simulate(_program(name, ("a", "b", "c")), log_dir=tmp_path / "logs" / "here")
            for _ in range(2)
        ]

        assert [visible(name)] * 2 == [report.name for report in reports]
        folders = [Path(report.log_dir or "") for report in reports]
        assert [tmp_path / "logs" / "here"] * 2 == [folder.parent for folder in folders]
        assert ["1", "2"] == [folder.name.rpartition("-")[2] for folder in folders]
        written = {Path(each).parts[:2] for each in _files(tmp_path) - before}
        assert {("logs", "here")} == written
        assert all(folder.name[0] not in ".-" and folder.name.isprintable() for folder in folders)

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_taken(self, name: str) -> None:
        """Two operators may not have one name, however it is written."""
        with pytest.raises(ProgramError, match="expected a name not in use yet"):
            _program("program", (name, visible(name), "c", "d"))

    def test_tables(self, capsys: pytest.CaptureFixture[str], run: Path) -> None:
        """Every table has every name as it is, on one line, and nothing a terminal obeys."""
        names = [visible(name) for name in HOSTILE_NAMES]
        for arguments in (
            ("stalls", run, "--rows", 99),
            ("show", run, "--at", 1),
            ("query", run, "SELECT name FROM units"),
            ("diff", run, run),
            ("deadlock", run),
            ("summary", run),
        ):
            printed = Printed(capsys, "trace", *arguments)
            assert (0, "") == (printed.status, printed.err)
            assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", printed.out)
            shown = {"diff": names[-1:], "deadlock": names[-2:], "summary": names[-2:]}
            for name in shown.get(str(arguments[0]), names):
                assert name in printed.out, (arguments[0], name)
        assert names == Trace(run).unit_names()

    def test_columns(self, capsys: pytest.CaptureFixture[str], run: Path) -> None:
        """Titles and cells that users choose are no markup."""
        printed = Printed(capsys, "trace", "query", run, "SELECT '[/b]:smile:' AS \"[/red]\"")

        assert (0, "[/red]\n[/b]:smile:\n") == (printed.status, printed.out)

    def test_exports(self, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path) -> None:
        """Each form has every name, and can be read."""
        names = [visible(name) for name in HOSTILE_NAMES]
        for form in _EXPORTS:
            printed = Printed(
                capsys, "trace", "export", run, f"--{form}", "-o", tmp_path / f"run.{form}"
            )
            assert 0 == printed.status

        channels = {name for (name,) in Trace(run).rows("SELECT name FROM channels")}
        signals = VCDVCD(str(tmp_path / "run.vcd"), store_tvs=False).signals
        assert len(signals) == len(set(signals)) == len(names) + len(channels)
        message: Any = TraceMessage()
        message.ParseFromString((tmp_path / "run.perfetto").read_bytes())
        tracks = [packet.track_descriptor.name for packet in message.packet]
        for name in names:
            assert any(track.startswith(f"{name} (") for track in tracks)
        lines = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["channel"] for line in lines} <= channels
        with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
            assert {row["channel"] for row in csv.DictReader(file)} <= channels

    def test_pictures(self, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path) -> None:
        """Pictures have every name, and can be read by what reads such pictures."""
        names = [visible(name) for name in HOSTILE_NAMES]
        picture = picture_of(elaborate(_program("../<b>", HOSTILE_NAMES)), unfold=True)
        texts = [each.text for each in ET.fromstring(svg(picture)).iter() if each.text]
        assert set(names) <= set(texts)
        graphs: Any = pydot.graph_from_dot_data(dot(picture))
        labels = [node.get_label() for node in graphs[0].get_nodes() if node.get_label()]
        for name in names:
            escaped = name.replace("\\", "\\\\").replace('"', '\\"')
            assert any(label.startswith(f'"{escaped}\\n') for label in labels), name
        boxes = re.findall(r'n\d+\["(.*?)<br/>', mermaid(picture))
        assert names == [re.sub(r"#(\d+);", lambda code: chr(int(code[1])), box) for box in boxes]

        assert 0 == Printed(capsys, "trace", "report", run, "-o", tmp_path / "page.html").status
        _Page((tmp_path / "page.html").read_text(encoding="utf-8"))
        ET.parse(run / "deadlock.svg")
        assert pydot.graph_from_dot_data((run / "deadlock.dot").read_text(encoding="utf-8"))

    def test_identifiers(self) -> None:
        """Names that differ in what a viewer cannot read stay apart."""
        found = list(_identifiers(["a.b", "a/b", "a_b", "a_b_2", "", "_", "a-b"]))

        assert ["a_b_3", "a_b_4", "a_b", "a_b_2", "__2", "_", "a_b_5"] == found
