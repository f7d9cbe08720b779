"""Runs that are killed, disks that are full, files that are damaged: a message, and the rest."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fabric import ConfigurationError
from fabric.trace.reader import Trace
from fabric.trace.stalls import Accounts
from fabric.trace.stuck import analysed, print_deadlock
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record

_ROOT = Path(__file__).parents[3]
_ENDLESS = str(_ROOT / "tests" / "fabric" / "small_program.py")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 48 kB; skip where that is not allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk that can be full needs the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_killed(tmp_path: Path) -> None:
    """A killed run keeps what it wrote, and can be accounted for up to there."""
    command = [sys.executable, "-m", "fabric", "run", _ENDLESS, "--trace", "events"]
    command += ["-p", "fault=endless", "--log-dir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    folder = tmp_path / "small-1" / "trace"
    with subprocess.Popen(command, env=environment) as run:
        while not list(folder.glob("states-*.parquet")):
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)

    trace = Trace(tmp_path / "small-1")
    assert ("killed", ["the run did not say how it ended: this is what it wrote until then"]) == (
        trace.status,
        trace.problems,
    )
    assert trace.rows("SELECT count(*) > 0 FROM transfers") == [(True,)]
    for unit in Accounts(trace).units:
        assert trace.cycles == unit.busy + unit.stalled + unit.idle


def test_full_disk(small_disk: Path) -> None:
    """The run goes on without its trace, and says so; what was written can be read."""
    wired = chain(("s0", "c3"), ("r0", "c1", "s0"), ("r0", "c7"), elements=200_000)
    report, trace = record(wired, small_disk)

    assert ("completed", 400_000) == (report.status, report.elements)
    warning, *others = report.warnings
    reason = r"could not be written: No space left on device"
    assert re.fullmatch(rf"trace {trace.folder}: (segment|snapshot) \d+ {reason}", warning)
    # Whether there is room for the log depends on when the disk was full.
    assert all(other.endswith("could not be written: No space left on device") for other in others)
    assert trace.rows("SELECT count(*) FROM units") == [(3,)]


def test_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that cannot be written at all is refused before the run."""
    (tmp_path / "trace").write_text("in the way", encoding="utf-8")
    monkeypatch.setattr("fabric.simulation.new_run_folder", lambda *_: tmp_path)

    with pytest.raises(ConfigurationError) as refused:
        record(program("simplified_moe"), tmp_path)

    assert refused.value.message == (
        f"trace {tmp_path / 'trace'}: File exists: expected a folder that can be written"
    )


@pytest.mark.parametrize("name", ["short-000001", "long-000001", "operations-000001"])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_damaged_segment(name: str, kept: int, tmp_path: Path) -> None:
    """A segment that is empty, cut off or overwritten is left out; the rest is read."""
    _, whole = record(program("simplified_moe"), tmp_path)
    file = whole.folder / f"{name}.parquet"
    content = file.read_bytes()
    damaged = [b"", content[: len(content) // 2], content[:4] + b"x" * (len(content) - 4)][kept]
    file.write_bytes(damaged)

    trace = Trace(whole.folder)
    (problem,) = trace.problems
    assert problem.startswith(f"{name}.parquet is damaged, its rows are left out: ")
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
    (whole.folder / f"{name}-000001.parquet").write_bytes(b"PAR1")

    trace = Trace(whole.folder)
    (problem,) = trace.problems
    assert problem.startswith(f"{name}-000001.parquet is damaged, it is left out: ")
    Accounts(trace)
    said = analysed(trace)
    assert said is not None
    assert report.deadlock == said.as_json()

    (whole.folder.parent / "deadlock.json").unlink()
    printed = io.StringIO()
    print_deadlock(trace, Console(file=printed, width=100))
    assert "The trace does not say what units waited for.\n" == printed.getvalue()


def test_killed_in_a_snapshot(tmp_path: Path) -> None:
    """A state of which not all was written is not mixed with the one before."""
    report, whole = record(program("pack_rows"), tmp_path)
    for name in ("pending", "waiting"):
        (whole.folder / f"{name}-000002.parquet").write_bytes(b"of another moment")

    trace = Trace(whole.folder)
    said = analysed(trace)
    assert [] == trace.problems
    assert said is not None
    assert report.deadlock == said.as_json()


def test_damaged_static_table(tmp_path: Path) -> None:
    """Without the units nothing can be told: the message names the file."""
    _, whole = record(program("simplified_moe"), tmp_path)
    file = whole.folder / "units.parquet"
    file.write_bytes(b"")

    with pytest.raises(ConfigurationError) as refused:
        Trace(whole.folder)
    assert refused.value.message.startswith(f"{file}: ")
    assert refused.value.message.endswith(": expected the table the run wrote first")


def test_newer_schema(tmp_path: Path) -> None:
    """A trace of a newer version is refused, with both versions."""
    _, whole = record(program("simplified_moe"), tmp_path)
    meta = json.loads((whole.folder / "meta.json").read_text(encoding="utf-8"))
    newer = json.dumps(meta | {"schema_version": 99})
    (whole.folder / "meta.json").write_text(newer, encoding="utf-8")

    with pytest.raises(ConfigurationError) as refused:
        Trace(whole.folder)
    assert refused.value.message == (
        f"{whole.folder}: the trace has schema version 99: expected at most 1; "
        "a newer step-fabric wrote it"
    )


def test_no_trace(tmp_path: Path) -> None:
    """A folder without a trace says what would make one."""
    with pytest.raises(ConfigurationError) as refused:
        Trace(tmp_path)
    assert refused.value.message == (
        f"{tmp_path}: there is no trace here: expected the folder of a run with --trace events"
    )
