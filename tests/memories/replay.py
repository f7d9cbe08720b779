"""Clients that drive a memory without a machine: n requests in flight, a rate, or tiles.

Clients act in the order of their clocks. The memory advances to the clock of a client before the
client submits a request.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.description import OffChipDescription
from fabric.messages.place import Place
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.registry import memory_of

FAR: Final = 1 << 40

Request: TypeAlias = tuple[int, bool]


@dataclass(frozen=True)
class Answers:
    memory: OffChip
    arrived: NDArray[np.int64]
    ready: NDArray[np.int64]
    writes: NDArray[np.bool_]
    burst_bytes: int

    @property
    def latencies(self) -> NDArray[np.int64]:
        return self.ready - self.arrived

    def bytes_per_cycle(self, first_cycle: int, end_cycle: int) -> float:
        inside = np.minimum(self.ready, end_cycle) - np.maximum(self.arrived, first_cycle)
        bursts = float((np.maximum(inside, 0) / self.latencies).sum())
        return bursts * self.burst_bytes / (end_cycle - first_cycle)


class _Driven:
    def __init__(self, description: OffChipDescription, each: int, burst_bytes: int) -> None:
        place = Place("program.py", 1)
        units = [
            MemoryUnit(f"unit{index}", index, place, bytes_per_cycle=64)
            for index in range(2 * each)
        ]
        self.readers: Final[list[Unit]] = list(units[:each])
        self.writers: Final[list[Unit]] = list(units[each:])
        self.memory: Final = memory_of(description, list(self.readers), list(self.writers))
        self._burst_bytes: Final = burst_bytes
        self._latest: Final = [0] * len(units)
        self._arrived: Final[list[int]] = []
        self._ready: Final[list[int]] = []
        self._writes: Final[list[bool]] = []

    def submit(self, unit: Unit, request: Request, clock: int) -> None:
        address, write = request
        unit.now = clock
        self._latest[unit.index] = len(self._arrived)
        self._arrived.append(clock + 2)
        self._ready.append(-1)
        self._writes.append(write)
        self.memory.submit(unit, Burst(address, 1, self._burst_bytes, self._burst_bytes, write))

    def advance(self, horizon_cycle: int) -> list[Unit]:
        done = self.memory.advance(horizon_cycle)
        for unit in done:
            self._ready[self._latest[unit.index]] = unit.now - 1
        return done

    def answers(self) -> Answers:
        while self.memory.pending:
            self.advance(FAR)
        ready = np.array(self._ready)
        assert (ready >= 0).all()
        return Answers(
            self.memory, np.array(self._arrived), ready, np.array(self._writes), self._burst_bytes
        )


def saturated(
    description: OffChipDescription,
    requests: Iterable[Request],
    outstanding: int,
    *,
    until_cycle: int = FAR,
) -> Answers:
    driven = _Driven(description, outstanding, description.request_bytes)
    free = driven.readers[::-1], driven.writers[::-1]
    todo = iter(requests)
    clocks = [0] * outstanding
    while clocks:
        if driven.memory.pending:
            for unit in driven.advance(clocks[0]):
                free[unit.index >= outstanding].append(unit)
                heapq.heappush(clocks, unit.now)
        now = clocks[0]
        while clocks and clocks[0] == now:
            heapq.heappop(clocks)
            request = next(todo, None) if now < until_cycle else None
            if request is not None:
                driven.submit(free[request[1]].pop(), request, now)
        if not clocks and driven.memory.pending:
            for unit in driven.advance(FAR):
                free[unit.index >= outstanding].append(unit)
                heapq.heappush(clocks, unit.now)
    return driven.answers()


def at_rate(
    description: OffChipDescription,
    requests: Iterable[Request],
    requests_per_cycle: float,
    *,
    until_cycle: int,
    most_waiting: int,
) -> Answers:
    driven = _Driven(description, most_waiting, description.request_bytes)
    free = driven.readers[::-1]
    for number, request in enumerate(requests):
        clock = int(number / requests_per_cycle)
        if clock >= until_cycle:
            break
        while driven.memory.pending and (done := driven.advance(clock)):
            free += done
        driven.submit(free.pop(), request, clock)
    return driven.answers()


def clients(
    description: OffChipDescription, starts: Sequence[int], tile_bytes: int, *, until_cycle: int
) -> Answers:
    driven = _Driven(description, len(starts), tile_bytes)
    places = list(starts)
    ready = driven.readers[:]
    while ready:
        for unit in ready:
            if unit.now < until_cycle:
                driven.submit(unit, (places[unit.index], False), unit.now)
                places[unit.index] += tile_bytes
        ready = driven.advance(FAR) if driven.memory.pending else []
    return driven.answers()
