"""Operators for tests of cycles, not of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from fabric import Stream, StreamType
from fabric.extend import BoolType, Operator, Ports, Value, Wiring
from tests.bases import Passing, Sink, Source


@dataclass(frozen=True)
class Stage(Operator):
    """For each of ``count`` elements: receive from every input, send to every output, and work.

    Attributes:
        work_cycles: cycles of each element, used in turn; before sending if ``works_first``.
        works_first: whether to work between receiving and sending.
        peeks: whether to look at every element before taking it.
        clocks: list to which the unit's clock after every operation is appended.
    """

    count: int
    outputs: int = 1
    work_cycles: Sequence[int] = (1,)
    works_first: bool = False
    peeks: bool = False
    clocks: list[int] = field(default_factory=list)

    def __call__(self, *inputs: Stream) -> tuple[Stream, ...]:
        return self.wire(*inputs)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.count,), BoolType()),) * self.outputs

    def value(self, port: int) -> Value:  # noqa: ARG002 - for who sends others
        return True

    @override
    async def run(self, ports: Ports) -> None:
        unit = ports.unit
        for number in range(self.count):
            work = self.work_cycles[number % len(self.work_cycles)]
            for source in ports.inputs:
                if self.peeks:
                    shown = await source.peek()
                    assert shown is not None
                    assert shown == source.take()
                else:
                    assert await source.receive() is not None
                self.clocks.append(unit.now)
            if self.works_first:
                unit.charge(work)
            for port, sink in enumerate(ports.outputs):
                await sink.send((self.value(port), 0))
                self.clocks.append(unit.now)
            if not self.works_first:
                unit.charge(work)
        for source in ports.inputs:
            assert await (source.peek() if self.peeks else source.receive()) is None
        self.clocks.append(unit.now)


@dataclass(frozen=True)
class Ticks(Source):
    count: int

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.count,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.unit
        for _ in ports.times(self.count):
            await sink.send((True, 0))
            unit.charge(1)


@dataclass(frozen=True)
class Relay(Passing):
    """Pass every element on and charge a cycle for it."""

    @override
    async def run(self, ports: Ports) -> None:
        source, sink, unit = ports.source, ports.sink, ports.unit
        while (element := await source.receive()) is not None:
            await sink.send(element)
            unit.charge(1)
            ports.turn()


@dataclass(frozen=True)
class Charge(Sink):
    @override
    async def run(self, ports: Ports) -> None:
        source, unit = ports.source, ports.unit
        while await source.receive() is not None:
            unit.charge(1)
            ports.turn()
