from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from fabric import open_run, simulate
from fabric.analysis.trace.analysis.moment import state_in
from fabric.extend import BusCycles, FlatDescription, MemoryCounters
from fabric.runs.execution import Execution
from fabric.timing.machine.machine import state_of
from tests.fabric.trace.recording import record
from tests.memories.counting import CountingDescription, CountingMemory, loads
from tests.schedules import SCHEDULES, schedule

HBM = CountingDescription()


def test_report_has_channels_clients_and_periods() -> None:
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


@pytest.mark.parametrize("order", SCHEDULES)
def test_counters_are_equal_under_every_schedule(order: str | int) -> None:
    expected = simulate(loads(HBM))
    with schedule(order):
        assert expected == simulate(loads(HBM))
    other = simulate(loads(replace(HBM, lost_to="conflict")))
    assert expected.cycles == other.cycles
    assert expected != other


class TestTraces:
    @pytest.mark.parametrize("ends", ["completed", "error", "interrupted"])
    def test_trace_has_the_counters_of_the_last_cycle(
        self, ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        states = _states_at_end(monkeypatch)
        _end(monkeypatch, ends)
        report, trace = record(loads(HBM), tmp_path)

        assert ends == report.status
        assert states[0].hbm is not None
        assert states[0].hbm == state_in(trace).hbm == report.hbm == trace.hbm
        assert hash(states[0].hbm) == hash(trace.hbm)
        assert state_in(trace, trace.cycles).hbm == report.hbm
        assert state_in(trace, trace.cycles - 1).hbm is None


def test_held_run_has_counters_only_at_its_end(tmp_path: Path) -> None:
    report, trace = record(loads(HBM), tmp_path)
    with open_run(loads(HBM)) as run:
        for cycle in (0, 101, trace.cycles - 1):
            assert run.until(cycle=cycle).state.hbm is None
            assert state_in(trace, cycle).hbm is None
        assert run.until(cycle=trace.cycles).state.hbm == report.hbm is not None


class TestWrongMemories:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda _: 3, "counters() returns 3: expected MemoryCounters or None"),
            (lambda found: replace(found, period_cycles="a"), "Expected `int`, got `str`"),
            (lambda found: replace(found, period_cycles=-5), "period_cycles is -5: expected 0 to"),
            (
                lambda found: replace(found, clients=(replace(found.clients[0], unit=50),)),
                "a client is unit 50: expected less than 4",
            ),
            (lambda _: 1 // 0, "ZeroDivisionError"),
        ],
    )
    def test_wrong_counters_are_refused_with_the_model(
        self, answer: Callable[[MemoryCounters], Any], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counters = CountingMemory.counters
        monkeypatch.setattr(CountingMemory, "counters", lambda memory: answer(counters(memory)))
        report = simulate(loads(HBM))

        assert report.status == "error"
        assert report.hbm is None
        assert report.failure is not None
        assert report.failure.message.startswith("memory 'counting': ")
        assert message in report.failure.message
        assert report.failure.file == __file__


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
