"""Operators that do not end: a notice, Ctrl-C, or a livelock verdict."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from fabric import simulate
from fabric.timing.guards.operators import Circling, Guard
from tests.fabric.users import endless
from tests.fabric.users.endless import LIVELOCKS, SILENT, STUBBORN, build
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

_RUN = """
import sys
from fabric.timing.guards import tasks
from fabric.shell.cli import main
tasks._PERIOD_SECONDS = 0.15
sys.exit(main(["run", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("kind", spread([*SILENT, *STUBBORN], 1))
def test_operator_without_end_is_reported_and_interrupted(kind: str, tmp_path: Path) -> None:
    # The notice comes after four looks without a change, 0.6 seconds.
    program = endless.__file__
    command = [sys.executable, "-c", _RUN, program, "-p", f"kind={kind}"]
    command += ["--log-dir", str(tmp_path), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stderr is not None
            notice = next(line for line in run.stderr if "wrong" in line)
            run.send_signal(signal.SIGINT)
            report, rest = run.communicate(timeout=60)
        finally:
            run.kill()

    assert 130 == run.returncode
    assert re.fullmatch(
        rf"fabric: wrong \({re.escape(program)}:\d+\) has sent and received nothing for 1 "
        rf"seconds and has not ended: it is in {re.escape(program)}:(\d+), at cycle \d+; Ctrl-C "
        r"ends the run\n",
        notice,
    )
    assert "Traceback" not in rest
    if kind in STUBBORN:
        assert rest.endswith("catches all interrupts: left without a report\n")
        return
    assert '"status": "interrupted"' in report
    assert "has sent and received nothing" not in report


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("kind", LIVELOCKS)
def test_charging_without_end_is_a_livelock(kind: str, order: str | int) -> None:
    with schedule(order):
        report = simulate(build(kind), livelock_cycles=10_000)
    expected = simulate(build(kind), livelock_cycles=10_000)

    assert ("livelock", 3) == (report.status, report.exit_status)
    assert replace(expected, wall_seconds=None) == replace(report, wall_seconds=None)
    assert report.deadlock is not None
    (loop,) = report.deadlock["loops"]
    assert ["wrong"] == [unit["unit"] for unit in loop["units"]]
    assert f"wrong repeats a loop in its code ({endless.__file__}:" in loop["cause"]


def test_operator_without_progress_is_stopped_at_its_eleventh_look() -> None:
    guard = Guard(Mock(off_chip_bytes=0), (), ())
    guard.most_steps = 300
    # The first step is looked at, and then each that comes after a tenth of 300 others.
    for _ in range(10 * (30 + 1)):
        guard.step(1)
    with pytest.raises(Circling):
        guard.step(1)
