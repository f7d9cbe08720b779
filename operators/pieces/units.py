"""Operators on pieces and buffers of pieces, as in the paper's hardware.

A unit takes its inputs and sends its outputs in one cycle, when all are ready. A buffer stores
pieces in sets. A token is a group of pieces that is read together, once it is complete; its value
is a tile of all pieces, one below the other.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from typing_extensions import override

from fabric import Stream, StreamType, Tile, TileType
from fabric.extend import ComputeOperator, Costs, Operator, Ports, Wiring
from operators.functions.arithmetic import narrow
from operators.functions.base import Function
from operators.functions.matmul import summed
from operators.streams.reading import Types, new_tile
from operators.tiles.grid import positions

SETS: Final = 32

PIECES_OF_A_SET: Final = 8

MOST_PIECES: Final = SETS * PIECES_OF_A_SET

IDLE_CYCLES: Final = 256

FREED: Final = TileType(1, 1, np.dtype(np.uint8))
"""The type of an element that frees a set; with a stop it also drops the token."""

_FREED: Final = Tile(1, 1, FREED.dtype)


@dataclass(frozen=True)
class Pieces(Operator):
    """An operator on pieces; its outputs have the given ``shapes``."""

    shapes: tuple[tuple[int, ...], ...]
    piece: TileType

    def __call__(self, *streams: Stream) -> tuple[Stream, ...]:
        return self.wire(*streams)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return tuple(StreamType(shape, self.piece) for shape in self.shapes)

    def tile(self, data: np.ndarray | None = None) -> Tile:
        return new_tile(self.piece, data)


@dataclass(frozen=True)
class ComputePieces(Pieces, ComputeOperator):
    """An operator that computes one piece a cycle, with ``flops`` operations."""

    flops: int = 0

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.flops > 0


@dataclass(frozen=True)
class MapPieces(ComputePieces):
    """Applies a function to a piece of each input, and sends the stop of the first input.

    If it is ``swapped``, the operands of the function are in the opposite order.
    """

    conducted = True

    function: Function | None = None
    swapped: bool = False

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
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
    """Adds a dimension of size 1: stops of at least ``level`` close one dimension more."""

    conducted = True

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
    """Sends each piece to all outputs, in one cycle."""

    conducted = True

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
    """Sums the innermost dimension; only the last piece of a group waits for a slot."""

    conducted = True

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
    """Sends each token ``times`` times, and takes one more cycle to drop it."""

    conducted = True

    times: int

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
    """Sums tiles of pieces; a buffer behind it holds the partial sums.

    The first tile of a group fills the buffer, and the next ones are added to it. The sums of the
    last tile are rounded to the type ``total`` and sent.
    """

    conducted = True

    total: TileType | None = None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
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
    data = _data(value)
    return data if total is None else summed(total, data)


class _Filling:
    def __init__(self) -> None:
        self.pieces = 0
        """The number of pieces in the current set; 0 if the next piece takes a new set."""

    def store(self, *, ends: bool) -> bool:
        """Store a piece; return whether it completes its set.

        The last piece of a token completes a set, unless it is the only piece of the set.
        """
        is_complete = self.pieces > 0 and (ends or self.pieces + 1 == PIECES_OF_A_SET)
        self.pieces = 0 if is_complete else self.pieces + 1
        return is_complete


class _Sets:
    def __init__(self, cycle: int) -> None:
        self.dropped_cycle = -1
        """The latest cycle in which a token was dropped."""
        self._free: Final = set(range(SETS))
        self._chosen: int | None = None
        self._cycle = cycle  # of the next choice, if a set is free
        self._latest = -1
        self._held: Final[deque[int]] = deque()

    @property
    def are_held(self) -> bool:
        return bool(self._held)

    def ready_cycle(self, cycle: int) -> int | None:
        """Return when the next set is ready, as known in ``cycle``; None if no set is free."""
        self._choose(cycle)
        # A cycle lies between the choice of a set and its first piece.
        return None if self._chosen is None else self._cycle + 1

    def take(self, cycle: int) -> None:
        assert self._chosen is not None
        self._latest = self._chosen
        self._held.append(self._latest)
        self._chosen, self._cycle = None, cycle + 1

    def share(self) -> None:
        self._held.append(self._latest)

    def free(self, cycle: int, *, drops: bool) -> None:
        self._choose(cycle - 1)
        if not self._free:
            self._cycle = max(self._cycle, cycle)
        self._free.add(self._held.popleft())
        if drops:
            self.dropped_cycle = cycle

    def _choose(self, cycle: int) -> None:
        """Choose the highest free set, if the choice is due by ``cycle``."""
        if self._chosen is None and self._free and self._cycle <= cycle:
            self._chosen = max(self._free)
            self._free.remove(self._chosen)


def token_type(piece: TileType, inner: tuple[int, ...]) -> TileType:
    return TileType(math.prod(inner) * piece.rows, piece.cols, piece.dtype)


@dataclass(frozen=True)
class TokenPieces(Pieces):
    """The half of a buffer that stores pieces, and receives the sets that are free again.

    No piece is stored in the first 256 cycles, or in a cycle in which a token is dropped.
    ``inner`` is the shape of a token.
    """

    conducted = True
    kind = "memory"

    inner: tuple[int, ...] = ()

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return tuple(StreamType(shape, token_type(self.piece, self.inner)) for shape in self.shapes)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(on_chip_bytes=MOST_PIECES * self.piece.size_bytes)

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink = ports.unit, ports.sink
        data = ports.source
        rank, filling, begins = len(self.inner), _Filling(), True
        room = MOST_PIECES * self.tile().size_bytes
        await ports.on_chip.allocate(unit, room, "a buffer")
        unit.charge(IDLE_CYCLES)
        sets = _Sets(unit.now)
        token, kept = new_tile(ports.output_types[0].value), list[np.ndarray]()
        while (element := await data.peek()) is not None:
            value, stop = element
            if ports.functional:
                kept.append(_data(value))
            ends = stop >= rank
            if ends:
                await sink.reserve()
            await _until_room(ports, sets, new=not filling.pieces)
            if not filling.pieces:
                sets.take(unit.now)
            elif begins:
                sets.share()
            filling.store(ends=ends)
            if ends:
                if ports.functional:
                    token, kept = new_tile(ports.output_types[0].value, np.concatenate(kept)), []
                sink.put((token, stop - rank))
            begins = ends
            data.take()
            unit.charge(1)
        await _take_freed(ports, sets)
        while sets.are_held:
            await ports.inputs[1].peek()
            await _take_freed(ports, sets)
        ports.on_chip.release(unit, room, unit.now)


async def _until_room(ports: Ports, sets: _Sets, *, new: bool) -> None:
    """Wait until a piece can be stored, in a ``new`` set or in the current one."""
    unit, freed = ports.unit, ports.inputs[1]
    while True:
        await _take_freed(ports, sets)
        if new:
            ready_cycle = sets.ready_cycle(unit.now)
            if ready_cycle is None:
                await freed.peek()
                continue
            if ready_cycle > unit.now:
                unit.charge(ready_cycle - unit.now)
                continue
        if sets.dropped_cycle != unit.now:
            return
        unit.charge(1)


async def _take_freed(ports: Ports, sets: _Sets) -> None:
    """Take the sets that were freed up to now, each in the cycle in which it arrived."""
    unit, freed = ports.unit, ports.inputs[1]
    while sets.are_held:
        if not freed.queue:
            await ports.clock.reach(unit, unit.now, watching=(freed,))
        if not freed.queue or freed.head_cycle > unit.now:
            return
        cycle = freed.head_cycle
        _, stop = freed.hear()
        sets.free(cycle, drops=stop > 0)


@dataclass(frozen=True)
class ReadPieces(Pieces):
    """The half of a buffer that reads tokens; a token of n pieces takes n + 1 cycles.

    ``inner`` is the shape of a token. Each token is read ``times`` times, and the last reading
    frees its sets.
    """

    conducted = True
    kind = "memory"

    inner: tuple[int, ...]
    times: int

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        pieces, freed = self.shapes
        return StreamType(pieces, self.piece), StreamType(freed, FREED)

    @override
    async def run(self, ports: Ports) -> None:
        unit, source = ports.unit, ports.source
        sink, freed = ports.outputs
        rank, number = len(self.inner), 0
        filling = _Filling()
        while (token := await source.receive()) is not None:
            value, stop = token
            assert isinstance(value, Tile)
            tile = self.tile()
            unit.charge(1)
            number += 1
            frees = number % self.times == 0
            for at, (_, level, _) in enumerate(positions(self.inner)):
                await sink.reserve()
                if value.data is not None:
                    tile = self.tile(value.data[at * tile.rows : (at + 1) * tile.rows])
                last = level == rank
                is_complete = frees and filling.store(ends=last)
                if frees and (is_complete or last):
                    await freed.send((_FREED, int(last)))
                sink.put((tile, rank + stop if last else level))
                unit.charge(1)
