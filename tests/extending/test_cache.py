"""A user's cache in front of the fabric's memory: tiles in the cache move no bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import pytest

import fabric.extend as ext
from fabric import Hardware, Program, hardware_scope, simulate
from operators import Consumer, LinearOffChipLoad, Tensor
from tests.schedules import SCHEDULES, schedule


@dataclass(frozen=True, kw_only=True)
class _Cached(ext.FlatDescription):
    model = "cached"
    lines: Annotated[int, ext.Bounds(1)] = 4096
    hit_cycles: Annotated[int, ext.Bounds(1)] = 4


class _Cache(ext.StandIn):
    def __init__(self, hbm: _Cached, readers: list[ext.Unit], writers: list[ext.Unit]) -> None:
        flat = ext.FlatDescription(
            **{each.name: getattr(hbm, each.name) for each in fields(ext.FlatDescription)}
        )
        super().__init__(ext.memory_of(flat, readers, writers))
        self.hbm, self.ports = hbm, [*readers, *writers]
        self.asked: dict[ext.Unit, ext.Burst] = {}
        self.hits: dict[ext.Unit, int] = {}
        self.lines: dict[int, None] = {}

    @property
    def pending(self) -> bool:
        return bool(self.asked or self.hits or self.memory.pending)

    def submit(self, unit: ext.Unit, burst: ext.Burst) -> None:
        self.asked[unit] = burst

    def served(self, unit: ext.Unit) -> int:
        is_ours = unit in self.asked or unit in self.hits
        return 0 if is_ours else self.memory.served(unit)

    def advance(self, horizon_cycle: int) -> list[ext.Unit]:
        for unit in sorted(self.asked, key=lambda unit: (unit.now, self.ports.index(unit))):
            if unit.now <= horizon_cycle:
                self.look_up(unit, self.asked.pop(unit))
        until = min(self.hits.values(), default=horizon_cycle)
        done = self.memory.advance(until) if self.memory.pending else []
        for unit in [] if done else [each for each in self.hits if self.hits[each] == until]:
            unit.answered(self.hits.pop(unit))
            done.append(unit)
        return sorted(done, key=self.ports.index)

    def look_up(self, unit: ext.Unit, burst: ext.Burst) -> None:
        size = self.hbm.request_bytes
        rows = [burst.address + row * burst.pitch_bytes for row in range(burst.rows)]
        lines = [n for row in rows for n in range(row // size, -(-(row + burst.row_bytes) // size))]
        if not burst.write and all(line in self.lines for line in lines):
            self.hits[unit] = unit.now + self.hbm.hit_cycles
        else:
            self.memory.submit(unit, burst)
        for line in lines:
            self.lines.pop(line, None)
            self.lines[line] = None
        for line in list(self.lines)[: -self.hbm.lines]:
            del self.lines[line]


ext.register_memory(_Cached, _Cache)


def _program(hbm: _Cached) -> Program:
    with hardware_scope(Hardware(hbm=hbm)), Program("thrice") as program:
        tiles = Tensor((32, 64))
        Consumer()(LinearOffChipLoad(tiles, (8, 64), shape=(3, 4), strides=(0, 1))())
    return program


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize(("lines", "times"), [(64, 1), (63, 3)])
def test_cache_with_room_moves_the_tensor_once(lines: int, times: int, order: str | int) -> None:
    with schedule(order):
        report = simulate(_program(_Cached(lines=lines)))
    assert ("completed", times * 64 * 64) == (report.status, report.hbm_bytes_moved)


def test_cache_hit_takes_its_own_cycles() -> None:
    quick, slow = (simulate(_program(_Cached(hit_cycles=cycles))).cycles for cycles in (4, 11))
    assert quick is not None
    assert 8 * (11 - 4) == (slow or 0) - quick
