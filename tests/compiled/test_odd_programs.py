from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from structlog.testing import LogCapture

from fabric import Program, StreamType, Tile, TileType, simulate
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.progress import Snapshot
from operators import Consumer, FilterLastTile, Metadata, RandomOffChipLoad, Repeat, Tensor, Zip
from tests.compiled.both import both
from tests.compiled.odd_programs import FALL_BACK, STAY, numbers
from tests.definitions import at_depth
from tests.operators.driving import Emit, encode
from tests.outcomes import LIVE, captured
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

Build = Callable[[], Program]


def named(build: Build) -> str:
    return build.__name__


@pytest.mark.parametrize("build", spread(FALL_BACK, 4), ids=named)
def test_program_that_leaves_the_loop_equals_tasks(build: Build, tmp_path: Path) -> None:
    assert both(build, tmp_path).gave_up


@pytest.mark.parametrize("depth", spread([1, 2, 1024, 1025, 100_000, 1 << 70], 3))
@pytest.mark.parametrize("build", spread(STAY[1:], 4), ids=named)
def test_program_stays_in_the_loop_at_any_depth(build: Build, depth: int, tmp_path: Path) -> None:
    depths = {edge.key: depth for edge in elaborate(build()).edges}
    found = both(build, tmp_path, depths=depths)

    assert (not found.gave_up, bool(found.compiled)) == (True, depth < 1 << 62)


@pytest.mark.parametrize("order", SCHEDULES)
def test_odd_programs_are_equal_under_every_schedule(order: str | int, tmp_path: Path) -> None:
    with schedule(order):
        for build in (STAY[4], FALL_BACK[0], FALL_BACK[-1]):
            both(build, tmp_path)


TENSORS: list[Any] = [
    [[[1], [1]], [[1], [1]]],
    [[[1], [1, 1]]],
    [[], []],
    [[], [[1, 1], [1, 1]]],
    [[[], []], [[], []]],
    [[[], [1]], [[1], []]],
    [[[1], [], [1]], [[]]],
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("tensor", spread(TENSORS, 2), ids=repr)
def test_refuted_shape_fails_in_the_loop(tensor: Any, late: bool, tmp_path: Path) -> None:
    groups = [{len(row) for row in tensor}, {len(row) for rows in tensor for row in rows}]
    one = Tile(1, 1, np.dtype(np.float32))
    elements = encode(at_depth(lambda _: one, 3, tensor), 3, lambda: late)
    for sizes in ((None, 1), (None, 2), (1, None), (2, None), (2, 1), (2, 2)):

        def build(sizes: Any = sizes) -> Program:
            with Program("assumed", mode="timing") as program:
                ragged = [symbol(name, ragged=True) for name in "RS"]
                kind = StreamType((len(tensor), *ragged), TileType(1, 1, one.dtype))
                rows = Repeat(2)(Emit(kind, elements)())
                given = zip(sizes, rows.shape[1:3], strict=True)
                shape = [each if size is None else size for size, each in given]
                Consumer()(rows.assume(len(tensor), *shape, 2))
            return program

        found = both(build, tmp_path)
        claimed = zip(groups, sizes, strict=True)
        fits = all(size is None or each <= {size} for each, size in claimed)
        assert found.gave_up is not fits


def test_log_is_written_once_if_a_run_leaves_the_loop(tmp_path: Path) -> None:
    def build() -> Program:
        with Program("late", mode="timing") as program:
            tensor = Tensor((1 << 13, 1 << 13))
            slow = RandomOffChipLoad(tensor, (1 << 12, 1 << 12))(numbers(1, 2, 3, 77))
            Consumer()(slow)
        return program

    logs = []
    for engine in ("tasks", "compiled"):
        capture = LogCapture()
        report = simulate(build(), log_dir=tmp_path, log=[capture], engine=engine)
        assert report.log_dir is not None
        text = (Path(report.log_dir) / "events.jsonl").read_text(encoding="utf-8")
        kept = [json.loads(line) for line in text.splitlines()]
        assert kept == captured(capture)
        cycles = [each["cycle"] for each in kept]
        assert sorted(cycles) == cycles
        beats = [each["cycle"] for each in kept if each["event"] == "heartbeat"]
        assert beats
        assert sorted(set(beats)) == beats
        logs.append([each for each in kept if each["event"] not in LIVE])
    assert logs[0] == logs[1]


def endless() -> None:
    Consumer()(FilterLastTile()(numbers(10**12)))


def ever_new() -> None:
    new = Metadata(np.arange(200_000))()
    Consumer()(Zip()(new, new))


@pytest.mark.parametrize("wire", [endless, ever_new])
def test_signal_ends_a_run_in_the_loop(wire: Callable[[], None], tmp_path: Path) -> None:
    with Program("long", mode="timing") as program:
        wire()

    class Progress:
        async def run(self, snapshot: Callable[[], Snapshot]) -> None:
            while snapshot().cycle < 100:
                await trio.lowlevel.checkpoint()
            os.kill(os.getpid(), signal.SIGTERM)

    report = simulate(program, log_dir=tmp_path, progress=Progress())

    assert ("interrupted", 143) == (report.status, report.exit_status)
    for unit in report.units:
        waited = unit.empty_cycles + unit.full_cycles + unit.credit_cycles + unit.hbm_cycles
        assert report.cycles == unit.busy_cycles + waited + unit.capacity_cycles + unit.idle_cycles
    assert report.log_dir is not None
    assert (Path(report.log_dir) / "report.json").exists()
