"""Programs with banked memory: one report whatever runs first, and no request is ever lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from fabric import Hardware, Program, Report, simulate
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.program import hardware_scope
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.memories import registry
from fabric.timing.memories.banked import BankedMemory
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.compiled.both import both
from tests.deadlock.cases import CASES as STUCK
from tests.profiles import spread
from tests.programs.loading import PROGRAMS
from tests.schedules import SCHEDULES, schedule
from tests.telling import told_under_every_schedule

_EIGHT = BankedDescription(channels=8)
_NARROW = BankedDescription(
    channels=1,
    read_window_bursts=4,
    write_window_bursts=4,
    requests_per_bundle=4,
    mapping="row-bank-rank-column-channel",
)
_PROGRAMS: list[tuple[str, dict[str, object], BankedDescription]] = [
    ("moe", {"batch": 4, "tile_n": 4}, _EIGHT),
    ("moe", {"batch": 4, "tiling": "dynamic"}, _NARROW),
    *(
        (name, {}, hbm)
        for name in ("swiglu", "ragged_attention", "graph_layer")
        for hbm in (_EIGHT, _NARROW)
    ),
]


def _program(name: str, hbm: BankedDescription, parameters: dict[str, object]) -> Program:
    given = [f"{key}={value}" for key, value in parameters.items()]
    return load_program(PROGRAMS / f"{name}.py", given, Hardware(hbm=hbm)).program


def _nothing_lost(memory: BankedMemory, request_bytes: int) -> None:
    """See that all that was handed over has been served."""
    assert not memory.pending
    traffic = memory.counters().channels
    assert memory.requests == sum(each.reads + each.writes for each in traffic)
    assert memory.requests * request_bytes == memory.bytes_moved


class TestOneReport:
    @pytest.mark.parametrize(("name", "parameters", "hbm"), spread(_PROGRAMS, 3))
    def test_engines(
        self, name: str, parameters: dict[str, object], hbm: BankedDescription, tmp_path: Path
    ) -> None:
        """The same to the byte whether operators are compiled or tasks."""
        found = both(lambda: _program(name, hbm, parameters), tmp_path)
        assert "completed" == found.said["report"].status
        assert found.compiled
        assert not found.gave_up

    @pytest.mark.parametrize("order", SCHEDULES)
    def test_engines_under_schedules(self, order: str | int, tmp_path: Path) -> None:
        """Whatever ready task runs first."""
        with schedule(order):
            both(lambda: _program("ragged_attention", _NARROW, {}), tmp_path)

    @pytest.mark.parametrize("name", spread(["moe", "ragged_attention"], 1))
    def test_schedules(self, name: str, tmp_path: Path) -> None:
        """Every order of tasks tells the same."""
        parameters: dict[str, object] = {"batch": 4} if name == "moe" else {}
        told_under_every_schedule(
            lambda: _program(name, _EIGHT, parameters), tmp_path, mode="timing", engine="tasks"
        )


class TestNothingIsLost:
    @pytest.mark.parametrize("compiles", [False, True])
    @pytest.mark.parametrize("name", ["swiglu", "ragged_attention"])
    def test_at_the_end(self, name: str, compiles: bool) -> None:
        """Of a run that completes; each row of each tile takes whole requests."""
        built = _program(name, _NARROW, {})
        settings = Settings(
            mode="timing", livelock_cycles=10_000, engine="compiled" if compiles else "tasks"
        )
        ran = Execution(built, settings)
        assert "completed" == ran.execute()
        memory = ran.machine.off_chip
        assert isinstance(memory, BankedMemory)
        _nothing_lost(memory, _NARROW.request_bytes)
        assert memory.bytes_moved >= sum(unit.off_chip_bytes for unit in ran.machine.units) > 0

    @pytest.mark.parametrize("name", STUCK)
    def test_in_a_deadlock(self, name: str) -> None:
        """Who waits for an element or for room does not wait for the memory."""
        case = STUCK[name]
        with hardware_scope(Hardware(hbm=_NARROW)):
            built = case.build()
        settings = Settings(mode="timing", depths=case.given, livelock_cycles=10_000)
        ran = Execution(built, settings)
        assert "completed" != ran.execute()
        memory = ran.machine.off_chip
        if isinstance(memory, BankedMemory):
            _nothing_lost(memory, _NARROW.request_bytes)

    def test_at_a_signal(self) -> None:
        """What was handed over before is served or still under way."""
        memories: list[BankedMemory] = []

        def make(*arguments: object) -> BankedMemory:
            memories.append(BankedMemory(*arguments))  # type: ignore[arg-type]
            return memories[-1]

        with mock.patch.dict(registry._MAKERS, {BankedDescription: make}):
            report = _interrupted()
        assert "interrupted" == report.status
        (memory,) = memories
        served = sum(each.reads + each.writes for each in memory.counters().channels)
        assert 0 < served <= memory.requests
        assert memory.pending or served == memory.requests
        assert served * _NARROW.request_bytes <= memory.bytes_moved

    def test_in_a_burst_of_seconds(self) -> None:
        """A signal is answered in the middle of it."""
        script = (
            "import signal\n"
            "from fabric.timing.engine.off_chip import Burst\n"
            "from fabric.timing.engine.unit import MemoryUnit\n"
            "from fabric.graph.hardware.memory_models import BankedDescription\n"
            "from fabric.timing.memories.banked import BankedMemory\n"
            "from fabric.messages.telling.place import Place\n"
            "unit = MemoryUnit('load', 0, Place('program.py', 1), bytes_per_cycle=64)\n"
            "memory = BankedMemory(BankedDescription(channels=1), [unit], [])\n"
            "memory.submit(unit, Burst(0, 1 << 25, 64, 1 << 12, write=False))\n"
            "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
            "memory.advance(10)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
            "try:\n"
            "    memory.advance(1 << 50)\n"
            "except KeyboardInterrupt:\n"
            "    print('answered')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            timeout=60,
        )
        assert "answered\n" == done.stdout


def _interrupted() -> Report:
    """Run a program in which Ctrl-C arrives in the second tile's function."""
    calls = []

    class Interrupts(SiLU):
        def apply(self, *tiles: object) -> object:  # type: ignore[override]
            calls.append(1)
            if len(calls) == 2:
                signal.raise_signal(signal.SIGINT)
            return super().apply(*tiles)  # type: ignore[arg-type]

    with (
        hardware_scope(Hardware(hbm=_NARROW)),
        Program("program", mode="functional") as program,
    ):
        loaded = LinearOffChipLoad(np.ones((64, 64)), tile=(8, 8))()
        LinearOffChipStore("out")(Map(Interrupts())(loaded))
    return simulate(program)
