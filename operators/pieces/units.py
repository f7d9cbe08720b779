"""Operators on pieces, as the paper's hardware has them: each fires at most once a cycle.

A unit takes its inputs and gives its outputs in one cycle, in which all of them are ready.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, Stream, StreamType, Tile, TileType
from fabric.extend import ComputeOperator, Costs, Operator, Ports, Wiring
from operators.functions.arithmetic import narrow
from operators.functions.base import Function
from operators.functions.matmul import summed

__all__ = [
    "AccumPieces",
    "BigTile",
    "BroadcastPieces",
    "ComputePieces",
    "MapPieces",
    "Pieces",
    "PromotePieces",
    "RepeatPieces",
]


@dataclass(frozen=True)
class Pieces(Operator):
    """An operator on pieces whose outputs have the shapes and the type it is given.

    Attributes:
        shapes: of the outputs.
        piece: what is in them.
    """

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

    def tile(self, data: np.ndarray | None = None) -> Tile:
        """Return a piece."""
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        assert isinstance(cols, int)
        return Tile(rows, cols, self.piece.dtype, data)


@dataclass(frozen=True)
class ComputePieces(Pieces, ComputeOperator):
    """An operator with arithmetic for one piece a cycle.

    Attributes:
        flops: of one piece.
    """

    flops: int = 0

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.flops > 0


@dataclass(frozen=True)
class MapPieces(ComputePieces):
    """Takes a piece of every input and gives one, with the stop of the first.

    Attributes:
        function: of the pieces.
        swapped: the first operand is the second input.
    """

    conducted: ClassVar[bool] = True

    function: Function | None = None
    swapped: bool = False

    @property
    @override
    def roundings(self) -> int:
        return 0 if self.function is None else self.function.roundings

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(flops=outputs[0].count * self.flops)

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, function = ports.compute_unit, ports.sink, self.function
        assert function is not None
        tile = self.tile()
        while (first := await ports.source.peek()) is not None:
            for source in ports.inputs[1:]:
                await source.peek()
            await sink.reserve()
            operands = [source.take()[0] for source in ports.inputs]
            if ports.functional:
                result = function.apply(*(reversed(operands) if self.swapped else operands))
                assert isinstance(result, Tile)
                tile = self.tile(result.data)
            sink.put((tile, first[1]))
            unit.compute(self.flops)
            unit.charge(1)


@dataclass(frozen=True)
class PromotePieces(Pieces):
    """Adds a dimension of size 1: higher stops become one more.

    Attributes:
        level: from which stops become one more.
    """

    conducted: ClassVar[bool] = True

    level: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink = ports.unit, ports.sink
        while (element := await ports.source.peek()) is not None:
            await sink.reserve()
            ports.source.take()
            value, stop = element
            sink.put((value, stop + (stop >= self.level)))
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
class AccumPieces(ComputePieces):
    """Sums the innermost dimension; waits for room only with the last piece of a group."""

    conducted: ClassVar[bool] = True

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, tile = ports.compute_unit, ports.sink, self.tile()
        total: np.ndarray | None = None
        while (element := await ports.source.peek()) is not None:
            value, stop = element
            if ports.functional:
                total = _sum(total, value)
                tile = self.tile(total)
            if stop:
                await sink.reserve()
                sink.put((tile, stop - 1))
                total = None
            ports.source.take()
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
            value, stop = element
            for left in range(self.times, 0, -1):
                await sink.send((value, 0 if left > 1 else stop + 1))
                unit.charge(1)
            ports.source.take()
            unit.charge(1)


@dataclass(frozen=True)
class BigTile(ComputePieces):
    """Sums tiles of pieces: fills, accumulates, drains; partial sums go round a buffer.

    Attributes:
        total: what the sums are, rounded from those that go round.
    """

    conducted: ClassVar[bool] = True

    total: TileType | None = None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        around, total = super().infer(wiring, *inputs)
        assert self.total is not None
        return around, StreamType(total.shape, self.total)

    @override
    async def run(self, ports: Ports) -> None:
        data, partial = ports.inputs
        around = ports.outputs[0]
        unit, tile, fills = ports.compute_unit, self.tile(), True
        while (element := await data.peek()) is not None:
            held = None if fills else await partial.peek()
            await around.reserve()
            data.take()
            value, stop = element
            if ports.functional:
                assert isinstance(value, Tile)
                tile = self.tile(_sum(None if held is None else _data(held[0]), value))
            if held is not None:
                partial.take()
            around.put((tile, stop))
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
            value, stop = held
            last = stop > 2
            target.put((self._rounded(value), last_stop if last else stop))
            ports.unit.charge(1)
            if last:
                return

    def _rounded(self, value: object) -> Tile:
        """Return a sum as it leaves."""
        total = self.total
        assert isinstance(value, Tile)
        assert total is not None
        data = None if value.data is None else narrow(value.data, total.dtype, "MatmulSum")
        return Tile(value.rows, value.cols, total.dtype, data)


def _data(value: object) -> np.ndarray:
    assert isinstance(value, Tile)
    assert value.data is not None
    return value.data


def _sum(total: np.ndarray | None, value: object) -> np.ndarray:
    """Return a sum with one piece more."""
    data = _data(value)
    return data if total is None else summed(total, data)
