"""Drives a memory with clients, without a machine, and records when each burst is answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from fabric.graph.hardware.address_space import Burst
from fabric.messages.place import Place
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.unit import MemoryUnit, Unit


def clients_of(script: Sequence[object]) -> list[Unit]:
    return [
        MemoryUnit(f"unit{index}", index, Place("program.py", 1), bytes_per_cycle=64)
        for index in range(len(script))
    ]


def answers(
    memory: OffChip,
    units: Sequence[Unit],
    script: Iterable[Iterable[tuple[int, Burst]]],
    horizons: Sequence[int],
) -> list[list[int]]:
    todo = [deque(bursts) for bursts in script]
    answered: list[list[int]] = [[] for _ in units]

    def submit(unit: Unit) -> None:
        if todo[unit.index]:
            gap, burst = todo[unit.index].popleft()
            unit.now += gap
            memory.submit(unit, burst)

    for unit in units:
        submit(unit)
    now = 0
    turn = 0
    while memory.pending:
        horizon = now + horizons[turn % len(horizons)]
        turn += 1
        done = memory.advance(horizon)
        for client in done:
            assert client.now > now
            answered[client.index].append(client.now)
        now = min([horizon, *(client.now for client in done)])
        for client in done:
            submit(client)
    return answered
