"""Bufferize: collect the inner dimensions of a stream in on-chip buffers.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import (
    ARTIFACT_BYTES,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    TileType,
)
from fabric.extend import (
    Allocation,
    BufferReference,
    BufferType,
    Costs,
    Element,
    Empty,
    Operator,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    is_ragged,
    product,
)
from operators.streams.lockstep import Lockstep
from operators.streams.orders import Orders, Types

__all__ = ["Bufferize"]


@dataclass(frozen=True)
class Bufferize(Operator):
    """Collect the innermost ``rank`` dimensions of a stream of tiles into buffers.

    Shapes:
        source: [D_a, ..., D_rank, ..., D_0] of tiles; output: [D_a, ..., D_rank] of buffers
        [D_rank-1, ..., D_0]. Of the buffered dimensions only the outermost may be ragged.

    Timing:
        One cycle per element, except the last of a buffer.

    Memory:
        On chip, the tiles of a buffer from their arrival until its last reader is done. Where the
        hardware spills, a tile that finds no room is written to off-chip memory.

    Attributes:
        rank: how many dimensions a buffer has, at least 1.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))()
        ...     buffers = Bufferize(rank=2)(rows)
        ...     LinearOffChipStore("y")(Streamify()(buffers))
        >>> print(rows.type)
        [1, 4, 1] of 2x64 bfloat16
        >>> print(buffers.type)
        [1] of buffer [4, 1] of 2x64 bfloat16
        >>> print(simulate(program).cycles)
        182

    Family:
        On-chip memory (Table 4).
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    spills: ClassVar = "write"

    rank: int = 1

    def __call__(self, source: Stream) -> Stream:
        """Return the stream of buffers."""
        (buffers,) = self.wire(source)
        return buffers

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
        if not isinstance(source.value, TileType):
            raise ShapeError(f"Bufferize collects {source}: expected a stream of tiles")
        if not 1 <= self.rank <= source.rank:
            raise ShapeError(
                f"Bufferize collects rank {self.rank} of {source}: "
                f"expected 1 <= rank <= {source.rank}"
            )
        shape = source.shape[-self.rank :]
        if any(map(is_ragged, shape[1:])):
            raise ShapeError(
                f"Bufferize collects rank {self.rank} of {source}: "
                "expected at most the outermost buffered dimension to be ragged"
            )
        return (StreamType(source.shape[: -self.rank], BufferType(shape, source.value)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        buffer = outputs[0].value
        assert isinstance(buffer, BufferType)
        tiles = 1 + 2 * product(buffer.shape)
        return Costs(
            on_chip_bytes=tiles * buffer.tile.size_bytes,
            artifact_on_chip_bytes=tiles * buffer.tile.size_elements * ARTIFACT_BYTES,
        )

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        (source,), (buffers,) = inputs, outputs
        group = product(source.shape[-self.rank :])
        return Work(
            cycles=source.count - buffers.count,
            first_cycles=group - 1,
            gathers=group,
            in_memory=rates.in_memory[0],
        )

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        return inputs

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit, rank = ports.sink, ports.unit, self.rank
        elements: list[Element] = []
        size_bytes = 0
        spilled: dict[int, int] = {}
        source = Lockstep[Tile | Empty](ports, sink, adds=-rank)
        async for (tile,), stop in source:
            occupied_cycles = 0
            if isinstance(tile, Empty):
                source.take()
                _close(elements, tile, min(stop, rank))
            else:
                if await ports.on_chip.allocate(
                    unit, tile.size_bytes, "a buffer", held_bytes=size_bytes, spills=True
                ):
                    size_bytes += tile.size_bytes
                else:
                    spilled[len(elements)] = await ports.spill(tile)
                source.take()
                elements.append((tile, min(stop, rank)))
                occupied_cycles = 1
            if stop >= rank:
                allocation = Allocation(ports.on_chip, unit, size_bytes, spilled)
                await sink.send((BufferReference(elements, rank, allocation), stop - rank))
                elements, size_bytes, spilled = [], 0, {}
            else:
                unit.charge(occupied_cycles)


def _close(elements: list[Element], empty: Empty, level: int) -> None:
    """Add a bare stop; where it only closes what is not empty, the last element does that."""
    value: Value = empty
    if elements and elements[-1][1] == empty.dimension:
        value, _ = elements.pop()
    elements.append((value, level))
