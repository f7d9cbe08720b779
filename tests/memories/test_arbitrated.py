"""The memory behind an arbiter, alone: against the controller of Ramulator, modelled for tests."""

from __future__ import annotations

import random

import pytest

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import ArbitratedBanksDescription, ArbitratedDescription
from fabric.timing.memories.arbitrated import ArbitratedMemory, Request, behind_arbiter
from tests.hdl.banks import BankedMemory
from tests.memories.driven import clients_of
from tests.profiles import of_profile

ROWS = (0, 1, 2, 0x3FFF, 0x4000)
"""The last one is row 0 again."""


@pytest.mark.parametrize("seed", range(of_profile(12, 200)))
def test_channel(seed: int) -> None:
    """Each read is answered in the cycle in which the controller answers it, and has room so."""
    source = random.Random(seed)
    banks = [source.randrange(16) for _ in range(source.choice([1, 2, 5, 16, 16]))]
    rows = ROWS[: source.randint(1, 5)]
    writes, pace = source.choice([0, 0.1, 0.5, 0.9, 1]), source.choice([0.05, 0.3, 1])
    found, expected = behind_arbiter(ArbitratedBanksDescription()), BankedMemory()
    for cycle in range(900):
        if cycle < 700 and source.random() < pace:
            row, bank, column = source.choice(rows), source.choice(banks), source.randrange(8)
            address, write = row << 16 | bank << 12 | column << 9, source.random() < writes
            took = found.take(Request(3, address, write), cycle)
            assert took == expected.send(cycle, 3, address, write)
        answer = found.step(cycle)
        told = None if answer is None else (answer.port, answer.address)
        assert told == expected.step(cycle)


def test_steady() -> None:
    """A request every 3 cycles at most, of which reads are answered 10 cycles after their start."""
    memory = behind_arbiter(ArbitratedDescription(interval_cycles=3, latency_cycles=10))
    asked = {0: True, 1: False, 2: True, 20: True}
    answers = []
    for cycle in range(40):
        if cycle in asked:
            assert memory.take(Request(0, cycle, not asked[cycle]), cycle)
        answer = memory.step(cycle)
        if answer is not None:
            answers.append((answer.address, cycle))
    # They start in 0, 3, 6 and 20; the one that starts in 3 is a write.
    assert answers == [(0, 9), (2, 15), (20, 29)]


def test_served() -> None:
    """A write asks for a request a cycle, and is complete instead of asking for its last one."""
    (unit,) = units = clients_of([()])
    memory = ArbitratedMemory(ArbitratedDescription(), [], units)
    assert (memory.served(unit), memory.pending) == (0, False)
    memory.submit(unit, Burst(rows=4, row_bytes=512, pitch_bytes=512, write=True, address=0))
    for cycle in range(3):
        assert memory.advance(cycle) == []
        assert (memory.served(unit), memory.pending) == (cycle + 1, True)
    assert memory.advance(99) == [unit]
    assert (memory.served(unit), memory.pending, unit.now) == (0, False, 3)
