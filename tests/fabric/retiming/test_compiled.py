from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Program, StreamType, Tile, TileType
from fabric.explore.sizing import running
from fabric.extend import Ports
from fabric.graph.hardware.latency import Hop
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.errors import FabricError
from fabric.runs.execution import Execution
from fabric.timing.engine import log as e
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.record_making import Recording
from operators import Consumer, Metadata, Repeat, Zip
from tests.compiled.odd_programs import FALL_BACK, FLOAT, ONE, STAY, First
from tests.compiled.test_both_engines import SHIPPED, hopped, wired
from tests.compiled.turning import Turning
from tests.deadlock.test_random import Network, networks
from tests.fabric.retiming.real import execute
from tests.operators.cases import CASES
from tests.operators.driving import Choices, Emit
from tests.operators.random_programs import Random
from tests.profiles import examples, of_profile, spread
from tests.programs.loading import program

Build = Callable[[], Program]

QUICK = examples(quick=7, deep=60)


def recorded(
    build: Build, *, compiles: bool, depths: dict[str, int], hops: dict[str, Hop]
) -> tuple[Execution, Record | None]:
    wired = build()
    recording = Recording(elaborate(wired))
    execution, ending = execute(wired, depths, hops, recording, compiles=compiles)
    return execution, recording.record(execution.machine) if ending == "completed" else None


def events_of(record: Record) -> dict[str, list[tuple[int, int, int]]]:
    rows = [(code & e.KIND, code >> e.SHIFT, amount) for code, amount in record.events.tolist()]
    first = record.first.tolist()
    return {
        unit: rows[begin:end]
        for unit, begin, end in zip(record.units, first[:-1], first[1:], strict=True)
    }


def check(build: Build, depths: dict[str, int] | None = None, **given: Any) -> Execution:
    hops: dict[str, Hop] = given.get("hops", {})
    _, of_tasks = recorded(build, compiles=False, depths=depths or {}, hops=hops)
    execution, found = recorded(build, compiles=True, depths=depths or {}, hops=hops)
    assert (of_tasks is None) == (found is None)
    if of_tasks is not None and found is not None:
        assert events_of(of_tasks) == events_of(found)
        assert of_tasks.channels == found.channels
        assert of_tasks.arbitrated == found.arbitrated
        assert (of_tasks.cycles, of_tasks.clients) == (found.cycles, found.clients)
        assert of_tasks.shutdown_cycles == found.shutdown_cycles
    return execution


def compiled(execution: Execution) -> int:
    region = execution.machine.region
    return 0 if region is None else len(region.indices)


@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED, 2))
def test_record_of_shipped_program_equals_that_of_tasks(
    name: str, parameters: dict[str, Any]
) -> None:
    assert compiled(check(lambda: program(name, **parameters)))


@pytest.mark.parametrize("build", spread(STAY, 2), ids=lambda build: build.__name__)
@pytest.mark.parametrize("depth", spread([1, 100_000], 1))
def test_record_of_odd_program_equals_that_of_tasks(build: Build, depth: int) -> None:
    depths = {edge.key: depth for edge in elaborate(build()).edges}
    if depth > 1 or build is not STAY[0]:
        assert compiled(check(build, depths))


@pytest.mark.parametrize("build", spread(FALL_BACK, 2), ids=lambda build: build.__name__)
def test_record_of_a_run_that_left_the_loop_equals_that_of_tasks(build: Build) -> None:
    _, of_tasks = recorded(build, compiles=False, depths={}, hops={})
    if of_tasks is None:
        with pytest.raises(FabricError):
            running.recorded(build(), {})
    else:
        assert events_of(of_tasks) == events_of(running.recorded(build(), {}).record)


@pytest.mark.parametrize("name", spread(CASES, 2))
def test_record_of_each_operator_equals_that_of_tasks(name: str) -> None:
    def build() -> Program:
        source = random.Random(name)
        with Program("cases", mode="timing") as made:
            for _ in range(of_profile(quick=4, deep=12)):
                wired(CASES[name](Choices(source.randbytes(48))), [])
        return made

    check(build, **hopped(build, random.Random(name)))


@QUICK
@given(data=st.binary(min_size=300, max_size=300))
def test_record_of_random_programs_equals_that_of_tasks(data: bytes) -> None:
    def build() -> Program:
        return Random(Choices(data), functional=False).program

    check(build, **hopped(build, random.Random(data)))


@QUICK
@given(network=networks(merging=True))
def test_record_of_random_networks_equals_that_of_tasks(network: Network) -> None:
    check(lambda: network.program, network.depths)


@dataclass(frozen=True)
class Lagging(Turning):
    conducted = turns = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink, unit = ports.source, ports.sink, ports.unit
        while (element := await source.receive()) is not None:
            before, _ = ports.now, ports.now
            unit.charge(2)
            after = ports.now
            if await source.peek() is not None:
                await source.peek()
            await sink.send_at(element, before + 7)
            unit.charge(1)
            await sink.send_at(element, after + 9)
            unit.charge(1)
            await sink.send_at(element, ports.now + 2)
            await sink.send_at(element, before + 30)
            ports.turn()


@dataclass(frozen=True)
class Wasteful(Turning):
    conducted = turns = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink, unit = ports.source, ports.sink, ports.unit
        while await source.peek() is not None:
            await source.peek()
            unit.charge(3)
            element = await source.receive()
            await sink.reserve()
            await sink.reserve()
            unit.charge(1)
            assert element is not None
            sink.put(element)
            ports.turn()


@pytest.mark.parametrize("kind", [Lagging, Wasteful])
def test_record_of_users_operators_equals_that_of_tasks(kind: type[Turning]) -> None:
    def build() -> Program:
        with Program("users", mode="timing", channel_depth=64) as made:
            Consumer()(kind(None)(Metadata(np.full(20, 4))()))
        return made

    assert compiled(check(build)) >= 2


@pytest.mark.parametrize("depth", [1, 2, 50])
def test_record_of_elements_left_over_equals_that_of_tasks(depth: int) -> None:
    def build() -> Program:
        with Program("ends", mode="timing", channel_depth=depth) as made:
            kind = StreamType((1, 9), TileType(1, 1, FLOAT))
            many = Emit(kind, [(ONE, 0)] * 8 + [(ONE, 1)])()
            Consumer()(First(3)(Repeat(2)(many)))
            tall = StreamType((1, 3), TileType(symbol("R", ragged=True), 1, FLOAT))
            tiles = [(Tile(rows, 1, FLOAT), int(rows == 40)) for rows in (2, 3, 40)]
            Consumer()(First(3)(Repeat(2)(Emit(tall, tiles)())))
            Consumer()(Zip()(many, many))
        return made

    assert compiled(check(build))
