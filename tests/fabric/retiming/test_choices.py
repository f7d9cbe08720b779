"""What units do by what comes first is noticed, whichever way they find out."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Program, Stream, StreamType
from fabric.explore.sizing.running import recorded
from fabric.extend import BoolType, Ports, Wiring
from operators import EagerMerge
from tests.bases import Costless
from tests.deadlock.parts import sink, source


@dataclass(frozen=True)
class Late(Costless):
    """Passes on what comes, and waits for a cycle before it looks."""

    def __call__(self, stream: Stream) -> Stream:
        """Return the stream."""
        return self.wire(stream)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType(inputs[0].shape, BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        await ports.clock.reach(ports.unit, 5)
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


def test_a_cycle_is_waited_for() -> None:
    """Who waits for a cycle may do what depends on it."""
    with Program("late") as program:
        sink("end", Late(name="late")(source("two", 2)))
    record = recorded(program, {}).record
    assert record.choosers == ("late",)
    assert not record.orders_are_fixed


def test_a_merge() -> None:
    """Also where there is always something in each of its inputs."""
    with Program("merge") as program:
        data, order = EagerMerge(name="merge")([source("one", 3), source("two", 3)])
        sink("data", data)
        sink("order", order)
    assert recorded(program, {}).record.choosers == ("merge",)


def test_none() -> None:
    """A line has no choice."""
    with Program("line") as program:
        sink("end", source("two", 2))
    assert recorded(program, {}).record.determinate
