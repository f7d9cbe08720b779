"""Operators on pieces, as the paper's hardware has them: each fires at most once a cycle.

A unit takes its inputs and gives its outputs in one cycle, in which all of them are ready.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from typing_extensions import override

from fabric import (
    Costs,
    Dim,
    OffChipTensor,
    Operator,
    Ports,
    Stream,
    StreamType,
    Tile,
    TileType,
    Wiring,
    row_bytes,
)
from operators.tiles.row_major import positions

__all__ = [
    "AccumPieces",
    "BigTile",
    "BroadcastPieces",
    "LoadPieces",
    "MapPieces",
    "Pieces",
    "RepeatPieces",
    "StorePieces",
]

@dataclass(frozen=True)
class Pieces(Operator):
    """An operator on pieces whose outputs have the shapes and the type it is given.

    Attributes:
        shapes: of the outputs.
        piece: what is in them.
    """

    conducted: ClassVar[bool] = True

    shapes: tuple[tuple[Dim, ...], ...]
    piece: TileType

    def __call__(self, *streams: Stream) -> tuple[Stream, ...]:
        """Return the outputs."""
        return self.wire(*streams)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return tuple(StreamType(shape, self.piece) for shape in self.shapes)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    def tile(self) -> Tile:
        """Return a piece without data."""
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        assert isinstance(cols, int)
        return Tile(rows, cols, self.piece.dtype)


@dataclass(frozen=True)
class LoadPieces(Pieces):
    """Reads a tensor piece by piece; a stop closes the dimensions that end with its piece.

    Attributes:
        tensor: what is read.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    tensor: object

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (pieces,) = outputs
        return Costs(load_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        (pieces,) = outputs
        count = pieces.count
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        return OffChipTensor((count, rows * cols), self.piece.dtype, source=self)

    @override
    async def run(self, ports: Ports) -> None:
        (shape,) = self.shapes
        sizes = tuple(int(str(size)) for size in shape)
        tile, unit, sink = self.tile(), ports.unit, ports.sink
        size = tile.rows * row_bytes(tile.cols, tile.dtype)
        ports.announce(1, size, range(0, math.prod(sizes) * size, size))
        address = 0
        for _, stop, _ in positions(sizes):
            await sink.reserve()
            await ports.burst(1, size, address)
            sink.put((tile, min(stop, len(sizes) - 1)))
            unit.charge(1)
            address += size


@dataclass(frozen=True)
class StorePieces(Pieces):
    """Writes pieces; takes the next one when those before have been handed over.

    Attributes:
        output: its name.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "write"

    output: str

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (pieces,) = inputs
        return Costs(store_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        (pieces,) = inputs
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        return OffChipTensor((pieces.count, rows * cols), self.piece.dtype, output=self.output)

    @override
    async def run(self, ports: Ports) -> None:
        unit, address = ports.unit, 0
        top = len(ports.input_types[0].shape) - 1
        while (element := await ports.source.receive()) is not None:
            tile, stop = element
            assert isinstance(tile, Tile)
            size = tile.rows * row_bytes(tile.cols, tile.dtype)
            if stop >= top:
                unit.off_chip_bytes += size  # the run ends when the last piece has been taken
                continue
            unit.charge(1)
            await ports.burst(1, size, address)
            address += size


@dataclass(frozen=True)
class MapPieces(Pieces):
    """Takes a piece of every input and gives one, with the stop of the first.

    Attributes:
        flops: of one piece.
        promoted: stops from this level on become one more; None for none.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "compute"

    flops: int = 0
    promoted: int | None = None

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, tile = ports.unit, ports.sink, self.tile()
        while (first := await ports.source.peek()) is not None:
            for source in ports.inputs[1:]:
                await source.peek()
            await sink.reserve()
            for source in ports.inputs:
                source.take()
            stop = first[1]
            more = self.promoted is not None and stop >= self.promoted
            sink.put((tile, stop + more))
            unit.flops += self.flops
            unit.charge(1)


@dataclass(frozen=True)
class BroadcastPieces(Pieces):
    """Gives each piece to all outputs, in one cycle."""

    conducted: ClassVar[bool] = True

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.peek()) is not None:
            for sink in ports.outputs:
                await sink.reserve()
            ports.source.take()
            for sink in ports.outputs:
                sink.put(element)
            ports.unit.charge(1)


@dataclass(frozen=True)
class AccumPieces(Pieces):
    """Sums the innermost dimension; waits for room only with the last piece of a group.

    Attributes:
        flops: of one piece.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "compute"

    flops: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, tile = ports.unit, ports.sink, self.tile()
        while (element := await ports.source.peek()) is not None:
            stop = element[1]
            if stop:
                await sink.reserve()
                sink.put((tile, stop - 1))
            ports.source.take()
            unit.flops += self.flops
            unit.charge(1)


@dataclass(frozen=True)
class RepeatPieces(Pieces):
    """Gives each token so many times, and takes a cycle more to drop it.

    Attributes:
        times: at least 1.
    """

    conducted: ClassVar[bool] = True

    times: int = 1

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink = ports.unit, ports.sink
        while (element := await ports.source.peek()) is not None:
            for left in range(self.times, 0, -1):
                await sink.send((self.tile(), 0 if left > 1 else element[1] + 1))
                unit.charge(1)
            ports.source.take()
            unit.charge(1)


@dataclass(frozen=True)
class BigTile(Pieces):
    """Sums tiles of pieces: fills, accumulates, drains; partial sums go round a buffer.

    Attributes:
        flops: of one piece.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "compute"

    flops: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        data, partial = ports.inputs
        around = ports.outputs[0]
        unit, fills = ports.unit, True
        while (element := await data.peek()) is not None:
            if not fills:
                await partial.peek()
            await around.reserve()
            data.take()
            if not fills:
                partial.take()
                unit.flops += self.flops
            stop = element[1]
            around.put((self.tile(), stop))
            unit.charge(1)
            if stop == 2:
                fills = False
            elif stop > 2:
                await self._drain(ports, stop - 1)
                fills = True

    async def _drain(self, ports: Ports, last_stop: int) -> None:
        partial = ports.inputs[1]
        target = ports.outputs[1]
        while True:
            held = await partial.peek()
            assert held is not None
            await target.reserve()
            partial.take()
            last = held[1] > 2
            target.put((self.tile(), last_stop if last else held[1]))
            ports.unit.charge(1)
            if last:
                return
