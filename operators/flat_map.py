"""FlatMap: every element becomes a stream, and the streams are concatenated.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import BareStop, Costs, Operator, Ports, Stream, StreamType, Wiring
from operators.functions.base import tile_types
from operators.functions.split import Split

__all__ = ["FlatMap"]


@dataclass(frozen=True)
class FlatMap(Operator):
    """Replace every element by the parts that ``split`` makes of it.

    Shapes:
        source: [D_a, ..., D_1, D_0] of tiles; output: [D_a, ..., D_1, D'], the parts of a whole
        innermost group in one dimension.

    Timing:
        No cycles.

    Attributes:
        split: from a tile to its parts.
    """

    split: Split

    def __call__(self, source: Stream) -> Stream:
        """Return the stream of parts."""
        (result,) = self.wire(source)
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
        (tile,) = tile_types(f"FlatMap({type(self.split).__name__})", (source.value,), 1)
        count, part = self.split.infer(wiring, source.shape[-1], tile)
        return (StreamType((*source.shape[:-1], count), part),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        while (element := await source.receive()) is not None:
            value, stop = element
            if isinstance(value, BareStop):
                await sink.send_bare(stop, value.empty_dimension)
                continue
            parts = self.split.apply(value)
            for part in parts[:-1]:
                await sink.send((part, 0))
            if parts:
                await sink.send((parts[-1], stop))
            elif stop:
                await sink.send_bare(stop, 0)
