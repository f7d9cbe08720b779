"""A user's observer that counts the energy of each byte in flight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Tile, simulate
from fabric.extend import Element, Observer, Unit, Watched
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.schedules import SCHEDULES, schedule

PICOJOULES = {"hop": 3, "burst": 40, "room": 5}
TILES, TILE_BYTES = 24, 4 * 32 * 2


@dataclass
class Energy(Observer):
    request_bytes: int
    spent: int = 0

    @override
    def watch(self, channel: Watched) -> Callable[..., None]:
        return self._hop

    def _hop(self, element: Element, *_: object) -> None:
        assert isinstance(element[0], Tile)
        self.spent += PICOJOULES["hop"] * element[0].size_bytes

    @override
    def burst(self, unit: Unit, requests: int, stamp: tuple[int, int, int]) -> None:
        self.spent += PICOJOULES["burst"] * requests * self.request_bytes

    @override
    def allocated(self, unit: Unit, size_bytes: int, stamp: tuple[int, int, int]) -> None:
        self.spent += PICOJOULES["room"] * size_bytes


@pytest.mark.parametrize("order", SCHEDULES)
def test_energy_of_observers_is_that_of_the_report(order: str | int, tmp_path: Path) -> None:
    with Program("silu") as program:
        rows = LinearOffChipLoad(np.ones((TILES * 4, 32), np.float32), tile=(4, 32))()
        LinearOffChipStore("y")(Map(SiLU())(rows))
    hbm = program.hardware.hbm
    both = [Energy(hbm.request_bytes), Energy(2 * hbm.request_bytes)]
    with schedule(order):
        report = simulate(program, observers=both, trace="events", log_dir=tmp_path)
    assert (2 * TILES, 2 * TILES * TILE_BYTES) == (report.elements, report.hbm_bytes_moved)
    # Every tile takes two hops, and is stored on chip twice: by the load and by the store.
    priced = (PICOJOULES[what] * 2 * TILES * TILE_BYTES for what in ("hop", "burst", "room"))
    hops, bursts, room = priced
    assert [hops + bursts + room, hops + 2 * bursts + room] == [each.spent for each in both]
