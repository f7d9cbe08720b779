"""Clients that drive a memory without a machine: so many requests under way, a rate, or tiles.

Clients act in the order of their clocks, as those of a run do: before one hands over a request the
memory has gone on to its clock.
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
from fabric.messages.telling.place import Place
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.registry import memory_of

__all__ = ["FAR", "Answers", "Request", "at_rate", "clients", "saturated"]

FAR: Final = 1 << 40
"""A cycle that no replay reaches."""

Request: TypeAlias = tuple[int, bool]
"""An address, and whether it is written."""


@dataclass(frozen=True)
class Answers:
    """Bursts, in the order in which clients handed them over.

    Attributes:
        memory: that answered them.
        arrived: cycle in which the first request of each was with its channel.
        ready: cycle in which the last one was done: a cycle before its client sees that.
        writes: which were.
        burst_bytes: each of them has.
    """

    memory: OffChip
    arrived: NDArray[np.int64]
    ready: NDArray[np.int64]
    writes: NDArray[np.bool_]
    burst_bytes: int

    @property
    def latencies(self) -> NDArray[np.int64]:
        """Cycles from arriving to ready."""
        return self.ready - self.arrived

    def bytes_per_cycle(self, first_cycle: int, end_cycle: int) -> float:
        """Return what came in those cycles; of a burst evenly from arriving to ready."""
        inside = np.minimum(self.ready, end_cycle) - np.maximum(self.arrived, first_cycle)
        bursts = float((np.maximum(inside, 0) / self.latencies).sum())
        return bursts * self.burst_bytes / (end_cycle - first_cycle)


class _Driven:
    """A memory, the units that share it, and what became of their bursts.

    Attributes:
        memory: the memory.
        readers, writers: have one burst under way each at most.
    """

    def __init__(self, description: OffChipDescription, each: int, burst_bytes: int) -> None:
        """Make ``each`` readers and as many writers."""
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
        """Let ``unit`` hand over a burst at ``clock``."""
        address, write = request
        unit.now = clock
        self._latest[unit.index] = len(self._arrived)
        self._arrived.append(clock + 2)
        self._ready.append(-1)
        self._writes.append(write)
        self.memory.submit(unit, Burst(address, 1, self._burst_bytes, self._burst_bytes, write))

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Let the memory go on, and note what it answers."""
        done = self.memory.advance(horizon_cycle)
        for unit in done:
            self._ready[self._latest[unit.index]] = unit.now - 1
        return done

    def answers(self) -> Answers:
        """Wait for what is under way; return all."""
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
    """Keep so many ``requests`` under way: when one is answered, the next one is handed over.

    Args:
        description: of the memory.
        requests: all, or more than there is time for.
        outstanding: at any time, of all channels together.
        until_cycle: none is handed over later.
    """
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
    """Hand over so many ``requests`` a cycle, however many wait: an open loop.

    Args:
        description: of the memory.
        requests: reads, more than there is time for.
        requests_per_cycle: on the average.
        until_cycle: none is handed over later.
        most_waiting: so many clients there are.
    """
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
    """Let a client for each of ``starts`` read tiles from there on, one of them at a time."""
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
