"""Errors, warnings, refusals and verdicts of a run are the same under every schedule.

A case is a function that wires a program, with the status of its run. ``tests/deadlock/cases.py``
has the programs that deadlock, which are compared in the same way there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import operators as op
from fabric import Program, StreamType, hardware_scope
from fabric.extend import Ports
from tests.deadlock.cases import fork_join, on_a_small_chip
from tests.deadlock.parts import Script, feedback, relay, sink, source
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.operators.driving import FLOAT, Collect, Emit, ragged, tile
from tests.operators.test_capacity import crowd, limited
from tests.operators.writing import wired
from tests.outcomes import outcome_under_every_schedule
from tests.profiles import spread
from tests.symbolic.test_assume import routed

CASES: dict[str, tuple[Callable[[], Program], str]] = {}


def case(status: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
    def add(build: Callable[[], Program]) -> Callable[[], Program]:
        CASES[build.__name__] = build, status
        return build

    return add


@dataclass(frozen=True)
class Fails(Relay):
    after: int = 0
    work_cycles: int = 1

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.after):
            element = await ports.source.receive()
            assert element is not None
            await ports.sink.send(element)
            ports.unit.charge(self.work_cycles)
        raise KeyError("no such row")


@dataclass(frozen=True)
class Stores(Charge):
    number: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        await Charge.run(self, ports)
        ports.stored[ports.unit.name] = np.array(self.number)


# --------------------------------------------------------------------------- errors


@case("error")
def two_that_fail() -> Program:
    with Program("two-that-fail") as program:
        Charge()(Fails(after=2, work_cycles=3)(Fails(after=4, work_cycles=3)(Ticks(10)())))
    return program


@case("error")
def far_ahead_and_behind() -> Program:
    """One fails first, but in cycle 5,000; the other waits for the HBM and fails in cycle 52."""
    with Program("far-ahead-and-behind") as program:
        Charge()(Fails(after=5, work_cycles=1_000, name="ahead")(Ticks(10)()))
        rows = op.LinearOffChipLoad(op.Tensor((64, 64)), tile=(16, 64))()
        Charge()(Fails(after=1, name="behind")(rows))
    return program


@case("error")
def merges_beside_a_failure() -> Program:
    with Program("merges-beside-a-failure") as program:
        slow = Script(("c7", "s0"), rounds=30, counts=(30,), name="slow")()[0]
        data, chosen = op.EagerMerge()([slow, source("fast", 30)])
        sink("y", data)
        Collect([])(chosen)
        Charge()(Fails(after=20, work_cycles=5)(Ticks(30)()))
    return program


@case("error")
def a_failure_beside_a_ring() -> Program:
    with Program("a-failure-beside-a-ring") as program:
        loop = feedback(1)
        loop.connect(Script(("r0", "s0"), once=("s0",), name="turn")(loop)[0])
        rows = op.LinearOffChipLoad(op.Tensor((64, 64)), tile=(16, 64))()
        Charge()(Fails(after=1)(rows))
    return program


@case("error")
def a_late_failure_beside_a_ring() -> Program:
    with Program("a-late-failure-beside-a-ring", channel_depth=3) as program:
        loop = feedback(1)
        stream = relay("there", loop)
        loop.connect(Script(("r0", "s0"), once=("s0", "s0"), name="back")(stream)[0])
        Charge()(Fails(after=7, work_cycles=2_000)(Ticks(10)()))
    return program


@case("error")
def a_failure_far_behind_a_ring() -> Program:
    """The error does not mention the ring: its position depends on the schedule."""
    with Program("a-failure-far-behind-a-ring", channel_depth=5) as program:
        loop = feedback(1)
        back = Script(("r0", "c2", "s0"), once=("s0",) * 3, name="back")
        loop.connect(back(relay("there", loop))[0])
        Charge()(Fails(after=7, work_cycles=1_300)(Ticks(10)()))
    return program


@case("error")
def a_failure_beside_a_deadlock() -> Program:
    with Program("a-failure-beside-a-deadlock") as program:
        sink("y", fork_join("a", size=8, relays=1))
        Charge()(Fails(after=20, work_cycles=50)(Ticks(30)()))
    return program


@case("error")
def none_at_the_end() -> Program:
    class RunsOn(Relay):
        @override
        async def run(self, ports: Ports) -> None:
            while True:
                element: Any = await ports.source.receive()
                await ports.sink.send(element)

    with Program("none-at-the-end") as program:
        Charge()(Relay()(RunsOn(name="wrong")(Ticks(10)())))
    return program


@case("error")
def false_assumption() -> Program:
    with Program("false-assumption") as program:
        left, right = routed([[0], [1], [0]])
        op.LinearOffChipStore("y")(left.assume(3))
        op.LinearOffChipStore("z")(right.assume(2))
    return program


@case("error")
def unknown_output() -> Program:
    """No operator stores the expected output; the error names the stored ones."""
    with Program("unknown-output", mode="functional") as program:
        for name in ("late", "early", "between"):
            Stores(name=name)(Ticks(3)())
    program.expect(other=lambda: np.array(0))
    return program


@case("error")
def an_expectation_that_raises() -> Program:
    with Program("an-expectation-that-raises", mode="functional") as program:
        Stores(name="y")(Ticks(3)())
    program.expect(y=lambda: np.array(1) / None)
    return program


# ------------------------------------------------------------------------- refusals


@case("error")
def a_tile_that_never_fits() -> Program:
    with on_a_small_chip(1_000, "a-tile-that-never-fits") as program:
        op.LinearOffChipStore("a")(op.LinearOffChipLoad(np.zeros((8, 10)), tile=(8, 10))())
        op.LinearOffChipStore("b")(op.LinearOffChipLoad(np.zeros((64, 64)), tile=(64, 64))())
    return program


@case("error")
def an_accumulator_that_grows() -> Program:
    with hardware_scope(limited(5)), Program("an-accumulator-that-grows") as program:
        for gap in (1, 50):
            tiles = Emit(StreamType((1, 9), FLOAT), [(tile(n), n // 8) for n in range(9)], (gap,))()
            Collect([])(op.Accum(op.RetileRow())(tiles))
            Collect([])(
                op.Streamify()(
                    op.Bufferize()(
                        Emit(StreamType((2, 1), FLOAT), [(tile(0), 1), (tile(1), 1)], (gap,))()
                    )
                )
            )
    return program


# ------------------------------------------------------------------------- warnings


@case("completed")
def wrong_results() -> Program:
    with Program("wrong-results", mode="functional") as program:
        for number, name in enumerate(("b", "a", "c")):
            Stores(name=name, number=number)(Ticks(10 - number)())
    program.expect(c=lambda: np.array(5), a=lambda: np.array(1), b=lambda: np.array(7))
    return program


@case("completed")
def left_over() -> Program:
    with Program("left-over") as program:
        for taken in (4, 2, 3):
            Script(("r0",), rounds=taken, counts=())(source(f"x_{taken}", 9))
        slow = Script(("c9", "s0"), rounds=9, counts=(9,), name="slow")()[0]
        data, _ = op.EagerMerge()([slow, relay("fast", source("x", 9))])
        Script(("r0", "c20"), rounds=5, counts=())(data)
    return program


@case("completed")
def other_sizes_than_promised() -> Program:
    with Program("other-sizes-than-promised") as program:
        left, right = routed([[0], [1], [0]])
        program.bind(left.shape[0], 1)
        program.bind(right.shape[0], 3)
        op.LinearOffChipStore("y")(left)
        op.LinearOffChipStore("z")(right)
    return program


@pytest.mark.parametrize("name", spread(CASES, 4))
def test_every_schedule_tells_the_same(name: str, tmp_path: Path) -> None:
    build, status = CASES[name]
    found = outcome_under_every_schedule(build, tmp_path, livelock_cycles=10_000)

    assert status == found["report"].status


@pytest.mark.parametrize("seed", spread(range(0, 60, 2), 10))
def test_refused_load_is_one_error_under_every_schedule(seed: int, tmp_path: Path) -> None:
    wire, room = crowd(seed)
    which = random.Random(seed).randrange(5)

    def build() -> Program:
        with hardware_scope(limited(room)), Program("refused", channel_depth=1000) as program:
            streams = wire()
            for stream in streams:
                Collect([], (0,))(stream)
            Collect([])(op.LinearOffChipLoad(np.zeros((64, 64)), (64, 64))(streams[which]))
        return program

    report = outcome_under_every_schedule(build, tmp_path)["report"]
    assert report.error is None or "a tile takes 8,192 bytes" in report.error["message"]


@pytest.mark.parametrize(
    ("operator", "texts"),
    [
        (op.Zip(), ("0 1|S1 2 3|S1 4 5|S2", "0 1|S1 2 3|S1 4|S2")),
        (op.Expand(1), ("7|S1 8|S2", "0 1|S1 2|S1 3|S2")),
        (op.Expand(1), ("7|S1 8|S2", "0 1|S2")),
    ],
)
def test_mismatched_structures_are_one_error_under_every_schedule(
    operator: Any, texts: tuple[str, ...], tmp_path: Path
) -> None:
    shapes = (
        (1, ragged(0), ragged(1) if isinstance(operator, op.Zip) else 1),
        (1, ragged(0), ragged(1)),
    )
    inputs = list(zip(texts, shapes, strict=True))
    found = outcome_under_every_schedule(lambda: wired(operator, *inputs)[0], tmp_path)

    assert "expected equal structures" in found["report"].error["message"]
