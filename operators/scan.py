"""Scan: the state of an accumulator at every element.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Dim, Stream, StreamType
from fabric.extend import Empty, Ports, Value, ValueType, Wiring
from operators.streams.accumulator import Accumulating, Accumulator
from operators.streams.lockstep import Lockstep
from operators.streams.values import send

__all__ = ["Scan"]


@dataclass(frozen=True)
class Scan(Accumulating):
    """Replace every element by what has been accumulated so far, including the element.

    Shapes:
        inputs: [D_a, ..., D_0], the items of tuples being operands of their own; output: the same.
        The accumulator restarts after each group of the innermost ``rank`` dimensions.

    Timing:
        As Accum; with ``to_memory``, every element is stored.

    Memory:
        On chip, one accumulator, from the first element of a group until the last is sent.

    Attributes:
        reduction: the function that accumulates.
        rank: how many dimensions form a group, at least 1.
        to_memory: whether the output is written to a memory unit, from which its readers load it.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     LinearOffChipStore("y")(Scan(Sum(), rank=2)(rows))
        >>> program.expect(y=lambda: x.cumsum(axis=0))
        >>> print(simulate(program).verified)
        True

    Family:
        Higher-order (Table 5).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        operands = self.operand_types(inputs)
        return (StreamType(inputs[0].shape, self._value(wiring, operands)),)

    def _value(self, wiring: Wiring, operands: tuple[ValueType, ...]) -> ValueType:
        """Return the type of the accumulator, whose size may change from element to element."""
        value = self.reduction.infer(1, *operands)
        if value == self.reduction.infer(2, *operands):
            return value
        seen = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
        return self.reduction.infer(seen, *operands)

    @override
    def elements_before(self, source: StreamType) -> Dim:
        return 1

    @override
    async def run(self, ports: Ports) -> None:
        rank, sink = self.rank, ports.sink
        accumulator = Accumulator(ports, self)
        inputs = Lockstep[Value](ports)
        async for values, stop in inputs:
            value = values[0]
            if not isinstance(value, Empty):
                await accumulator.update(values, stored=True)
                value = accumulator.value()
            inputs.take()
            await send(sink, value, stop)
            if stop >= rank:
                accumulator.restart()
            ports.turn(accumulator.memory)
