"""One pipeline, three ways: on the fabric, with SimPy's Store, and with trio's memory channels.

Every stage forwards ``count`` elements. On the fabric and in SimPy it charges one cycle for each;
trio's channels have no cycles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import simpy
import trio

from fabric import Program, Report, simulate
from tests.fabric.scripted import Charge, Relay, Ticks


class _Ticks(Ticks):
    conducted = turns = True


class _Relay(Relay):
    conducted = turns = True


class _Charge(Charge):
    conducted = turns = True


def run_on_the_fabric(length: int, depth: int, count: int) -> Report:
    with Program("pipeline", channel_depth=depth) as program:
        stream = _Ticks(count)()
        for _ in range(length - 2):
            stream = _Relay()(stream)
        _Charge()(stream)
    return simulate(program)


def on_the_fabric(length: int, depth: int, count: int) -> float:
    start = time.process_time()
    report = run_on_the_fabric(length, depth, count)
    spent = time.process_time() - start
    assert report.cycles == count + length - 1 or depth == 1
    return spent


def on_simpy(length: int, depth: int, count: int) -> float:
    env = simpy.Environment()
    stores = [simpy.Store(env, depth) for _ in range(length - 1)]

    def first() -> Generator[Any, Any, None]:
        for number in range(count):
            yield stores[0].put(number)
            yield env.timeout(1)

    def middle(source: simpy.Store, sink: simpy.Store) -> Generator[Any, Any, None]:
        for _ in range(count):
            element = yield source.get()
            yield sink.put(element)
            yield env.timeout(1)

    def last() -> Generator[Any, Any, None]:
        for _ in range(count):
            yield stores[-1].get()
            yield env.timeout(1)

    env.process(first())
    for source, sink in pairwise(stores):
        env.process(middle(source, sink))
    env.process(last())
    return seconds(env.run)


def on_trio(length: int, depth: int, count: int) -> float:
    async def first(sink: trio.MemorySendChannel[int]) -> None:
        async with sink:
            for number in range(count):
                await sink.send(number)

    async def middle(
        source: trio.MemoryReceiveChannel[int], sink: trio.MemorySendChannel[int]
    ) -> None:
        async with source, sink:
            async for element in source:
                await sink.send(element)

    async def last(source: trio.MemoryReceiveChannel[int]) -> None:
        async for _ in source:
            pass

    async def main() -> None:
        pairs = [trio.open_memory_channel[int](depth) for _ in range(length - 1)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first, pairs[0][0])
            for (_, source), (sink, _) in pairwise(pairs):
                nursery.start_soon(middle, source, sink)
            nursery.start_soon(last, pairs[-1][1])

    return seconds(lambda: trio.run(main))


def seconds(run: Callable[[], object]) -> float:
    """Return the processor time of ``run``, which leaves out other processes of the machine."""
    start = time.process_time()
    run()
    return time.process_time() - start
