"""FlatMap: every element becomes a stream, and the streams are concatenated.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Stream, StreamType, Tile
from fabric.extend import Operator, Ports, Rates, Wiring, Work, product
from operators.functions.base import tile_types
from operators.functions.retile import Split
from operators.streams.reading import Orders, Types, Values, send, tile_of


@dataclass(frozen=True)
class FlatMap(Operator):
    """Replace every element by the parts into which ``split`` divides it.

    Shapes:
        source: [D_a, ..., D_1, D_0] of tiles; output: [D_a, ..., D_1, D'_b, ..., D'_0] for a
        split of rank b. D'_b counts the parts of all D_0 tiles of a group.

    Attributes:
        split: the function that splits a tile into its parts.

    Example:
        >>> with Program("example") as program:
        ...     tiles = LinearOffChipLoad(np.ones((8, 64)), tile=(4, 64))()
        ...     rows = FlatMap(SplitRows())(tiles)
        ...     LinearOffChipStore("y")(rows)
        >>> print(tiles.type)
        [1, 2, 1] of 4x64 bfloat16
        >>> print(rows.type)
        [1, 2, 4] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        191
    """

    family = "Higher-order (Table 5)"
    conducted = turns = True

    split: Split

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        (tile,) = tile_types(f"FlatMap({type(self.split).__name__})", (source.value,), 1)
        outer, count = source.shape[:-1], source.shape[-1]
        # If there are outer dimensions, each group has its own number of parts.
        inner = wiring._replace(is_inner=any(dim != 1 for dim in outer))
        shape, part = self.split.infer(inner, count, tile)
        parts = product(shape)
        if not isinstance(parts, int) and (count == 0 or not isinstance(parts / count, int)):
            # The mean over parts differs from the mean over tiles: the numbers of parts differ.
            return (StreamType((*outer, *shape), wiring.renewed_value(part)),)
        return (StreamType((*outer, *shape), part),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work | None:
        # If the last tile has no parts, the last part is sent before that tile arrives.
        if not rates.is_ours(self.split):
            return None
        tile = tile_of(inputs[0])
        sizes = tile.rows, tile.cols
        has_parts = self.split.leaves_parts and all(isinstance(n, int) and n for n in sizes)
        parts = outputs[0].count
        is_only_one = inputs[0].count == 1 and isinstance(parts, int) and parts > 0
        return Work(closing=None if has_parts or is_only_one else ())

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        (source,) = inputs
        return (source if isinstance(source, str) else self.split.layout(source),)

    @override
    async def run(self, ports: Ports) -> None:
        sink, rank = ports.sink, self.split.rank
        apply = ports.parts_of(self.split)
        async for tile, stop in Values[Tile](ports.source, sink, adds=rank):
            parts = apply(tile)
            last = len(parts) - 1
            for number, (part, level) in enumerate(parts):
                await send(sink, part, level + stop if number == last else level)
            if stop and not parts:
                await sink.send_bare(stop + rank, rank)
            ports.turn()
