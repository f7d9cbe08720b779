"""The host's time by kind of operator, for the HBM, and for the rest."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

from fabric import Hardware, simulate
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.operator import Node
from fabric.timing.engine.unit import Unit
from fabric.timing.machine.runner import Runner
from fabric.timing.memories.flat import FlatMemory
from tests.benchmarks.points import Point


class _Clock:
    """Seconds and steps by activity of the host; nested activities are counted once."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.steps: Counter[str] = Counter()
        self.inside = 0.0

    def count(self, kind: str, seconds: float) -> None:
        self.seconds[kind] += seconds
        self.steps[kind] += 1


class _Timed:
    def __init__(self, coroutine: Coroutine[Any, Any, None], kind: str, clock: _Clock) -> None:
        self._coroutine = coroutine
        self._kind = kind
        self._clock = clock

    def __await__(self) -> Generator[Any, Any, None]:
        step = self._coroutine.send
        value: Any = None
        while True:
            self._clock.inside = 0.0
            start = time.perf_counter()
            try:
                yielded = step(value)
            except StopIteration:
                return
            finally:
                spent = time.perf_counter() - start
                self._clock.count(self._kind, spent - self._clock.inside)
            try:
                value = yield yielded
                step = self._coroutine.send
            except BaseException as error:  # noqa: BLE001 - cancellation goes through
                value = error
                step = self._coroutine.throw


class _TimedMachine:
    """Puts a clock into every machine that is made inside its context."""

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._operate = Runner.operate
        self._advance = FlatMemory.advance

    def __enter__(self) -> None:
        clock, operate, advance = self._clock, self._operate, self._advance

        async def timed_operate(runner: Runner, node: Node) -> None:
            kind = type(node.operator).__name__
            inner = getattr(node.operator, "function", getattr(node.operator, "reduction", None))
            if inner is not None:
                kind += f"({type(inner).__name__})"
            await _Timed(operate(runner, node), kind, clock)

        def timed_advance(memory: FlatMemory, horizon_cycle: int) -> list[Unit]:
            start = time.perf_counter()
            done = advance(memory, horizon_cycle)
            spent = time.perf_counter() - start
            clock.inside += spent
            clock.count("HBM", spent)
            return done

        patched: Any = Runner, FlatMemory
        patched[0].operate, patched[1].advance = timed_operate, timed_advance

    def __exit__(self, *_: object) -> None:
        patched: Any = Runner, FlatMemory
        patched[0].operate, patched[1].advance = self._operate, self._advance


def profile(point: Point, root: Path) -> str:
    clock = _Clock()
    hardware = load_hardware(str(root / "programs/hardware" / point.hardware))
    assert isinstance(hardware, Hardware)
    loaded = load_program(root / "programs" / point.program, point.parameters, hardware)
    with _TimedMachine(clock):
        report = simulate(loaded.program)
    wall = report.wall_seconds
    assert wall is not None
    rest = wall - sum(clock.seconds.values())
    rows = [
        *sorted(clock.seconds.items(), key=lambda pair: -pair[1]),
        ("trio, and measuring", rest),
    ]
    table = [f"\n{point.label}: {wall:.2f} s, profiled", "| | seconds | share | steps |"]
    table.append("|---|---:|---:|---:|")
    table += [
        f"| {kind} | {seconds:.3f} | {seconds / wall:.1%} | {clock.steps[kind] or '':,} |"
        if clock.steps[kind]
        else f"| {kind} | {seconds:.3f} | {seconds / wall:.1%} | |"
        for kind, seconds in rows
    ]
    return "\n".join(table)
