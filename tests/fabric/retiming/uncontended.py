"""An off-chip memory without contention: how long a burst takes hangs on the burst alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fabric import Bounds, Burst, Hardware, OffChipDescription, Unit, register_memory

__all__ = ["UNCONTENDED"]


@dataclass(frozen=True, kw_only=True)
class _Uncontended(OffChipDescription):
    model = "uncontended"
    latency_cycles: Annotated[int, Bounds(1)] = 23
    request_bytes: Annotated[int, Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, Bounds(1)] = 1024


class _Memory:
    final_cycle = None

    def __init__(self, description: _Uncontended, _readers: object, _writers: object) -> None:
        self.description = description
        self.under_way: dict[Unit, int] = {}
        self.bytes_moved = 0

    @property
    def pending(self) -> bool:
        return bool(self.under_way)

    def submit(self, unit: Unit, burst: Burst) -> None:
        self.under_way[unit] = burst.requests(self.description.request_bytes)
        self.bytes_moved += self.under_way[unit] * self.description.request_bytes

    def served(self, unit: Unit) -> int:
        return self.under_way[unit]

    def advance(self, _horizon_cycle: int) -> list[Unit]:
        done, self.under_way = self.under_way, {}
        for unit, requests in done.items():
            unit.answered(unit.now + self.description.latency_cycles + requests // 16)
        return list(done)


register_memory(_Uncontended, _Memory)

UNCONTENDED: Final = Hardware(hbm=_Uncontended())
