from __future__ import annotations

from typing import Any

import pytest

from fabric import simulate
from fabric.extend import MemoryCounters
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.timing.memories.banked import BankedMemory
from tests.memories.counting import loads

HBM = BankedDescription(channels=2)


def test_reading_counters_during_a_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
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
