from __future__ import annotations

import csv
import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from vcdvcd import VCDVCD

from fabric import Feedback, Program, StreamType, simulate
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import BoolType
from fabric.messages.text import visible
from fabric.shell.cli import main
from tests.deadlock.parts import Script
from tests.fabric.test_hostile_texts import Tags
from tests.profiles import spread

WORST_PATHS = (
    "channel=7/[x]*?/'\"%s\n\x1b[31m[red]",
    "s3:/back\\slash*",
    os.fsdecode(b"file:/not utf-8 \xff"),
)

HOSTILE_NAMES = (
    "../../escaped",
    "..",
    "nul\0",
    "new\nline",
    "x" * 600,
    "ünï ☃ 漢",
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
)

_PROGRAM = (Path(__file__).parents[1] / "small_program.py").read_bytes()

_EXPORTS = ("perfetto", "vcd", "jsonl", "csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "two" / "levels"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)


class Printed:
    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.status = main([str(each) for each in arguments])
        self.out, self.err = capsys.readouterr()


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", spread(WORST_PATHS, 1))
def test_program_with_a_hostile_path_is_well_formed(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    Path(name).mkdir(parents=True)
    program = Path(name, "bell\x07 <b>[red]\n*.py")
    program.write_bytes(_PROGRAM)
    assert 0 == Printed(capsys, "check", program).status
    assert 0 == Printed(capsys, "graph", program, "-o", "graph.svg").status
    run, traced = (
        Path(name, "logs", "small-1"),
        ("--trace", "events", "--log-dir", Path(name, "logs")),
    )
    assert 3 == Printed(capsys, "run", program, "-p", "fault=stuck", *traced).status
    assert Trace(run).rows("FROM transfers")
    printed = Printed(capsys, "trace", "summary", run)

    assert re.search(r"bell\\x07 <b>\[red\]\\n\*\.py:\d+$", printed.out, re.MULTILINE)
    assert not re.search("[\x00-\x08\x0b-\x1f]", printed.out)
    assert 0 == Printed(capsys, "trace", "report", run, "-o", "page.html").status
    for file in ("graph.svg", run / "deadlock.svg"):
        ET.parse(file)
    tags = Tags(Path("page.html").read_text(encoding="utf-8")).found
    assert 3 == tags.count("script")
    assert not {"b", "i"} & set(tags)


def _program(name: str, operators: tuple[str, ...]) -> Program:
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
    wired = _program(HOSTILE_NAMES[-1], HOSTILE_NAMES)
    report = simulate(wired, log_dir=tmp_path_factory.mktemp("run"), trace=TraceOptions())
    assert report.log_dir is not None
    return Path(report.log_dir)


@pytest.mark.parametrize("name", spread(["", *HOSTILE_NAMES], 4))
def test_log_folder_of_a_hostile_name_stays_inside(name: str, tmp_path: Path) -> None:
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


def test_exports_with_hostile_names_are_readable(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
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
