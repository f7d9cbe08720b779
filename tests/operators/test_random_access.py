"""Random off-chip access: cycles, and stores that share an output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import operators as op
from fabric import Program, simulate
from fabric.extend import Ports
from tests.bases import Sink
from tests.schedules import SCHEDULES, schedule

WEIGHTS = np.arange(8 * 32 * 128, dtype=np.float32).reshape(8 * 32, 128)


def test_two_stores_may_share_an_output() -> None:
    tensor = np.zeros((64, 128), np.float32)
    with Program("store", mode="functional") as program:
        for place in (0, 1):
            data = op.Flatten(0, 1)(op.LinearOffChipLoad(WEIGHTS[:32], (32, 128))())
            op.RandomOffChipStore("y", tensor, (32, 128))(op.Metadata(np.array([place]))(), data)
    wanted = np.concatenate([WEIGHTS[:32], WEIGHTS[:32]])
    program.expect(y=lambda: wanted)

    assert simulate(program).verified is True
    assert not tensor.any()


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("places", [(0, 0, 0), (0, 2, 1)])
def test_later_store_to_one_place_stays(places: tuple[int, ...], name: str | int) -> None:
    tensor = np.zeros((4, 16))
    seen: list[tuple[int, int, int, float]] = []
    with Program("places", mode="functional") as program:
        for number, first in enumerate(places):
            data = op.Flatten(0, 1)(op.LinearOffChipLoad(np.full((3, 16), number + 1.0), (1, 16))())
            numbers = np.roll([0, 1, 2], -first)
            done = op.RandomOffChipStore("y", tensor, (1, 16))(op.Metadata(numbers)(), data)
            Acknowledged(seen, number, numbers.tolist())(done)
    program.expect(y=lambda: last_of(seen, tensor))
    with schedule(name):
        assert simulate(program).verified is True


@dataclass(frozen=True)
class Acknowledged(Sink):
    seen: list[tuple[int, int, int, float]]
    number: int
    places: list[int]

    @override
    async def run(self, ports: Ports) -> None:
        for place in self.places:
            assert await ports.source.receive() is not None
            self.seen.append((ports.unit.now, self.number, place, self.number + 1.0))


def last_of(seen: list[tuple[int, int, int, float]], tensor: Any) -> Any:
    result = tensor.copy()
    for _, _, place, value in sorted(seen):
        result[place] = value
    return result
