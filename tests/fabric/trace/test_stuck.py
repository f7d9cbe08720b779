"""``trace deadlock``: from the trace alone, what the run itself says about its deadlock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabric.trace.reader import Trace
from fabric.trace.stuck import analysed
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import PROGRAMS, program, record

STOPPING = [name for name, case in CASES.items() if case.code != "FAB-L001"]
_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", STOPPING)
def test_as_the_run_says(name: str, tmp_path: Path) -> None:
    """Codes, loops, waits, counts and events are those of the run's own report."""
    report, trace = record(program(name), tmp_path, depths=CASES[name].given)
    found = analysed(trace)

    assert report.deadlock is not None
    assert found is not None
    assert _comparable(report.deadlock) == _comparable(found.as_json())


@pytest.mark.parametrize("name", PROGRAMS)
def test_completed(name: str, tmp_path: Path) -> None:
    """A run that completed has no loops."""
    assert analysed(record(program(name), tmp_path)[1]) is None


def test_killed_with_a_loop(tmp_path: Path) -> None:
    """A run that goes on beside a loop and is killed shows the loop."""
    command = [sys.executable, "-m", "fabric", "run", str(_ROOT / "tests/fabric/beside_a_loop.py")]
    command += ["--trace", "events", "--log-dir", str(tmp_path)]
    folder = tmp_path / "beside-1" / "trace"
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}) as run:
        while not list(folder.glob("states-*.parquet")):
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)

    found = analysed(Trace(tmp_path / "beside-1"))
    assert found is not None
    assert "FAB-D002" == found.code
    assert [["relay_1"]] == [[unit.unit for unit in loop.units] for loop in found.loops]


def _comparable(report: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on symbols, shapes and runs with other depths."""
    loops = [
        {
            "code": loop["code"],
            "units": loop["units"],
            "channels": [
                {key: channel[key] for key in channel if key not in ("expected", "shape")}
                for channel in loop["channels"]
            ],
        }
        for loop in report["loops"]
    ]
    kept = ("code", "kind", "cycle", "behind", "finished", "last_events")
    return {"loops": loops} | {key: report[key] for key in kept}
