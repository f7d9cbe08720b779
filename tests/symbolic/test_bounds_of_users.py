"""Lower bounds of programs with users' operators, functions and memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from typing_extensions import override

import fabric as fab
import fabric.extend as ext
import operators as op
from tests.bases import Passing
from tests.symbolic.bounded import Idle, compared, cycles, load


@dataclass(frozen=True)
class Halving(Passing):
    @override
    async def run(self, ports: ext.Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            if await ports.source.receive() is not None:
                await ports.sink.send(element)


@dataclass(frozen=True)
class Dropping(op.Split):
    @override
    def infer(self, wiring: ext.Wiring, count: Any, tile: Any) -> tuple[tuple[Any, ...], Any]:
        return (count,), tile

    @override
    def apply(self, tile: Any) -> list[Any]:
        return []


@dataclass(frozen=True)
class Fewer(op.Flatten):
    @override
    def infer(self, wiring: ext.Wiring, *inputs: fab.Stream) -> tuple[fab.StreamType, ...]:
        (flat,) = super().infer(wiring, *inputs)
        return (fab.StreamType((*flat.shape[:-1], 10 * flat.shape[-1]), flat.value),)


@dataclass(frozen=True)
class Lazy(op.Consumer):
    @override
    async def run(self, ports: ext.Ports) -> None:
        while await ports.source.receive() is not None:
            pass


@dataclass(frozen=True)
class Slow(Passing):
    @override
    def work(
        self,
        inputs: tuple[fab.StreamType, ...],
        outputs: tuple[fab.StreamType, ...],
        rates: ext.Rates,
    ) -> ext.Work:
        return ext.Work(cycles=inputs[0].count * 100, first_cycles=100, last_cycles=100)

    @override
    async def run(self, ports: ext.Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            ports.unit.charge(100)
            await ports.sink.send(element)


@dataclass(frozen=True)
class SlowByName(Slow):
    @override
    async def run(self, ports: ext.Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


@dataclass(frozen=True, kw_only=True)
class AtOnce(ext.OffChipDescription):
    model = "at once"
    request_bytes: Annotated[int, ext.Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, ext.Bounds(1)] = 1 << 20


class AtOnceMemory:
    final_cycle = None
    bytes_moved = 0

    def __init__(self, _description: AtOnce, _readers: object, _writers: object) -> None:
        self._asked: list[ext.Unit] = []

    @property
    def pending(self) -> bool:
        return bool(self._asked)

    def submit(self, unit: ext.Unit, _burst: ext.Burst) -> None:
        self._asked.append(unit)

    def served(self, _unit: ext.Unit) -> int:
        return 0

    def advance(self, _horizon_cycle: int) -> list[ext.Unit]:
        done, self._asked = self._asked, []
        for unit in done:
            unit.answered(unit.now + 1)
        return done


ext.register_memory(AtOnce, AtOnceMemory)


def test_operations_of_a_users_function_may_take_no_time() -> None:
    with fab.Program("p") as built:
        op.Consumer()(op.Map(Idle(), flops_per_cycle=1)(load(4, 32, (4, 32))))
    bound, report = compared(built)

    assert "flops" not in bound.exact
    assert report.cycles is not None
    assert report.cycles < 4 * 32


@pytest.mark.parametrize(
    "fewer",
    [
        lambda rows: Halving()(op.Flatten(0, 2)(rows)),
        op.FlatMap(Dropping()),
        Fewer(1, 2),
    ],
    ids=["operator", "split", "types"],
)
def test_count_of_a_users_operator_is_not_trusted(
    fewer: Callable[[fab.Stream], fab.Stream],
) -> None:
    with fab.Program("p") as built:
        op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 64)), (4, 16))(fewer(load())))
    bound, report = compared(built)

    assert "completed" == report.status
    assert "hbm_bytes_moved" not in bound.exact
    # The bound still includes the load before the user's operator.
    assert 4 * 2 * 64 == bound.at_least["hbm_bytes_moved"]


def test_inherited_work_is_not_trusted_if_run_is_overridden() -> None:
    with fab.Program("p") as built:
        Lazy()(op.Repeat(100)(load(1, 16, (1, 16))))
    bound, _ = compared(built)
    with fab.Program("p") as told:
        op.Consumer()(op.Repeat(100)(load(1, 16, (1, 16))))

    assert cycles(bound)["routing"] < cycles(fab.lower_bounds(told))["routing"]


def test_work_of_a_users_operator_is_trusted_for_its_own_class() -> None:
    found = []
    for kind in (Slow, SlowByName):
        with fab.Program("p") as built:
            op.Consumer()(kind()(load()))
        bound, report = compared(built)
        found.append((bound.at_least["cycles"], report.cycles))

    assert [(21 + 4 * 100 + 1 + 1,) * 2, (4 * 20 + 3,) * 2] == found


def test_users_memory_bounds_no_cycles() -> None:
    with fab.hardware_scope(fab.Hardware(hbm=AtOnce())), fab.Program("p") as built:
        op.LinearOffChipStore("y")(op.Map(op.RowSum(), flops_per_cycle=1)(load()))
    bound, report = compared(built)

    assert {"compute", "memory"} == set(bound.cycles)
    assert "hbm_bytes_moved" not in bound.exact
    assert 4 * 32 <= bound.at_least["cycles"]
    assert "completed" == report.status
