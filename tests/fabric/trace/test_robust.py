"""Runs that are killed, disks that are full, files that are damaged: a message, and the rest."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fabric import ConfigurationError
from fabric.analysis.trace.analysis.moment import analysed
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.printing import stuck_sheet
from fabric.messages.terminal.tables import print_sheet
from fabric.shell.cli import main
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record, until_traced
from tests.profiles import examples, spread

_ROOT = Path(__file__).parents[3]
_ENDLESS = str(_ROOT / "tests" / "fabric" / "small_program.py")


def test_killed(tmp_path: Path) -> None:
    """A killed run keeps what it wrote, and can be accounted for up to there."""
    command = [sys.executable, "-m", "fabric", "run", _ENDLESS, "--trace", "events"]
    command += ["-p", "fault=endless", "--log-dir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    folder = tmp_path / "small-1" / "trace"
    with subprocess.Popen(command, env=environment) as run:
        until_traced(run, folder)
        run.send_signal(signal.SIGKILL)

    trace = Trace(tmp_path / "small-1")
    assert ("killed", ["the run did not say how it ended: this is what it wrote until then"]) == (
        trace.status,
        trace.problems,
    )
    assert trace.rows("SELECT count(*) > 0 FROM transfers") == [(True,)]
    for unit in Accounts(trace).units:
        assert trace.cycles == unit.busy + unit.stalled + unit.idle


def test_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that cannot be written at all is refused before the run."""
    (tmp_path / "trace").write_text("in the way", encoding="utf-8")
    monkeypatch.setattr("fabric.runs.simulation.new_run_folder", lambda *_: tmp_path)

    with pytest.raises(ConfigurationError) as refused:
        record(program("simplified_moe"), tmp_path)

    assert refused.value.message == (
        f"trace {tmp_path / 'trace'}: File exists: expected a folder that can be written"
    )


@pytest.mark.parametrize("name", spread(["short-000001", "long-000001", "operations-000001"], 2))
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_damaged_segment(name: str, kept: int, tmp_path: Path) -> None:
    """A segment that is empty, cut off or overwritten is left out; the rest is read."""
    _, whole = record(program("simplified_moe"), tmp_path)
    file = whole.folder / f"{name}.table"
    content = file.read_bytes()
    damaged = [b"", content[: len(content) // 2], content[:4] + b"x" * (len(content) - 4)][kept]
    file.write_bytes(damaged)

    trace = Trace(whole.folder)
    (problem,) = trace.problems
    assert problem.startswith(f"{name}.table is damaged, its rows are left out: ")
    assert whole.unit_names() == trace.unit_names()
    tables = {"short-000001": "transfers", "long-000001": "transfers"}
    table = tables.get(name, "bursts")
    ((before,),) = whole.rows(f"SELECT count(*) FROM {table}")
    ((after,),) = trace.rows(f"SELECT count(*) FROM {table}")
    assert after < before
    Accounts(trace)


@pytest.mark.parametrize("name", ["states", "pending", "waiting"])
def test_damaged_snapshot(name: str, tmp_path: Path) -> None:
    """Without the last states, what the operations say remains, and what the run said itself."""
    report, whole = record(program("pack_rows"), tmp_path)
    (whole.folder / f"{name}-000001.table").write_bytes(b"PAR1")

    trace = Trace(whole.folder)
    (problem,) = trace.problems
    assert problem.startswith(f"{name}-000001.table is damaged, it is left out: ")
    Accounts(trace)
    said = analysed(trace)
    assert said is not None
    assert report.deadlock == said.as_json()

    (whole.folder.parent / "deadlock.json").unlink()
    assert said == trace.deadlock()
    trace = Trace(whole.folder)
    printed = io.StringIO()
    print_sheet(stuck_sheet(trace.deadlock(), trace.summary()), Console(file=printed, width=100))
    assert "The trace does not say what units waited for.\n" == printed.getvalue()


def test_killed_in_a_snapshot(tmp_path: Path) -> None:
    """A state of which not all was written is not mixed with the one before."""
    report, whole = record(program("pack_rows"), tmp_path)
    for name in ("pending", "waiting"):
        (whole.folder / f"{name}-000002.table").write_bytes(b"of another moment")

    trace = Trace(whole.folder)
    said = analysed(trace)
    assert [] == trace.problems
    assert said is not None
    assert report.deadlock == said.as_json()


def test_damaged_static_table(tmp_path: Path) -> None:
    """Without the units nothing can be told: the message names the file."""
    _, whole = record(program("simplified_moe"), tmp_path)
    file = whole.folder / "units.table"
    file.write_bytes(b"")

    with pytest.raises(ConfigurationError) as refused:
        Trace(whole.folder)
    assert refused.value.message.startswith(f"{file}: ")
    assert refused.value.message.endswith(": expected the table the run wrote first")


def test_killed_in_a_segment(tmp_path: Path) -> None:
    """A segment of which not all was written is left out: no element without the one before."""
    _, whole = record(program("simplified_moe"), tmp_path)
    (whole.folder / "end.json").unlink()
    (whole.folder / "short-000001.table").unlink()

    trace = Trace(whole.folder)
    assert ("killed", "segment 1 was not written whole, it is left out") == (
        trace.status,
        trace.problems[0],
    )
    assert trace.rows("SELECT count(*) FROM transfers WHERE taken_cycle IS NOT NULL") == [(0,)]


@pytest.mark.parametrize("missing", ["meta.json", "units", "columns", "channels"])
@pytest.mark.parametrize("command", ["summary", "stalls", "deadlock", "report", "export", "query"])
def test_killed_at_the_start(
    missing: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first tables are written there is nothing to show, which is said."""
    _, whole = record(program("simplified_moe"), tmp_path)
    run = whole.folder.parent
    written = ["meta.json", "units", "channels", "columns"]
    for name in (
        *written[written.index(missing) :],
        "short-000001",
        "long-000001",
        "states-000001",
    ):
        (whole.folder / (name if "." in name else f"{name}.table")).unlink()
    (whole.folder / f"{missing}.table.tmp").write_bytes(b"PAR1")
    options = {
        "report": ["-o", str(tmp_path / "page.html")],
        "export": ["--csv", "-o", str(tmp_path / "run.csv")],
        "query": ["utilisation"],
    }
    status = main(["trace", command, str(run), *options.get(command, [])])
    out, err = capsys.readouterr()

    when = "while it wrote its first tables"
    what = f"{whole.folder}: {missing}.table is missing"
    if missing == "meta.json":
        when, what = "before it began to write", f"{run}: the trace has no meta.json"
    assert (2, "", f"fabric: {what}: the run was killed {when}, there is nothing to show\n") == (
        status,
        out,
        err,
    )
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("cycles", [None, "x", [], 1 << 70, "1; DROP TABLE units"])
def test_damaged_end(cycles: object, tmp_path: Path) -> None:
    """What says how the run ended is taken as missing where it cannot be read."""
    report, _ = record(program("simplified_moe"), tmp_path)
    assert report.log_dir is not None
    end = Path(report.log_dir) / "trace" / "end.json"
    end.write_text(json.dumps(json.loads(end.read_text("utf-8")) | {"cycles": cycles}), "utf-8")

    trace = Trace(Path(report.log_dir))
    assert trace.status == "killed"
    assert any("did not say how it ended" in each for each in trace.problems)


@pytest.mark.parametrize(
    ("field", "value", "attribute", "read"),
    [
        ("on_chip_bytes", [0, 2, 3], "on_chip_bytes", (0, 2, 3)),
        ("on_chip_bytes", [1, 2], "on_chip_bytes", ()),
        ("on_chip_bytes", [1, 2, 3, 4], "on_chip_bytes", ()),
        ("on_chip_bytes", [1, -2, 3], "on_chip_bytes", ()),
        ("on_chip_bytes", "abc", "on_chip_bytes", ()),
        ("shutdown_cycles", 0, "shutdown_cycles", 0),
        ("shutdown_cycles", -1, "shutdown_cycles", None),
        ("links", [["a", 1], 3, []], "links", [["a", "1"], []]),
        ("links", {"a": []}, "links", []),
        ("priced", {"spent": [["a", None]], "x": 3}, "priced", {"spent": [["a", "None"]]}),
        ("priced", [["a"]], "priced", {}),
        ("verified", False, "outcome", "completed, the result is wrong"),
        ("verified", False, "failed", True),
        ("verified", None, "failed", False),
        ("status", "error", "failed", True),
        ("cycles", 9, "window", (0, 9)),
        ("cycles", 9, "damaged", False),
        ("hbm", {}, "damaged", True),
    ],
)
def test_parts_of_an_end(
    field: str, value: object, attribute: str, read: object, ends: Path, tmp_path: Path
) -> None:
    """What is not as a run writes it is not there; all else is as it is written."""
    run = shutil.copytree(ends, tmp_path / "run")
    end = run / "trace" / "end.json"
    end.write_text(json.dumps(json.loads(end.read_text("utf-8")) | {field: value}), "utf-8")
    assert read == getattr(Trace(run), attribute)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of three units."""
    wired = chain(("s0",), ("r0", "s0"), ("r0",), elements=5)
    return record(wired, tmp_path_factory.mktemp("ends"))[1].folder.parent


FILES = ("trace/meta.json", "trace/end.json", "deadlock.json")
OF_ALL_KINDS: tuple[object, ...] = (
    None, True, -1, 0, 1 << 70, 1.5, float("nan"), float("inf"), "x", "\x1b[31m", [], {}, [1]
)  # fmt: skip


def _places(found: object) -> list[tuple[str, ...]]:
    """Return where something stands in an object of JSON, by names."""
    places: list[tuple[str, ...]] = [()]
    if isinstance(found, dict):
        places += [(name, *place) for name, its in found.items() for place in _places(its)]
    return places


def _with(found: Any, place: tuple[str, ...], value: object) -> Any:
    if not place:
        return value
    return found | {place[0]: _with(found[place[0]], place[1:], value)}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that is stuck; those who change it put it back."""
    report, _ = record(program("pack_rows"), tmp_path_factory.mktemp("stuck"))
    assert report.log_dir is not None
    return Path(report.log_dir)


def _every_command_says_something(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("summary", "stalls", "deadlock", "what-if", "show"):
        options = ["--at", "3"] if command == "show" else []
        status = main(["trace", command, str(run), *options])
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        assert "\x1b" not in out + err
        assert status in (0, 2, 3), (command, status, err)


@examples(quick=12)
@given(st.data())
def test_damaged_json(stuck: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject) -> None:
    """Whatever stands in the files beside the tables: commands answer or refuse."""
    file = stuck / data.draw(
        st.sampled_from(["trace/meta.json", "trace/end.json", "deadlock.json"])
    )
    content = file.read_bytes()
    found = json.loads(content)
    damaged = _with(
        found, data.draw(st.sampled_from(_places(found))), data.draw(st.sampled_from(OF_ALL_KINDS))
    )
    file.write_text(json.dumps(damaged), "utf-8")
    try:
        _every_command_says_something(stuck, capsys)
    finally:
        file.write_bytes(content)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "\udcff", ""])
@pytest.mark.parametrize("name", spread(FILES, 1))
def test_hostile_json(
    stuck: Path, name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deep and long values, and what is no text, are none."""
    file = stuck / name
    before = file.read_bytes()
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    try:
        _every_command_says_something(stuck, capsys)
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize(
    "damage",
    [
        {"window": "x"},
        {"window": [1]},
        {"off_chip": None},
        {"peak_bytes_per_cycle": -1},
        {"peak_bytes_per_cycle": math.nan},
        {"parameters": {"n": json.loads("[" * 200 + "]" * 200)}},
    ],
)
def test_damaged_head(damage: dict[str, object], tmp_path: Path) -> None:
    """What tells of the run is refused, with its name, where it cannot be read."""
    report, _ = record(program("simplified_moe"), tmp_path)
    assert report.log_dir is not None
    meta = Path(report.log_dir) / "trace" / "meta.json"
    head = json.loads(meta.read_text("utf-8"))
    (head["off_chip"] if "peak_bytes_per_cycle" in damage else head).update(damage)
    meta.write_text(json.dumps(head), "utf-8")

    with pytest.raises(ConfigurationError, match=r"meta\.json is damaged"):
        Trace(Path(report.log_dir))


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (99, ": the trace has schema version 99: expected at most 5; a newer step-fabric wrote it"),
        (4, ": the trace has schema version 4: expected 5; an older step-fabric wrote it"),
        ("5", "/meta.json is damaged: expected the file the run wrote first"),
        (None, "/meta.json is damaged: expected the file the run wrote first"),
    ],
)
def test_other_schema(version: object, said: str, tmp_path: Path) -> None:
    """A trace of another version is refused, with both versions; what is none is damage."""
    _, whole = record(program("simplified_moe"), tmp_path)
    meta = json.loads((whole.folder / "meta.json").read_text(encoding="utf-8"))
    other = json.dumps(meta | {"schema_version": version})
    (whole.folder / "meta.json").write_text(other, encoding="utf-8")

    with pytest.raises(ConfigurationError) as refused:
        Trace(whole.folder)
    assert refused.value.message == f"{whole.folder}{said}"


def test_no_trace(tmp_path: Path) -> None:
    """A folder without a trace says what would make one."""
    with pytest.raises(ConfigurationError) as refused:
        Trace(tmp_path)
    assert refused.value.message == (
        f"{tmp_path}: there is no trace here: expected the folder of a run with --trace events"
    )
