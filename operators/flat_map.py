"""FlatMap: every element becomes a stream, and the streams are concatenated.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Costs, Empty, Operator, Ports, Stream, StreamType, Wiring
from operators.functions.base import tile_types
from operators.functions.split import Split

__all__ = ["FlatMap"]


@dataclass(frozen=True)
class FlatMap(Operator):
    """Replace every element by the parts that ``split`` makes of it.

    Shapes:
        source: [D_a, ..., D_1, D_0] of tiles; output: [D_a, ..., D_1, D'_b, ..., D'_0] for a
        split of rank b, the parts of a whole innermost group in dimension b.

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
        shape, part = self.split.infer(wiring, source.shape[-1], tile)
        return (StreamType((*source.shape[:-1], *shape), part),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        source, sink, rank = ports.source, ports.sink, self.split.rank
        apply = ports.parts_of(self.split)
        while (element := await source.receive()) is not None:
            value, stop = element
            if isinstance(value, Empty):
                await sink.send_bare(stop + rank, value.dimension + rank)
                continue
            parts = apply(value)
            last = len(parts) - 1
            for number, (part, level) in enumerate(parts):
                closes = level + stop if number == last else level
                if isinstance(part, Empty):
                    await sink.send_bare(closes, part.dimension)
                else:
                    await sink.send((part, closes))
            if stop and not parts:
                await sink.send_bare(stop + rank, rank)
