"""Lower bounds of programs with users' operators, functions and memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from typing_extensions import override

from fabric import (
    Hardware,
    Program,
    Stream,
    StreamType,
    hardware_scope,
    lower_bounds,
)
from fabric.extend import (
    Bounds,
    Burst,
    OffChipDescription,
    Ports,
    Rates,
    Unit,
    Wiring,
    Work,
    register_memory,
)
from operators import (
    Consumer,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Repeat,
    RowSum,
    Split,
    Tensor,
)
from tests.bases import Hop as Passing
from tests.symbolic.bounded import Idle, compared, cycles, load


@dataclass(frozen=True)
class Halving(Passing):
    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            if await ports.source.receive() is not None:
                await ports.sink.send(element)


@dataclass(frozen=True)
class Dropping(Split):
    @override
    def infer(self, wiring: Wiring, count: Any, tile: Any) -> tuple[tuple[Any, ...], Any]:
        return (count,), tile

    @override
    def apply(self, tile: Any) -> list[Any]:
        return []


@dataclass(frozen=True)
class Fewer(Flatten):
    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (flat,) = super().infer(wiring, *inputs)
        return (StreamType((*flat.shape[:-1], 10 * flat.shape[-1]), flat.value),)


@dataclass(frozen=True)
class Lazy(Consumer):
    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            pass


@dataclass(frozen=True)
class Slow(Passing):
    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work(cycles=inputs[0].count * 100, first_cycles=100, last_cycles=100)

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            ports.unit.charge(100)
            await ports.sink.send(element)


@dataclass(frozen=True)
class SlowByName(Slow):
    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


@dataclass(frozen=True, kw_only=True)
class AtOnce(OffChipDescription):
    model = "at once"
    request_bytes: Annotated[int, Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, Bounds(1)] = 1 << 20


class AtOnceMemory:
    final_cycle = None
    bytes_moved = 0

    def __init__(self, _description: AtOnce, _readers: object, _writers: object) -> None:
        self._asked: list[Unit] = []

    @property
    def pending(self) -> bool:
        return bool(self._asked)

    def submit(self, unit: Unit, _burst: Burst) -> None:
        self._asked.append(unit)

    def served(self, _unit: Unit) -> int:
        return 0

    def advance(self, _horizon_cycle: int) -> list[Unit]:
        done, self._asked = self._asked, []
        for unit in done:
            unit.answered(unit.now + 1)
        return done


register_memory(AtOnce, AtOnceMemory)


def test_operations_of_a_users_function_may_take_no_time() -> None:
    with Program("p") as built:
        Consumer()(Map(Idle(), flops_per_cycle=1)(load(4, 32, (4, 32))))
    known, report = compared(built)

    assert "flops" not in known.exact
    assert report.cycles is not None
    assert report.cycles < 4 * 32


@pytest.mark.parametrize(
    "fewer",
    [
        lambda rows: Halving()(Flatten(0, 2)(rows)),
        FlatMap(Dropping()),
        Fewer(1, 2),
    ],
    ids=["operator", "split", "types"],
)
def test_count_of_a_users_operator_is_not_trusted(fewer: Callable[[Stream], Stream]) -> None:
    with Program("p") as built:
        Consumer()(LinearOffChipLoad(Tensor((4, 64)), (4, 16))(fewer(load())))
    known, report = compared(built)

    assert "completed" == report.status
    assert "hbm_bytes_moved" not in known.exact
    # The load in front is known all the same.
    assert 4 * 2 * 64 == known.at_least["hbm_bytes_moved"]


def test_inherited_work_is_not_trusted_if_run_is_overridden() -> None:
    with Program("p") as built:
        Lazy()(Repeat(100)(load(1, 16, (1, 16))))
    known, _ = compared(built)
    with Program("p") as told:
        Consumer()(Repeat(100)(load(1, 16, (1, 16))))

    assert cycles(known)["routing"] < cycles(lower_bounds(told))["routing"]


def test_work_of_a_users_operator_is_trusted_for_its_own_class() -> None:
    found = []
    for kind in (Slow, SlowByName):
        with Program("p") as built:
            Consumer()(kind()(load()))
        known, report = compared(built)
        found.append((known.at_least["cycles"], report.cycles))

    assert [(21 + 4 * 100 + 1 + 1,) * 2, (4 * 20 + 3,) * 2] == found


def test_users_memory_bounds_no_cycles() -> None:
    with hardware_scope(Hardware(hbm=AtOnce())), Program("p") as built:
        LinearOffChipStore("y")(Map(RowSum(), flops_per_cycle=1)(load()))
    known, report = compared(built)

    assert {"compute", "memory"} == set(known.cycles)
    assert "hbm_bytes_moved" not in known.exact
    assert 4 * 32 <= known.at_least["cycles"]
    assert "completed" == report.status
