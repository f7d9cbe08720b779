"""Operators that do not end: told of, ended by Ctrl-C, or a verdict."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabric import Program, simulate
from fabric.graph.values.fit import MOST_CYCLES
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import Place
from fabric.timing.engine.checked_operator import CheckedUnit, Circling, unit_class
from fabric.timing.engine.unit import MemoryUnit
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.fabric.users import endless
from tests.fabric.users.endless import LIVELOCKS, SILENT, STUBBORN, build
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

_RUN = """
import sys
from fabric.timing.machine import runtime
from fabric.shell.cli import main
runtime._PERIOD_SECONDS = 0.15
sys.exit(main(["run", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("kind", spread([*SILENT, *STUBBORN], 3))
def test_told_and_interrupted(kind: str, tmp_path: Path) -> None:
    """Who, in which line, on stderr and nowhere else; Ctrl-C ends it, without a traceback.

    It is told after four looks without a change: 0.6 seconds.
    """
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
        assert rest.endswith("lets nothing end it: left without a report\n")
        return
    assert '"status": "interrupted"' in report
    assert "has sent and received nothing" not in report


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("kind", LIVELOCKS)
def test_livelock(kind: str, order: str | int) -> None:
    """To charge, or to wait for cycles, on and on is a livelock, the same under every schedule."""
    with schedule(order):
        report = simulate(build(kind), livelock_cycles=10_000)
    expected = simulate(build(kind), livelock_cycles=10_000)

    assert ("livelock", 3) == (report.status, report.exit_status)
    assert replace(expected, wall_seconds=None) == replace(report, wall_seconds=None)
    assert report.deadlock is not None
    (loop,) = report.deadlock["loops"]
    assert ["wrong"] == [unit["unit"] for unit in loop["units"]]
    assert f"wrong goes round in a loop of its own ({endless.__file__}:" in loop["cause"]


def test_work_between_elements() -> None:
    """More charges than that are work where an element is received in between."""
    with Program("works") as program:
        Charge()(Relay()(Ticks(30_000)()))

    assert "completed" == simulate(program, livelock_cycles=1_000).status


def _unit(most_steps: int) -> MemoryUnit:
    """Return a unit whose operator reads and writes nothing."""
    kind = unit_class(MemoryUnit, checked=True)
    assert kind is unit_class(MemoryUnit, checked=True)
    assert unit_class(MemoryUnit, checked=False) is MemoryUnit
    unit = kind("unit", 0, Place("p.py", 1), bytes_per_cycle=1)
    assert isinstance(unit, CheckedUnit)
    fields = {"most_steps": most_steps, "steps_left": [0, -1, 0], "reads": (), "writes": ()}
    for name, value in fields.items():
        object.__setattr__(unit, name, value)
    return unit


@pytest.mark.parametrize(("waits", "steps"), [(False, 1 + 10 * 31), (True, 1 + 10 * 4)])
def test_how_often_it_is_looked(waits: bool, steps: int) -> None:
    """Eleven looks see the same: at the first step, and after each tenth of 300 and one more.

    A wait counts for ten steps. What is moved in between begins the looks anew.
    """
    unit = _unit(300)

    def circle() -> int:
        for number in range(10_000):
            try:
                unit.reached() if waits else unit.charge(0)
            except Circling:
                return number
        raise AssertionError("never")

    assert circle() == steps - 1
    object.__setattr__(unit, "off_chip_bytes", 5)
    # The next step is looked at, which sees that; then there are ten looks more.
    assert circle() == steps - 1


def test_latest_clock() -> None:
    """A clock stays below 2**60; it may come to the cycle before."""
    unit = _unit(300)
    unit.charge(7)
    with pytest.raises(Refusal, match=r"^1152921504606846969 cycles are charged: expected a clock"):
        unit.charge(MOST_CYCLES - 7)
    unit.charge(MOST_CYCLES - 8)
    assert (unit.now, unit.busy_cycles) == (2**60 - 1, 2**60 - 1)
    with pytest.raises(Refusal, match=r"^1 cycles are charged"):
        unit.charge(1)
    with pytest.raises(Refusal, match=r"^now of its unit is set to 3: expected charge"):
        unit.now = 3
