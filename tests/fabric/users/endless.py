"""Programs with operators that do not end; the parameter ``kind`` selects one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from typing_extensions import override

from fabric import Program, Stream, StreamType
from fabric.extend import BoolType, Ports, Wiring
from tests.bases import Source


@dataclass(frozen=True)
class Tick(Source):
    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((3,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(3):
            await ports.sink.send((True, 0))


@dataclass(frozen=True)
class Endless(Tick):
    how: str = ""

    @override
    def __call__(self, source: Stream) -> None:  # type: ignore[override]
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()

    @override
    async def run(self, ports: Ports) -> None:
        await ports.source.receive()
        await (SILENT | STUBBORN | LIVELOCKS)[self.how](ports)


async def _spin(_: Ports) -> None:
    while True:
        pass


async def _sleep(_: Ports) -> None:
    time.sleep(1_000)  # noqa: ASYNC251 - that is the mistake


async def _polite(_: Ports) -> None:
    while True:
        await trio.lowlevel.checkpoint()


async def _finally(_: Ports) -> None:
    try:
        raise ValueError("never seen")
    finally:
        while True:
            pass


async def _after_the_end(ports: Ports) -> None:
    try:
        while await ports.source.receive() is not None:
            pass
        await ports.starve(ports.source, 0, 0)
    finally:
        while True:
            pass


async def _peeks(ports: Ports) -> None:
    while True:
        await ports.source.peek()


async def _swallows(_: Ports) -> None:
    while True:
        with contextlib.suppress(BaseException):
            while True:
                pass


async def _charges(ports: Ports, cycles: int) -> None:
    while True:
        ports.unit.charge(cycles)


async def _reaches(ports: Ports, step: int) -> None:
    cycle = 7
    while True:
        await ports.clock.reach(ports.unit, cycle)
        cycle += step


Body = Callable[[Ports], Awaitable[Any]]
SILENT: dict[str, Body] = {
    "spin": _spin,
    "sleep": _sleep,
    "polite": _polite,
    "finally": _finally,
    "after the end": _after_the_end,
    "peeks": _peeks,
}

STUBBORN: dict[str, Body] = {"swallows": _swallows}

LIVELOCKS: dict[str, Body] = {
    "charges": partial(_charges, cycles=1),
    "charges nothing": partial(_charges, cycles=0),
    "reaches": partial(_reaches, step=1),
    "reaches one cycle": partial(_reaches, step=0),
}


def build(kind: str) -> Program:
    with Program("endless") as program:
        Endless(kind, name="wrong")(Tick()())
    return program
