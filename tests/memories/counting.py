"""A user's memory with made-up counters, in which each burst takes the same time.

The use of each cycle of each bus is listed and summed, so that tests can compare sums, periods and
shares.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Final, Literal

import numpy as np

import fabric.extend as ext
from fabric import Hardware, Program
from fabric.graph.wiring.program import hardware_scope
from operators import LinearOffChipLoad, LinearOffChipStore, Map, Mul, Tensor

PERIOD_CYCLES: Final = 64
_USES: Final = tuple(each.name for each in fields(ext.BusCycles))
_DATA, _REFRESH, _TURNAROUND, _IDLE = map(_USES.index, ("data", "refresh", "turnaround", "idle"))


@dataclass(frozen=True, kw_only=True)
class CountingDescription(ext.OffChipDescription):
    model = "counting"
    channels: Annotated[int, ext.Bounds(1)] = 2
    latency_cycles: Annotated[int, ext.Bounds(1)] = 100
    request_bytes: Annotated[int, ext.Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, ext.Bounds(1)] = 64
    lost_to: Literal["window", "conflict", "refresh", "turnaround"] = "window"
    conflict_percent: Annotated[int, ext.Bounds(0, 100)] = 50


class CountingMemory:
    final_cycle = None

    def __init__(
        self, description: CountingDescription, readers: list[ext.Unit], writers: list[ext.Unit]
    ) -> None:
        self.description: Final = description
        self.bytes_moved = 0
        self._clients: Final = [*readers, *writers]
        self._under_way: Final[dict[ext.Unit, ext.Burst]] = {}
        self._answered: Final[list[tuple[int, int, ext.Burst]]] = []

    @property
    def pending(self) -> bool:
        return bool(self._under_way)

    def served(self, unit: ext.Unit) -> int:
        return self._under_way[unit].requests(self.description.request_bytes)

    def submit(self, unit: ext.Unit, burst: ext.Burst) -> None:
        self._under_way[unit] = burst
        self.bytes_moved += self.served(unit) * self.description.request_bytes

    def advance(self, _horizon_cycle: int) -> list[ext.Unit]:
        done = sorted(self._under_way, key=self._clients.index)
        for unit in done:
            unit.answered(unit.now + self.description.latency_cycles)
            self._answered.append((unit.now, unit.index, self._under_way.pop(unit)))
        return done

    def counters(self) -> ext.MemoryCounters:
        last = max((end for end, *_ in self._answered), default=0)
        uses = np.full((self.description.channels, last), _IDLE)
        rows = np.zeros((self.description.channels, 5), int)
        clients = {unit.index: [0] * 7 for unit in self._clients}
        for end, unit, burst in sorted(self._answered):
            self._count(end, burst, uses, rows, clients[unit])
        uses[:, ::50] = _REFRESH
        periods = [uses[:, at : at + PERIOD_CYCLES] for at in range(0, last, PERIOD_CYCLES)]
        channels = zip(rows.tolist(), uses, strict=True)
        return ext.MemoryCounters(
            tuple(_traffic(row, bus) for row, bus in channels),
            tuple(ext.ClientTraffic(unit, *counted) for unit, counted in clients.items()),
            PERIOD_CYCLES,
            tuple(map(_counted, periods)),
        )

    def _count(
        self, end: int, burst: ext.Burst, uses: np.ndarray, rows: np.ndarray, client: list[int]
    ) -> None:
        description = self.description
        requests = burst.requests(description.request_bytes)
        cycles = np.arange(end - description.latency_cycles, end)
        lost = _USES.index(description.lost_to)
        conflicts = requests * description.conflict_percent // 100
        outcomes = (requests - conflicts - (requests - conflicts) // 4, (requests - conflicts) // 4)
        sums = (requests, *outcomes, conflicts, 7 * requests, 5 * requests, 3 * requests)
        client[:] = [one + other for one, other in zip(client, sums, strict=True)]
        # The remainder of a division is in the first channel.
        for channel in range(description.channels):
            share = [each // description.channels for each in (*outcomes, conflicts)]
            if channel == 0:
                total = (*outcomes, conflicts)
                share = [
                    all_ - each * (description.channels - 1)
                    for all_, each in zip(total, share, strict=True)
                ]
            rows[channel, 1 if burst.write else 0] += sum(share)
            rows[channel, 2:] += share
            used = cycles[channel:]
            uses[channel, used] = np.where(used % 4 < 2, _DATA, lost)
            if burst.write:
                uses[channel, used[used % 8 == 7]] = _TURNAROUND


def _counted(uses: np.ndarray) -> ext.BusCycles:
    return ext.BusCycles(*np.bincount(uses.reshape(-1), minlength=len(_USES)).tolist())


def _traffic(row: list[int], uses: np.ndarray) -> ext.ChannelTraffic:
    reads, writes, hits, misses, conflicts = row
    return ext.ChannelTraffic(reads, writes, hits, misses, conflicts, _counted(uses))


ext.register_memory(CountingDescription, CountingMemory)


def loads(hbm: ext.OffChipDescription, longer: int = 1) -> Program:
    rows = 64 * longer
    with hardware_scope(Hardware(hbm=hbm)), Program("loads") as program:
        left = LinearOffChipLoad(Tensor((rows, 64)), (16, 64), name="left")()
        right = LinearOffChipLoad(Tensor((rows, 64)), (16, 64), name="right")()
        LinearOffChipStore("y", name="store")(Map(Mul(), name="product")(left, right))
    return program
