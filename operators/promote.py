"""Promote: a new dimension of 1.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType
from fabric.extend import (
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    artifact_bytes,
    at_least_one,
)
from operators.streams.orders import Orders, Types
from operators.streams.values import send

__all__ = ["Promote"]


@dataclass(frozen=True)
class Promote(Operator):
    """Add a dimension of 1, by default outermost.

    Shapes:
        source: [D_a, ..., D_0]; output: [1, D_a, ..., D_0], or [0, D_a, ..., D_0] where the
        stream is empty; with ``dimension`` [..., 1, D_dimension-1, ..., D_0].

    Timing:
        No cycles. If the new dimension is outermost, the last element of each outermost sub-tensor
        waits for the next element or the end, because its stop depends on that.

    Memory:
        None.

    Attributes:
        dimension: how many dimensions stay inside the new one; with None all of them.

    Example:
        >>> with Program("example") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))())
        ...     column = Promote(0)(rows)
        ...     LinearOffChipStore("y")(column)
        >>> print(rows.type)
        [4] of 1x64 bfloat16
        >>> print(column.type)
        [4, 1] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        106

    Family:
        Shape (Table 7).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True

    dimension: int | None = None

    def __call__(self, source: Stream) -> Stream:
        """Return the promoted stream."""
        (result,) = self.wire(source)
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
        inside = len(source.shape) if self.dimension is None else self.dimension
        if not 0 <= inside <= len(source.shape):
            raise ShapeError(
                f"Promote puts a dimension outside of {inside} of {source}: "
                f"expected 0 to {len(source.shape)}"
            )
        axis = len(source.shape) - inside
        added = 1 if axis else at_least_one(source.shape[0])
        shape = (*source.shape[:axis], added, *source.shape[axis:])
        return (StreamType(shape, source.value),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(artifact_fifo_bytes=2 * artifact_bytes(outputs[0].value))

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        # In one dimension each element may be the last: whether another comes has to be seen.
        (source,) = inputs
        is_new_outermost = len(source.shape) == 1 and self.dimension in (None, 1)
        return Work(passes=True, in_memory=rates.in_memory[0], holds=is_new_outermost)

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        return inputs

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        dimensions = len(ports.input_types[0].shape)
        inside = dimensions if self.dimension is None else self.dimension
        outermost = inside == dimensions
        while (element := await source.receive()) is not None:
            value, stop = element
            if stop >= inside:
                stop += 1
            elif outermost and stop == inside - 1 and await source.peek() is None:
                stop = inside
            if isinstance(value, Empty) and value.dimension >= inside:
                value = Empty(value.dimension + 1)
            await send(sink, value, stop)
            ports.turn()
