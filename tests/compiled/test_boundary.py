from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import trio

from fabric import Program, simulate
from fabric.messages.standard_error import Snapshot
from fabric.timing.compiled import arrays, region
from fabric.timing.machine import assembly
from fabric.timing.memories import registry
from fabric.timing.memories.flat import FlatMemory
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


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("name", ["swiglu", "top2_moe", "ragged_attention"])
def test_snapshots_change_nothing(name: str, order: str | int, tmp_path: Path) -> None:
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
                    # It ends early: the remaining elements are drained.
                    rounds = drawn.randint(1, 20)
                    streams += Script(("r0", "c2", "s0"), rounds=rounds)(stream)
                case _:
                    streams.append(Flatten(0, 1)(Promote(0)(stream)))
        for number, stream in enumerate(streams):
            sink(f"e{number}", stream)
    return made


@pytest.mark.parametrize("seed", spread(range(30), 4))
def test_streams_cross_the_region_under_any_schedule(seed: int, tmp_path: Path) -> None:
    drawn = hopped(lambda: between(seed), random.Random(seed))
    with schedule(SCHEDULES[seed % len(SCHEDULES)]):
        found = both(lambda: between(seed), tmp_path, **drawn)

    assert not found.gave_up


@contextmanager
def other_memory() -> Iterator[list[Any]]:
    bursts: list[Any] = []

    class Own(FlatMemory):
        def submit(self, unit: Any, burst: Any) -> None:
            bursts.append((unit.name, burst))
            super().submit(unit, burst)

    native = registry.memory_of

    def made(description: Any, *arguments: Any, **named: Any) -> Any:
        memory = native(description, *arguments, **named)
        memory.__class__ = Own
        return memory

    with mock.patch.object(assembly, "memory_of", made):
        yield bursts


def test_subclass_of_a_memory_receives_addresses() -> None:
    found = []
    for engine in ("tasks", "compiled"):
        with other_memory() as bursts:
            simulate(program("top2_moe"), mode="timing", engine=engine)
        found.append(sorted(bursts))
    assert found[0]
    assert found[0] == found[1]


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
