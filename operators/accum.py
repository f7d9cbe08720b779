"""Accum: fold the inner dimensions of a stream into one value per group.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Dim, Stream, StreamType
from fabric.extend import (
    Empty,
    Ports,
    Value,
    Wiring,
    is_ragged,
    product,
    without_ragged,
)
from operators.streams.accumulator import Accumulating, Accumulator
from operators.streams.lockstep import Lockstep
from operators.streams.orders import Orders, Types

__all__ = ["Accum"]


@dataclass(frozen=True)
class Accum(Accumulating):
    """Fold the innermost ``rank`` dimensions of one stream, or of several with the same shape.

    Shapes:
        inputs: [D_a, ..., D_rank, ..., D_0], the items of tuples being operands of their own;
        output: [D_a, ..., D_rank]. An empty group gives the initial value.

    Timing:
        Per element, the longer of loading and computing. With ``to_memory``, the last element of a
        group also counts storing the accumulator as it starts. Inputs are released before the
        output waits for a slot.

    Memory:
        On chip, one accumulator, from the first element of a group until the result is sent.

    Attributes:
        reduction: the function that accumulates.
        rank: how many dimensions are folded, at least 1.
        to_memory: whether the output is written to a memory unit, from which its readers load it.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     total = Accum(Sum(), rank=2)(rows)
        ...     LinearOffChipStore("y")(total)
        >>> program.expect(y=lambda: x.sum(axis=0, keepdims=True))
        >>> print(rows.type)
        [1, 4, 1] of 1x4 bfloat16
        >>> print(total.type)
        [1] of 1x4 bfloat16
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
        shape = inputs[0].shape
        group = product(shape[-self.rank :])
        result = self.reduction.infer(group, *operands)
        if is_ragged(group) and any(without_ragged(each) != each for each in operands):
            # A tile counted once for every element until here, and counts once for a group now.
            result = wiring.renewed_value(result)
        return (StreamType(shape[: -self.rank], result),)

    @override
    def elements_before(self, source: StreamType) -> Dim:
        return product(source.shape[-self.rank :])

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        source = inputs[0]
        if isinstance(source, str):
            return (source,)
        group = product(types[0].shape[-self.rank :])
        found = source.cut(group) if isinstance(group, int) else None
        if found is None:
            return ("data decide how large its groups are",)
        return (self.reduction.layout(source, *found),)

    @override
    async def run(self, ports: Ports) -> None:
        rank, sink = self.rank, ports.sink
        accumulator = Accumulator(ports, self)
        inputs = Lockstep[Value](ports, sink, adds=-rank)
        async for values, stop in inputs:
            if not isinstance(values[0], Empty):
                await accumulator.update(values, stored=stop >= rank)
            inputs.take()
            if stop >= rank:
                await sink.send((accumulator.value(), stop - rank))
                accumulator.restart()
            ports.turn(accumulator.memory)
