from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Program, Report, Stream, StreamType, simulate
from fabric.analysis.trace.opened import Trace
from fabric.extend import Ports, Wiring
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.vocabulary import TABLES
from fabric.timing.compiled import world as c
from fabric.timing.engine import log
from operators import Bufferize, Consumer, Metadata, Streamify, Zip
from tests.compiled.both import Engine
from tests.compiled.odd_programs import FALL_BACK, STAY
from tests.compiled.test_both_engines import SHIPPED, hopped
from tests.compiled.turning import Turning
from tests.deadlock.cases import CASES
from tests.deadlock.test_random import Network, networks
from tests.operators.driving import Choices
from tests.operators.random_programs import Random
from tests.profiles import examples, spread
from tests.programs.loading import program

Build = Callable[[], Program]

_SMALL: dict[str, Any] = {"batch": 32, "hidden": 64, "inter": 64}

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def traced(build: Build, engine: Engine, folder: Path, **settings: Any) -> tuple[Report, Trace]:
    parent = folder / str(next(_numbers))
    report = simulate(
        build(), mode="timing", engine=engine, trace="events", log_dir=parent, **settings
    )
    assert report.log_dir is not None
    trace = Trace(Path(report.log_dir))
    shutil.rmtree(parent)
    return report, trace


def check(build: Build, folder: Path, **settings: Any) -> Trace:
    report, tasks = traced(build, "tasks", folder, **settings)
    other, compiled = traced(build, "compiled", folder, **settings)
    assert (report.status, report.cycles) == (other.status, other.cycles)
    assert tasks.problems == compiled.problems == []
    if report.status not in ("completed", "deadlock"):
        # The schedule decides how far units were when they were stopped.
        return compiled
    for table in TABLES:
        assert tasks.rows(f"FROM {table}") == compiled.rows(f"FROM {table}"), table
    return compiled


@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED[::4], 1))
def test_trace_of_a_program_is_equal_in_both_engines(
    name: str, parameters: dict[str, Any], folder: Path
) -> None:
    check(lambda: program(name, **parameters), folder)


@pytest.mark.parametrize("rows", [c.STEP_ENTRIES + 1, 50])
def test_trace_is_equal_for_any_size_of_the_log(
    rows: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = check(lambda: program("swiglu", **_SMALL), folder)
    monkeypatch.setattr(log, "ROWS", rows)
    parts = check(lambda: program("swiglu", **_SMALL), folder)
    assert all(whole.rows(f"FROM {table}") == parts.rows(f"FROM {table}") for table in TABLES)


@pytest.mark.parametrize("build", spread(STAY[::-1], 1), ids=lambda build: build.__name__)
@pytest.mark.parametrize("depth", spread([1, 3], 1))
def test_trace_of_an_odd_program_is_equal_in_both_engines(
    build: Build, depth: int, folder: Path
) -> None:
    depths = {edge.key: depth for edge in elaborate(build()).edges}
    check(build, folder, depths=depths, on_deadlock="describe")


# A trace cannot hold cycles beyond 64 bits.
@pytest.mark.parametrize(
    "build",
    spread([build for build in FALL_BACK if "64 bits" not in build.__name__], 1),
    ids=lambda build: build.__name__,
)
def test_trace_of_a_run_that_began_again_is_one_of_tasks(build: Build, folder: Path) -> None:
    check(build, folder, on_deadlock="describe")


@pytest.mark.parametrize("name", spread([*CASES][::4], 1))
def test_trace_of_a_deadlock_is_equal_in_both_engines(name: str, folder: Path) -> None:
    case = CASES[name]
    check(case.build, folder, depths=case.given, on_deadlock="describe", livelock_cycles=10_000)


@dataclass(frozen=True)
class Seven(Turning):
    conducted = turns = True

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((*inputs[0].shape, 7), inputs[0].value),)

    @override
    async def run(self, ports: Ports) -> None:
        source, sink, unit = ports.source, ports.sink, ports.unit
        while (element := await source.receive()) is not None:
            value, stop = element
            for _ in ports.times(2):
                await sink.send((value, 0))
                unit.charge(1)
                await sink.send((value, 0))
                unit.charge(3)
            for _ in ports.times(4):
                unit.charge(5)
            unit.charge(1)
            await sink.send((value, 0))
            await sink.send((value, 0))
            await sink.send((value, stop + 1))
            ports.turn()


@pytest.mark.parametrize("depth", spread([1, 2, 6, 7], 1))
def test_trace_stopped_in_a_repetition_is_equal_in_both_engines(depth: int, folder: Path) -> None:
    def build() -> Program:
        with Program("seven", mode="timing") as program:
            seven = Seven(None, name="seven")(Metadata(np.array([3, 1, 4]))())
            Consumer()(Zip(name="zip")(seven, Streamify()(Bufferize(1)(seven))))
        return program

    check(build, folder, depths={"zip.0": depth}, on_deadlock="describe")


@pytest.mark.deep
@examples(quick=4, deep=150)
@given(data=st.binary(min_size=300, max_size=300))
def test_trace_of_random_programs_is_equal_in_both_engines(folder: Path, data: bytes) -> None:
    def build() -> Program:
        return Random(Choices(data), functional=False).program

    check(build, folder, on_deadlock="describe", **hopped(build, random.Random(data)))


@examples(quick=4, deep=150)
@given(network=networks(merging=True))
def test_trace_of_random_networks_is_equal_in_both_engines(folder: Path, network: Network) -> None:
    check(lambda: network.program, folder, depths=network.depths, on_deadlock="describe")
