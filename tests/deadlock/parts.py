"""An operator that follows a script: enough to build every kind of network of blocking reads.

A script is a list of steps: ``r0`` receives from input 0, ``s1`` sends to output 1, ``c3`` works
for 3 cycles, ``steer`` sends an element from input 0 to the output a selector from input 1 names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from fabric import Dim, Feedback, Stream, StreamType
from fabric.extend import BoolType, Operator, Ports, Wiring
from tests.bases import Source


@dataclass(frozen=True)
class Script(Operator):
    steps: tuple[str, ...]
    once: tuple[str, ...] = ()
    rounds: int | None = None
    counts: tuple[Dim, ...] = (1,)

    def __call__(self, *inputs: Stream) -> tuple[Stream, ...]:
        return self.wire(*inputs)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return tuple(StreamType((count,), BoolType()) for count in self.counts)

    @override
    async def run(self, ports: Ports) -> None:
        done = 0
        for step in self.once:
            if not await _step(ports, step):
                return
        while self.rounds is None or done < self.rounds:
            for step in self.steps:
                if not await _step(ports, step):
                    return
            done += 1


async def _step(ports: Ports, step: str) -> bool:
    if step == "steer":
        choice: Any = await ports.inputs[1].receive()
        if choice is None or await ports.inputs[0].receive() is None:
            return False
        await ports.outputs[choice[0].hits[0]].send((True, 0))
        return True
    number = int(step[1:])
    match step[0]:
        case "r":
            return await ports.inputs[number].receive() is not None
        case "s":
            await ports.outputs[number].send((True, 0))
        case "c":
            ports.unit.charge(number)
    return True


@dataclass(frozen=True)
class Rows(Source):
    """Elements with the given stops (0 for none), even if they contradict the shape [2, 2, 2]."""

    conducted = True
    stops: tuple[int, ...]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((2, 2, 2), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for stop in self.stops:
            await ports.sink.send((True, stop))
            ports.unit.charge(1)


@dataclass(frozen=True)
class Leak(Operator):
    """A relay that reserves one slot and forgets it before every element it passes on."""

    def __call__(self, stream: Stream) -> Stream:
        return self.wire(stream)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,)

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.reserve()
            await ports.sink.send(element)


def source(name: str, count: int) -> Stream:
    """Return ``count`` elements, one a cycle."""
    return Script(("s0", "c1"), rounds=count, counts=(count,), name=name)()[0]


def relay(name: str, stream: Stream) -> Stream:
    return Script(("r0", "s0", "c1"), counts=stream.shape, name=name)(stream)[0]


def gather(name: str, stream: Stream, size: int) -> Stream:
    steps = ("r0",) * size + ("s0", "c1")
    (count,) = stream.shape
    return Script(steps, counts=(count // size,), name=name)(stream)[0]


def sink(name: str, stream: Stream) -> None:
    Script(("r0", "c1"), counts=(), name=name)(stream)


def feedback(count: Dim) -> Feedback:
    """Promise a stream of ``count`` elements."""
    return Feedback(StreamType((count,), BoolType()))
