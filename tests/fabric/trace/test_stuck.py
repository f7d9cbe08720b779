from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabric.analysis.trace.analysis.moment import deadlock_of
from fabric.analysis.trace.opened import Trace
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import program, record, until_traced
from tests.profiles import spread

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", spread(CASES, 1))
def test_deadlock_of_a_trace_is_that_of_the_run(name: str, tmp_path: Path) -> None:
    report, trace = record(
        program(name), tmp_path, depths=CASES[name].given, livelock_cycles=10_000
    )
    found = deadlock_of(trace)
    assert report.deadlock is not None
    assert found is not None
    assert report.deadlock == found.as_json()

    (trace.folder.parent / "deadlock.json").unlink()
    alone = deadlock_of(Trace(trace.folder))
    if CASES[name].code == "FAB-L001":
        at_rest = [] if alone is None else alone.as_json()["loops"]
        assert report.deadlock["loops"][1:] == at_rest
        return
    assert alone is not None
    assert "a trace cannot be run with other depths: `run` tries them" == alone.remedy.why_not
    assert _but_for_the_remedy(report.deadlock) == _but_for_the_remedy(alone.as_json())


@pytest.mark.deep
def test_killed_run_beside_a_loop_has_the_loop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fabric", "run", str(_ROOT / "tests/fabric/beside_a_loop.py")]
    command += ["--trace", "events", "--log-dir", str(tmp_path)]
    folder = tmp_path / "beside-1" / "trace"
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}) as run:
        until_traced(run, folder)
        run.send_signal(signal.SIGKILL)

    found = deadlock_of(Trace(tmp_path / "beside-1"))
    assert found is not None
    assert "FAB-D002" == found.code
    assert [["relay_1"]] == [[unit.unit for unit in loop.units] for loop in found.loops]
    assert (0, []) == (found.cycle, found.behind)


def _but_for_the_remedy(report: dict[str, Any]) -> dict[str, Any]:
    return {key: report[key] for key in report if key not in ("remedy", "summary")}
