"""Flatten: several neighbouring dimensions become one.

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
    product,
)
from operators.streams.orders import Orders, Types

__all__ = ["Flatten"]


@dataclass(frozen=True)
class Flatten(Operator):
    """Merge dimensions ``inner`` to ``outer``, counted from the innermost.

    Shapes:
        source: [..., D_outer, ..., D_inner, ...]; output: [..., D_outer * ... * D_inner, ...], a
        new ragged dimension where one of them is ragged.

    Timing:
        No cycles.

    Memory:
        None.

    Attributes:
        inner, outer: the dimensions, 0 <= inner < outer <= rank.

    Example:
        >>> with Program("example") as program:
        ...     tiles = LinearOffChipLoad(np.ones((8, 256)), tile=(4, 64))()
        ...     flat = Flatten(0, 1)(tiles)
        ...     LinearOffChipStore("y")(flat)
        >>> print(tiles.type)
        [1, 2, 4] of 4x64 bfloat16
        >>> print(flat.type)
        [1, 8] of 4x64 bfloat16
        >>> print(simulate(program).cycles)
        239

    Family:
        Shape (Table 7).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True

    inner: int
    outer: int

    def __call__(self, source: Stream) -> Stream:
        """Return the flattened stream."""
        (result,) = self.wire(source)
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
        if not 0 <= self.inner < self.outer <= source.rank:
            raise ShapeError(
                f"Flatten merges dimensions {self.inner} to {self.outer} of {source}: "
                f"expected 0 <= inner < outer <= {source.rank}"
            )
        first, last = source.rank - self.outer, source.rank - self.inner
        merged = source.shape[first : last + 1]
        dim = wiring.absorb(product(merged), ragged=self.outer < source.rank)
        shape = (*source.shape[:first], dim, *source.shape[last + 1 :])
        return (StreamType(shape, source.value),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(artifact_fifo_bytes=2 * artifact_bytes(outputs[0].value))

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work(passes=True, in_memory=rates.in_memory[0])

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        return inputs

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        while (element := await source.receive()) is not None:
            value, stop = element
            level = self._merged(stop)
            if not isinstance(value, Empty):
                await sink.send(element if level == stop else (value, level))
            elif level > (dimension := self._merged(value.dimension)):
                await sink.send_bare(level, dimension)
            ports.turn()

    def _merged(self, number: int) -> int:
        """Return the level of a stop, or the number of a dimension, when dimensions are merged."""
        inner, outer = self.inner, self.outer
        return number - (outer - inner) if number > outer else min(number, inner)
