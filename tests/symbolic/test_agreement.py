"""Figures computed before a run equal the figures of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Stream, StreamType, simulate
from fabric.extend import Costs
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Partition, Selectors
from tests.profiles import spread
from tests.symbolic.programs import wired

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("simplified_moe", {}),
    ("simplified_moe", {"tokens": 7, "experts": 5, "seed": 3}),
    ("swiglu", {}),
    ("moe", {"model": "tiny", "batch": 16, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 3, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 16, "tiling": "dynamic"}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tiling": "dynamic"}),
    ("attention", {"strategy": "coarse"}),
    ("attention", {"strategy": "interleaved"}),
    ("attention", {"strategy": "dynamic"}),
    ("decoder", {"model": "tiny", "batch": 3, "regions": 2}),
    ("decoder", {"model": "tiny", "batch": 3, "tiling": "static", "parallelisation": "coarse"}),
]


@pytest.mark.parametrize(("program", "parameters"), spread(SETTINGS, 3))
def test_shipped_program_moves_what_was_expected(program: str, parameters: dict[str, Any]) -> None:
    report = simulate(wired(program, **parameters), mode="timing")

    assert ("completed", ()) == (report.status, report.comparison.warnings)
    assert [True] * 4 == [each.agrees for each in report.comparison.totals]
    elements = tuple(channel.taken for channel in report.channels_counters)
    assert report.comparison.channel_elements == elements
    moved = {each.what: each.measured for each in report.comparison.totals}
    assert moved["off-chip loads, bytes"] > 0
    assert report.off_chip_traffic_bytes == (
        moved["off-chip loads, bytes"] + moved["off-chip stores, bytes"]
    )


@dataclass(frozen=True)
class WrongStore(LinearOffChipStore):
    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(store_bytes=64)


@dataclass(frozen=True)
class WrongShape(Flatten):
    @override
    def infer(self, wiring: Any, *inputs: Stream) -> tuple[StreamType, ...]:
        (flat,) = super().infer(wiring, *inputs)
        return (StreamType((flat.shape[0] + 1,), flat.value),)


def test_operator_that_stores_more_than_its_costs_is_reported() -> None:
    with Program("p") as program:
        WrongStore("y")(LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32))())
    report = simulate(program)

    assert (
        "off-chip stores, bytes: 128 measured, 64 expected: this is a fault of the fabric, or "
        "of an operator's costs",
    ) == report.warnings


def test_operator_that_sends_fewer_elements_is_reported() -> None:
    with Program("p") as program:
        rows = LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32), (2,))()
        LinearOffChipStore("y")(WrongShape(0, 1)(rows))
    report = simulate(program)

    assert (
        "wrong_shape_1.0 -> linear_off_chip_store_1.0: 2 elements measured, 3 expected: this "
        "is a fault of the fabric, or of an operator's shapes"
    ) in report.warnings


def test_wrong_bound_size_is_reported() -> None:
    choice = np.array([[0], [1], [0]])
    with Program("p") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.zeros((3, 32), np.float32), (1, 32))())
        for number, stream in enumerate(Partition(2)(rows, Selectors(choice, 2, name="route")())):
            program.bind(stream.shape[0], 2)
            LinearOffChipStore(f"y{number}")(stream)
    report = simulate(program)

    assert ("the program binds D_route[1] to 2, but the run had 1",) == report.warnings
