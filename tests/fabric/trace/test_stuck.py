"""``trace deadlock``: from the trace alone, what the run itself says about its deadlock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabric.analysis.trace.analysis.moment import analysed
from fabric.analysis.trace.opened import Trace
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import PROGRAMS, program, record, until_traced
from tests.profiles import spread

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", spread(CASES, 4))
def test_as_the_run_says(name: str, tmp_path: Path) -> None:
    """The report is the run's own; without what that wrote, it is the same but for the remedy."""
    report, trace = record(
        program(name), tmp_path, depths=CASES[name].given, livelock_cycles=10_000
    )
    found = analysed(trace)
    assert report.deadlock is not None
    assert found is not None
    assert report.deadlock == found.as_json()

    (trace.folder.parent / "deadlock.json").unlink()
    alone = analysed(Trace(trace.folder))
    if CASES[name].code == "FAB-L001":
        at_rest = [] if alone is None else alone.as_json()["loops"]
        assert report.deadlock["loops"][1:] == at_rest
        return
    assert alone is not None
    assert "a trace cannot be run with other depths: `run` tries them" == alone.remedy.why_not
    assert _but_for_the_remedy(report.deadlock) == _but_for_the_remedy(alone.as_json())


@pytest.mark.parametrize("name", spread(PROGRAMS, 3))
def test_completed(name: str, tmp_path: Path) -> None:
    """A run that completed has no loops."""
    assert analysed(record(program(name), tmp_path)[1]) is None


def test_killed_with_a_loop(tmp_path: Path) -> None:
    """A run that goes on beside a loop and is killed shows the loop, and nobody who can go on."""
    command = [sys.executable, "-m", "fabric", "run", str(_ROOT / "tests/fabric/beside_a_loop.py")]
    command += ["--trace", "events", "--log-dir", str(tmp_path)]
    folder = tmp_path / "beside-1" / "trace"
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}) as run:
        until_traced(run, folder)
        run.send_signal(signal.SIGKILL)

    found = analysed(Trace(tmp_path / "beside-1"))
    assert found is not None
    assert "FAB-D002" == found.code
    assert [["relay_1"]] == [[unit.unit for unit in loop.units] for loop in found.loops]
    assert (0, []) == (found.cycle, found.behind)


def _but_for_the_remedy(report: dict[str, Any]) -> dict[str, Any]:
    return {key: report[key] for key in report if key not in ("remedy", "summary")}
