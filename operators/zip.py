"""Zip: several streams of one shape become one stream of tuples.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType, TupleType
from fabric.extend import Operator, Ports, Rates, Value, Wiring, Work
from operators.streams.reading import Lockstep, Types, check_inputs

MOST_VALUES: Final = 256
"""The most values in an element, including the values of nested tuples."""


@dataclass(frozen=True)
class Zip(Operator):
    """Put the elements of several streams into tuples.

    Shapes:
        inputs: two or more streams [D_a, ..., D_0]; output: the same shape. An element has at
        most 256 values, including the values of nested tuples.

    Example:
        >>> with Program("example") as program:
        ...     a = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     b = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     pairs = Zip()(a, b)
        ...     LinearOffChipStore("y")(Map(Add())(pairs))
        >>> print(pairs.type)
        [1, 4, 1] of (1x64 bfloat16, 1x64 bfloat16)
        >>> print(simulate(program).cycles)
        110
    """

    family = "Shape (Table 7)"
    conducted = turns = keeps_order = True

    def __call__(self, *inputs: Stream) -> Stream:
        return self.wire(*inputs)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        if len(inputs) < 2:
            found = ", ".join(map(str, inputs)) or "nothing"
            raise ShapeError(f"Zip is given {found}: expected two streams or more")
        check_inputs("Zip", inputs)
        value = TupleType(tuple(stream.value for stream in inputs))
        if value.count > MOST_VALUES:
            raise ShapeError(
                f"Zip makes tuples of {value.count:,} values, including values of nested tuples: "
                f"expected at most {MOST_VALUES}"
            )
        return (StreamType(inputs[0].shape, value),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(passes=True)

    @override
    async def run(self, ports: Ports) -> None:
        sink = ports.sink
        inputs = Lockstep[Value](ports, sink, unpack=False)
        async for values, stop in inputs:
            inputs.take()
            await sink.send((tuple(values), stop))
            ports.turn()
