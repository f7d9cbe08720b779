"""A program for tests of the command line: numbers, added up; it can go wrong in every way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from fabric import Feedback, Program, Stream, StreamType, Tile, TileType
from fabric.extend import BoolType, Ports, Wiring
from tests.bases import Passing, Sink, Source

NUMBER = TileType(1, 1, np.dtype(np.uint64))

Fault = Literal["none", "wrong", "raises", "stuck", "endless"]


@dataclass(frozen=True)
class Count(Source):
    """Send 0 to ``stop`` - 1, one every ``period`` cycles."""

    stop: int
    period: int

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.stop,), NUMBER),)

    @override
    async def run(self, ports: Ports) -> None:
        for number in range(self.stop):
            ports.unit.charge(self.period)
            tile = Tile(1, 1, NUMBER.dtype, np.array([[number]], NUMBER.dtype))
            await ports.sink.send((tile, 0))


@dataclass(frozen=True)
class Total(Sink):
    """Store the sum of a stream."""

    fault: Fault

    @override
    async def run(self, ports: Ports) -> None:
        total = 0
        while (element := await ports.source.receive()) is not None:
            tile: Any = element[0]
            number = tile.data.item()
            if self.fault == "raises" and number == 2:
                raise ValueError("odd")
            total += number
        ports.stored["total"] = np.array(total)


@dataclass(frozen=True)
class Relay(Passing):
    """Send every element on."""

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


def build(stop: int = 3, period: int = 10, fault: Fault = "none") -> Program:
    """Return the program; with a ``fault`` it goes wrong in that way."""
    with Program("small") as program:
        if fault == "stuck":
            loop = Feedback(StreamType((1,), BoolType()))
            loop.connect(Relay()(loop))
        Total(fault)(Count(10**12 if fault == "endless" else stop, period)())
    wrong = fault == "wrong"
    program.expect(total=lambda: np.array(sum(range(stop)) + wrong))
    return program
