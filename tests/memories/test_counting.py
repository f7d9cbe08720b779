"""What a memory counts: in a run's states, its report and its trace."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Hardware, open_run, simulate
from fabric.analysis.trace.analysis.moment import state_in
from fabric.analysis.trace.opened import Trace
from fabric.extend import BusCycles, FlatDescription, MemoryCounters
from fabric.graph.wiring.program import hardware_scope
from fabric.runs.execution import Execution
from fabric.timing.machine.machine import state_of
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import record
from tests.memories.counting import CountingDescription, CountingMemory, loads
from tests.schedules import SCHEDULES, schedule

HBM = CountingDescription()


def test_a_report_has_them() -> None:
    """Channels, clients and periods; a model that does not count has none, and says none."""
    report, flat = simulate(loads(HBM)), simulate(loads(FlatDescription()))
    assert report.hbm is not None
    requests = 3 * 64 * 64 * 2 // HBM.request_bytes
    clients = {report.units[each.unit].name: each.requests for each in report.hbm.clients}

    assert {"left": requests // 3, "right": requests // 3, "store": requests // 3} == clients
    assert requests == report.hbm.requests
    assert report.hbm_bytes_moved == requests * HBM.request_bytes
    assert report.hbm.bus == _sum([each.bus for each in report.hbm.channels])
    assert report.hbm.bus == _sum(report.hbm.periods)
    assert flat.hbm is None
    assert "hbm" not in flat.as_json()


def test_json_names_the_clients() -> None:
    """``run --json`` has all of it, a client by its name."""
    report = simulate(loads(HBM))
    assert report.hbm is not None
    found = json.loads(json.dumps(report.as_json()["hbm"]))

    assert ["left", "right", "store"] == [client["unit"] for client in found["clients"]]
    assert [each.requests for each in report.hbm.clients] == [
        client["requests"] for client in found["clients"]
    ]
    assert [each.bus.window for each in report.hbm.channels] == [
        channel["bus"]["window"] for channel in found["channels"]
    ]
    assert len(report.hbm.periods) == len(found["periods"])


@pytest.mark.parametrize("order", SCHEDULES)
def test_no_schedule_is_seen(order: str | int) -> None:
    """Reports are equal with what was counted in them, under every order of tasks."""
    expected = simulate(loads(HBM))
    with schedule(order):
        assert expected == simulate(loads(HBM))
    other = simulate(loads(replace(HBM, lost_to="conflict")))
    assert expected.cycles == other.cycles
    assert expected != other


class TestTraces:
    """The reader of a trace has the counters of the machine at its end, and no others."""

    @pytest.mark.parametrize("ends", ["completed", "error", "interrupted"])
    def test_at_the_end(self, ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """However it ends; in an earlier cycle nobody knows them."""
        states = _states_at_end(monkeypatch)
        _end(monkeypatch, ends)
        report, trace = record(loads(HBM), tmp_path)

        assert ends == report.status
        assert states[0].hbm is not None
        assert states[0].hbm == state_in(trace).hbm == report.hbm == trace.hbm
        assert hash(states[0].hbm) == hash(trace.hbm)
        assert state_in(trace, trace.cycles).hbm == report.hbm
        assert state_in(trace, trace.cycles - 1).hbm is None

    def test_of_a_deadlock(self, tmp_path: Path) -> None:
        """Also where nothing ends."""
        with hardware_scope(Hardware(hbm=HBM)):
            stuck = CASES["packed_experts"].build()
        report, trace = record(stuck, tmp_path, depths=CASES["packed_experts"].given)

        assert report.status == "deadlock"
        assert report.hbm is not None
        assert report.hbm == state_in(trace).hbm

    def test_of_a_killed_run(self, tmp_path: Path) -> None:
        """A run that was killed did not say what was counted: the trace does not, either."""
        _, trace = record(loads(HBM), tmp_path)
        (trace.folder / "end.json").unlink()
        killed = Trace(trace.folder)
        assert killed.hbm is None
        assert state_in(killed).hbm is None

    def test_without_counters(self, tmp_path: Path) -> None:
        """Nor does that of a model that counts nothing."""
        _, trace = record(loads(FlatDescription()), tmp_path)
        assert trace.hbm is None
        assert not trace.problems

    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            (lambda hbm: hbm.update(period_cycles="x"), "Expected `int`, got `str`"),
            (lambda hbm: hbm.update(period_cycles=0), "period_cycles is 0"),
            (lambda hbm: hbm.pop("channels"), "missing required field `channels`"),
            (lambda hbm: hbm["clients"][0].update(unit=99), "a client is unit 99"),
            (lambda hbm: hbm["periods"][1].update(data=-1), "periods[1].data is -1"),
            (lambda hbm: hbm["periods"][1].update(data=1 << 63), "periods[1].data is 9223"),
        ],
    )
    def test_damaged(self, damage: Callable[[Any], object], problem: str, tmp_path: Path) -> None:
        """What is no counter is left out, and said to be."""
        _, trace = record(loads(HBM), tmp_path)
        file = trace.folder / "end.json"
        end = json.loads(file.read_text("utf-8"))
        damage(end["hbm"])
        file.write_text(json.dumps(end), "utf-8")
        damaged = Trace(trace.folder)

        assert damaged.hbm is None
        assert damaged.damaged
        assert [problem in each for each in damaged.problems] == [True]


def test_a_held_run_says_what_it_knows(tmp_path: Path) -> None:
    """On the way nothing is known of what the memory has counted; at the end it is."""
    report, trace = record(loads(HBM), tmp_path)
    with open_run(loads(HBM)) as run:
        for cycle in (0, 101, trace.cycles - 1):
            assert run.until(cycle=cycle).state.hbm is None
            assert state_in(trace, cycle).hbm is None
        assert run.until(cycle=trace.cycles).state.hbm == report.hbm is not None


class TestWrongMemories:
    """A user's memory that counts wrong is told what, and the run is no good."""

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda _: 3, "counters() returns 3: expected MemoryCounters or None"),
            (lambda found: replace(found, period_cycles="a"), "Expected `int`, got `str`"),
            (
                lambda found: replace(found, period_cycles=-5),
                "period_cycles is -5: expected 0 to",
            ),
            (
                lambda found: replace(found, clients=(replace(found.clients[0], unit=50),)),
                "a client is unit 50: expected one below 4",
            ),
            (lambda _: 1 // 0, "ZeroDivisionError"),
        ],
    )
    def test_told(
        self,
        answer: Callable[[MemoryCounters], Any],
        message: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The error names the model and the place."""
        counters = CountingMemory.counters
        monkeypatch.setattr(CountingMemory, "counters", lambda memory: answer(counters(memory)))
        report = simulate(loads(HBM))

        assert report.status == "error"
        assert report.hbm is None
        assert report.failure is not None
        assert report.failure.message.startswith("memory 'counting': ")
        assert message in report.failure.message
        assert report.failure.file == __file__

    def test_numbers_of_numpy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are as good as Python's, and come out as these."""
        expected = simulate(loads(HBM)).hbm
        counters = CountingMemory.counters
        period: Any = np.int64(64)
        monkeypatch.setattr(
            CountingMemory,
            "counters",
            lambda memory: replace(counters(memory), period_cycles=period),
        )
        found = simulate(loads(HBM)).hbm
        assert found is not None
        assert expected == found
        assert type(found.period_cycles) is int

    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A memory may say that it has counted nothing."""
        monkeypatch.setattr(CountingMemory, "counters", lambda _: None)
        report = simulate(loads(HBM))
        assert (report.status, report.hbm) == ("completed", None)


def _sum(buses: Any) -> BusCycles:
    return BusCycles(*(sum(getattr(bus, each.name) for bus in buses) for each in fields(BusCycles)))


def _states_at_end(patch: pytest.MonkeyPatch) -> list[Any]:
    execute = Execution.execute
    states = []

    def executed(run: Execution) -> Any:
        ending = execute(run)
        states.append(state_of(run.machine))
        return ending

    patch.setattr(Execution, "execute", executed)
    return states


def _end(patch: pytest.MonkeyPatch, how: str) -> None:
    """Let the fifth burst be the end."""
    submit = CountingMemory.submit
    count = 0

    def submitted(memory: CountingMemory, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 5 and how == "error":
            raise RuntimeError("out of luck")
        if count == 5 and how == "interrupted":
            signal.raise_signal(signal.SIGINT)
        submit(memory, *arguments)

    patch.setattr(CountingMemory, "submit", submitted)
