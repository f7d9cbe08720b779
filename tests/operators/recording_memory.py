"""A memory for tests of addresses, which records every burst and answers in the next cycle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fabric import Hardware, hardware_scope
from fabric.extend import Burst, OffChipDescription, Unit, register_memory

Bursts = dict[str, list[Burst]]
"""Bursts by operator, in the order in which the operator submitted them."""

_bursts: Bursts = {}


@dataclass(frozen=True, kw_only=True)
class _Recording(OffChipDescription):
    model: ClassVar[str] = "recording"
    request_bytes: int = 1
    peak_bytes_per_cycle: int = 1


class _Recorder:
    bytes_moved = 0
    final_cycle = None

    def __init__(self, _: _Recording, readers: list[Unit], writers: list[Unit]) -> None:
        self._under_way: list[Unit] = []
        _bursts.clear()
        _bursts.update({unit.name: [] for unit in [*readers, *writers]})

    @property
    def pending(self) -> bool:
        return bool(self._under_way)

    def submit(self, unit: Unit, burst: Burst) -> None:
        _bursts[unit.name].append(burst)
        self._under_way.append(unit)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        del horizon_cycle
        done, self._under_way = self._under_way, []
        for unit in done:
            unit.answered(unit.now + 1)
        return done

    def served(self, unit: Unit) -> int:
        del unit
        return 0


register_memory(_Recording, _Recorder)

RECORDING = Hardware(hbm=_Recording())
"""A fabric with this memory."""


@contextmanager
def recorded() -> Iterator[Bursts]:
    with hardware_scope(RECORDING):
        yield _bursts


def bytes_of(burst: Burst) -> NDArray[np.int64]:
    rows = burst.address + burst.pitch_bytes * np.arange(burst.rows, dtype=np.int64)
    return rows[:, None] + np.arange(burst.row_bytes, dtype=np.int64)
