"""Broadcast: one stream for several readers, inferred where a stream is read more than once.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2; timing as the authors'
simulator: one hop more, and an element leaves when every output has a slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.engine.ports import Ports
from fabric.layouts.layout import Layout
from fabric.values.stream_type import StreamType, holds_buffers
from fabric.values.value import share
from fabric.wiring.costs import Costs
from fabric.wiring.operator import Operator, Wiring
from fabric.wiring.stream import Stream
from fabric.wiring.work import Rates, Work

__all__ = ["Broadcast"]


@dataclass(frozen=True)
class Broadcast(Operator):
    """Repeat a stream on ``readers`` outputs.

    Shapes:
        source and every output: [D_a, ..., D_0].

    Timing:
        No cycles. An element waits for a slot in each output, in order.

    Memory:
        None.

    Attributes:
        readers: how many outputs there are, at least 1.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     one, other = Broadcast(2)(rows)
        ...     LinearOffChipStore("y")(Map(Mul())(one, other))
        >>> print(one.type)
        [1, 4, 1] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        110
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True

    readers: Annotated[int, Bounds(1)]

    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        """Return the outputs."""
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,) * self.readers

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work(passes=True, in_memory=rates.in_memory[0])

    @override
    def layouts(
        self,
        inputs: tuple[Layout | str, ...],
        types: tuple[StreamType, ...],
        outputs: tuple[StreamType, ...],
    ) -> tuple[Layout | str, ...]:
        return inputs * len(outputs)

    @override
    async def run(self, ports: Ports) -> None:
        source, sinks = ports.source, ports.outputs
        buffers = holds_buffers(ports.input_types[0].value)
        while (element := await source.receive()) is not None:
            if buffers:
                share(element[0], len(sinks) - 1)
            for sink in sinks:
                await sink.reserve()
            for sink in sinks:
                sink.put(element)
            ports.turn()
