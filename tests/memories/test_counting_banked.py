"""What the memory with banks has counted: asked at any time, added up, and kept in a trace."""

from __future__ import annotations

import signal
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fabric import simulate
from fabric.analysis.trace.analysis.moment import state_in
from fabric.extend import BusCycles, MemoryCounters
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.timing.engine.observation import ObservedOffChip
from fabric.timing.memories.banked import BankedMemory
from tests.fabric.trace.recording import record
from tests.memories.counting import loads

HBM = BankedDescription(channels=2)


def test_asking_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots and heartbeats ask now and then, when the host pleases."""
    expected = simulate(loads(HBM, 8))
    advance = BankedMemory.advance
    asked: list[MemoryCounters] = []

    def ask_before(memory: BankedMemory, horizon_cycle: int) -> Any:
        asked.append(memory.counters())
        assert asked[-1] == memory.counters()
        return advance(memory, horizon_cycle)

    monkeypatch.setattr(BankedMemory, "advance", ask_before)
    assert expected == simulate(loads(HBM, 8))
    assert expected.hbm is not None
    counts = [each.requests for each in (*asked, expected.hbm)]
    assert counts == sorted(counts)
    assert len(set(counts)) > 10


@pytest.mark.parametrize("channels", [1, 2, 8])
def test_all_is_counted_once(channels: int) -> None:
    """Requests by channel, by client and by outcome; cycles by channel and by period."""
    hbm = BankedDescription(channels=channels)
    report = simulate(loads(hbm, 2))
    counters = report.hbm
    assert counters is not None
    assert report.hbm_bytes_moved is not None
    assert report.cycles is not None
    requests = report.hbm_bytes_moved // hbm.request_bytes
    outcomes = ("row_hits", "row_misses", "row_conflicts")

    assert requests == sum(each.reads + each.writes for each in counters.channels)
    assert requests == sum(each.requests for each in counters.clients)
    for each in outcomes:
        assert sum(getattr(of, each) for of in counters.channels) == sum(
            getattr(of, each) for of in counters.clients
        )
    for of in counters.channels:
        assert of.reads + of.writes == sum(getattr(of, each) for each in outcomes)
    cycles = {_total(of.bus) for of in counters.channels}
    assert len(cycles) == 1
    # Two buses; the last burst that is written may be on one of them when its store has ended.
    assert 0 <= min(cycles) - 2 * report.cycles <= 2 * hbm.timing.burst_cycles
    for use in fields(BusCycles):
        assert sum(getattr(of.bus, use.name) for of in counters.channels) == sum(
            getattr(each, use.name) for each in counters.periods
        )
    assert 2 * hbm.timing.burst_cycles * requests == sum(of.bus.data for of in counters.channels)


@pytest.mark.parametrize("ends", ["completed", "interrupted"])
def test_traces(ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace has what the report has, however the run ended."""
    submit = ObservedOffChip.submit
    count = 0

    def submitted(memory: ObservedOffChip, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if ends == "interrupted" and count == 5:
            signal.raise_signal(signal.SIGINT)
        submit(memory, *arguments)

    monkeypatch.setattr(ObservedOffChip, "submit", submitted)
    report, trace = record(loads(HBM), tmp_path)
    assert report.status == ends
    assert report.hbm is not None
    assert report.hbm == state_in(trace).hbm
    assert trace.stalls().hbm is not None


def _total(bus: BusCycles) -> int:
    return sum(getattr(bus, use.name) for use in fields(BusCycles))
