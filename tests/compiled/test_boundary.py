from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import trio

from fabric import Program
from fabric.messages.progress import Snapshot
from fabric.timing.compiled import arrays, region
from operators import Broadcast, Consumer, EagerMerge, Flatten, Metadata, Promote, Repeat, Zip
from tests.compiled.both import both, run
from tests.compiled.test_both_engines import hopped
from tests.deadlock.parts import Script, sink, source
from tests.profiles import spread
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule


class Looking:
    def __init__(self) -> None:
        self.seen: list[Snapshot] = []

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        while True:
            self.seen.append(snapshot())
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("order", spread(SCHEDULES, 1))
@pytest.mark.parametrize("name", spread(["swiglu", "ragged_attention"], 1))
def test_run_with_snapshots_equals_one_without(name: str, order: str | int, tmp_path: Path) -> None:
    def build() -> Program:
        return program(name, batch=16, inter=64) if name == "swiglu" else program(name)

    alone = run(build, "compiled", tmp_path)
    looking = Looking()
    with mock.patch.object(region, "_BUDGET", 7), schedule(order):
        found = run(build, "compiled", tmp_path, progress=looking)

    assert alone.state == found.state
    assert len(looking.seen) > 20
    elements = [each.elements for each in looking.seen]
    assert elements == sorted(elements)


def between(seed: int) -> Program:
    drawn = random.Random(seed)
    with Program("between", mode="timing", channel_depth=drawn.randint(1, 3)) as made:
        streams = [source(f"s{number}", drawn.randint(0, 40)) for number in range(3)]
        for _ in range(12):
            at = drawn.randrange(len(streams))
            stream = streams.pop(at)
            match drawn.randrange(5):
                case 0:
                    streams += Broadcast(2)(stream)
                case 1:
                    stream = Flatten(0, 1)(Repeat(drawn.randint(1, 3))(stream))
                    streams.append(stream)
                case 2 if streams:
                    merged, selectors = EagerMerge()([stream, streams.pop()])
                    streams.append(merged)
                    Consumer()(selectors)
                case 3:
                    # The reader ends early, and the remaining elements are drained.
                    rounds = drawn.randint(1, 20)
                    streams += Script(("r0", "c2", "s0"), rounds=rounds)(stream)
                case _:
                    streams.append(Flatten(0, 1)(Promote(0)(stream)))
        for number, stream in enumerate(streams):
            sink(f"e{number}", stream)
    return made


@pytest.mark.parametrize("seed", spread(range(30), 3))
def test_streams_cross_the_region_under_any_schedule(seed: int, tmp_path: Path) -> None:
    drawn = hopped(lambda: between(seed), random.Random(seed))
    with schedule(SCHEDULES[seed % len(SCHEDULES)]):
        found = both(lambda: between(seed), tmp_path, **drawn)

    assert not found.gave_up


def many_pairs(*, user: bool) -> Program:
    with Program("pairs", mode="timing") as made:
        numbers = Metadata(np.arange(300))()
        Consumer()(Zip()(numbers, numbers))
        if user:
            sink("end", source("begin", 3))
    return made


@pytest.mark.parametrize("user", [False, True])
def test_run_with_a_table_that_grows_begins_again(user: bool, tmp_path: Path) -> None:
    with mock.patch.object(arrays, "_FIRST_LOOK", 512):
        found = both(lambda: many_pairs(user=user), tmp_path)

    assert found.gave_up
