"""Mistakes of users' memories end the run with an error at their line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pytest

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.extend import Burst, OffChipDescription, Unit, register_memory
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.schedules import SCHEDULES, schedule


class _Memory:
    bytes_moved = 0
    final_cycle = None

    def __init__(self, description: _Mistaken, _readers: object, _writers: object) -> None:
        self.advances = ADVANCES[description.mistake][0]
        self.under_way: list[Unit] = []

    @property
    def pending(self) -> bool:
        return bool(self.under_way)

    def submit(self, unit: Unit, _burst: Burst) -> None:
        self.under_way.append(unit)

    def served(self, _unit: Unit) -> int:
        return 0

    def advance(self, _horizon_cycle: int) -> Any:
        done, self.under_way = self.under_way, []
        return self.advances(sorted(done, key=lambda unit: unit.name))


@dataclass(frozen=True, kw_only=True)
class _Mistaken(OffChipDescription):
    model: ClassVar[str] = "mistaken"
    request_bytes: int = 1
    peak_bytes_per_cycle: int = 1
    mistake: str = "none"


register_memory(_Mistaken, _Memory)


def _answered(units: list[Unit], cycles: Any) -> list[Unit]:
    for unit in units:
        unit.now += cycles
    return units


ADVANCES: Final[dict[str, tuple[Callable[[list[Unit]], Any], str]]] = {
    "none": (lambda units: _answered(units, 3), ""),
    "nobody": (
        lambda _: [],
        "advance() answers none of 2 bursts, and no unit can run: expected at least one answer",
    ),
    "nothing": (lambda _: None, "TypeError: 'NoneType' object is not iterable"),
    "twice": (
        lambda units: _answered(units[:1], 3) * 2,
        "advance() answers first: expected each unit with a burst under way at most once",
    ),
    "another": (
        lambda units: [*units, 7],
        "advance() answers 7: expected each unit with a burst under way at most once",
    ),
    "early": (
        lambda units: _answered(units, -2),
        "-2 is the cycle in which first is answered: expected at least 0",
    ),
    "half": (
        lambda units: _answered(units, 0.5),
        "0.5 is the cycle in which first is answered: expected an integer",
    ),
}


def _program(mistake: str) -> Program:
    with hardware_scope(Hardware(hbm=_Mistaken(mistake=mistake))), Program("two") as program:
        for name in ("first", "second"):
            load = LinearOffChipLoad(Tensor((4, 4)), (2, 2), name=name)
            LinearOffChipStore(f"y_{name}")(load())
    return program


@pytest.mark.parametrize("mistake", [name for name in ADVANCES if name != "none"])
def test_mistake_of_a_memory_is_one_error_under_every_schedule(mistake: str) -> None:
    errors = set()
    for order in SCHEDULES:
        with schedule(order):
            report = simulate(_program(mistake))
        assert report.status == "error"
        assert report.error is not None
        errors.add((report.error["message"], report.error["line"]))

    ((message, line),) = errors
    assert f"memory 'mistaken': {ADVANCES[mistake][1]}, at cycle 0" == message
    assert line == _Memory.advance.__code__.co_firstlineno


def test_clock_set_by_a_memory_counts_as_waiting() -> None:
    report = simulate(_program("none"))

    assert report.status == "completed"
    waited = {unit.name: unit.hbm_cycles for unit in report.units}
    assert {4 * 3} == set(waited.values())
