"""A source of lists of integers of any length, such as the neighbours of a graph's vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from fabric import Costs, Operator, Ports, Stream, StreamType, Wiring
from operators import INTEGER, integer

__all__ = ["RaggedIntegers"]


@dataclass(frozen=True)
class RaggedIntegers(Operator):
    """Emit the numbers of ``lists``.

    Shapes:
        output: [1, len(lists), n] of 1x1 tiles, n ragged.

    Timing:
        One cycle an element.

    Attributes:
        lists: integers, none below 0; a list may be empty.
    """

    lists: Sequence[Sequence[int]]

    def __call__(self) -> Stream:
        """Return the stream of integers."""
        (result,) = self.wire()
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        length = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
        return (StreamType((1, len(self.lists), length), INTEGER),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.unit
        if not self.lists:
            await sink.send_bare(2, 1)
        for number, numbers in enumerate(self.lists):
            closing = 2 if number == len(self.lists) - 1 else 1
            if not numbers:
                await sink.send_bare(closing, 0)
            for place, each in enumerate(numbers):
                await sink.send((integer(each), closing if place == len(numbers) - 1 else 0))
                unit.charge(1)
