"""Bufferize and Streamify: collect tiles in on-chip buffers, and read such buffers.

A buffer holds the inner dimensions of a stream. It is read once for each element of a reference, or
a fixed number of times.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, TypeAlias

from typing_extensions import override

from fabric import ARTIFACT_BYTES, Dim, Layout, ShapeError, Stream, StreamType, Tile, TileType
from fabric.extend import (
    Allocation,
    Bounds,
    BufferReference,
    BufferType,
    Costs,
    Element,
    Empty,
    Loop,
    Operator,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    at_least_one,
    counted,
    drop,
    is_ragged,
    is_static,
    product,
    same,
)
from operators.streams.reading import Guided, Lockstep, Orders, Track, Types, Values, differ
from operators.tiles.grid import View, numbers_below, positions


@dataclass(frozen=True)
class Bufferize(Operator):
    """Collect the innermost ``rank`` dimensions of a stream of tiles into buffers.

    Shapes:
        source: [D_a, ..., D_rank, ..., D_0] of tiles; output: [D_a, ..., D_rank] of buffers
        [D_rank-1, ..., D_0]. Of the buffered dimensions only the outermost may be ragged.

    Timing:
        One cycle per element, except the last of a buffer.

    Memory:
        On chip, the tiles of a buffer, from their arrival until its last reader is done. With
        ``spill`` in the hardware file, a tile that finds no room is written to off-chip memory.

    Attributes:
        rank: number of dimensions of a buffer, at least 1.

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
    """

    family = "On-chip memory (Table 4)"
    conducted = keeps_order = True
    kind = "memory"
    spills = "write"

    rank: int = 1

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
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
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        buffer = outputs[0].value
        assert isinstance(buffer, BufferType)
        tiles = 1 + 2 * product(buffer.shape)
        return Costs(
            on_chip_bytes=tiles * buffer.tile.size_bytes,
            artifact_on_chip_bytes=tiles * buffer.tile.size_elements * ARTIFACT_BYTES,
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        (source,), (buffers,) = inputs, outputs
        group = product(source.shape[-self.rank :])
        return Work(
            cycles=source.count - buffers.count,
            first_cycles=group - 1,
            gathers=group,
            in_memory=rates.in_memory[0],
        )

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
    """Add a bare stop of ``level``.

    If the last element closes just the dimensions inside the empty one, its stop is raised instead.
    """
    value: Value = empty
    if elements and elements[-1][1] == empty.dimension:
        value, _ = elements.pop()
    elements.append((value, level))


@dataclass(frozen=True)
class Streamify(Operator):
    """Read every buffer, in order or along an affine pattern.

    Shapes:
        buffers: [D_b, ..., D_0] of buffers; reference (optional): [D_b, ..., D_0, D'_c-1, ...,
        D'_0] of any type; only its structure counts.
        output: [D_b, ..., D_0, *repeats, *shape] of tiles. With a reference, its dimensions and
        then ``shape``.

    Timing:
        One cycle per tile. A buffer is released when it has been read for the last time.

    Memory:
        The tiles stay in the buffers. Spilled tiles are read from off-chip memory each time they
        are sent.

    Attributes:
        repeats: dimensions of equal readings of a buffer, outermost first; not with a reference.
        shape: the shape of one reading, outermost first; the buffer's if None.
        strides: the step along each dimension of ``shape``, in tiles; only for static buffers.
        offset: the number of the first tile that is read.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     buffers = Bufferize(rank=2)(LinearOffChipLoad(x, tile=(2, 4))())
        ...     twice = Streamify(repeats=(2,))(buffers)
        ...     LinearOffChipStore("y")(twice)
        >>> program.expect(y=lambda: np.concatenate([x, x]))
        >>> print(twice.type)
        [1, 2, 2, 1] of 2x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    family = "On-chip memory (Table 4)"
    conducted = True
    kind = "memory"
    spills = "read"

    repeats: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    offset: Annotated[int, Bounds(0)] = 0

    def __call__(self, buffers: Stream, reference: Stream | None = None) -> Stream:
        return (self.wire(buffers) if reference is None else self.wire(buffers, reference))[0]

    @override
    def infer(self, wiring: Wiring, buffers: Stream, reference: Stream | None = None) -> Types:
        if not isinstance(buffers.value, BufferType):
            raise ShapeError(f"Streamify reads {buffers}: expected a stream of buffers")
        outer = (*buffers.shape, *self.repeats)
        if reference is not None:
            self._check_reference(buffers, reference)
            outer = reference.shape
        elif any(count < 1 for count in self.repeats):
            raise ShapeError(
                f"Streamify repeats {buffers} {list(self.repeats)} times: expected at least 1"
            )
        return (StreamType((*outer, *self._read_shape(buffers.value)), buffers.value.tile),)

    def _check_reference(self, buffers: Stream, reference: Stream) -> None:
        outer = zip(buffers.shape, reference.shape, strict=False)
        if reference.rank < buffers.rank or any(same(a, b) is False for a, b in outer):
            raise ShapeError(
                f"Streamify reads {buffers} as often as {reference} says: "
                "expected the same outer dimensions"
            )
        if self.repeats:
            raise ShapeError(
                f"Streamify repeats {buffers} {list(self.repeats)} times and as often as "
                f"{reference} says: expected one of the two"
            )

    def _read_shape(self, buffer: BufferType) -> tuple[Dim, ...]:
        if self.shape is None and self.strides is None and not self.offset:
            return buffer.shape
        shape, strides = self.shape, self.strides
        if shape is None or strides is None or len(shape) != len(strides) or not shape:
            raise ShapeError(
                f"Streamify reads {buffer} with shape {shape} and strides {strides}: "
                "expected both, with one stride for each dimension"
            )
        if not all(map(is_static, buffer.shape)):
            raise ShapeError(
                f"Streamify reads {buffer} with strides: expected a buffer of a static shape"
            )
        if min(shape) < 0:
            raise ShapeError(
                f"Streamify reads {buffer} with shape {shape}: expected no dimension below 0"
            )
        size = product(buffer.shape)
        assert isinstance(size, int)
        ends = View(shape, strides, self.offset).ends
        if ends is not None and not 0 <= ends[0] <= ends[1] < size:
            raise ShapeError(
                f"Streamify reads tiles {ends[0]:,} to {ends[1]:,} of {buffer}: "
                f"expected {numbers_below(size)}"
            )
        return shape

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        buffer = inputs[0].value
        assert isinstance(buffer, BufferType)
        tiles = 1 + product(buffer.shape)
        return Costs(artifact_on_chip_bytes=tiles * buffer.tile.size_elements * ARTIFACT_BYTES)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        buffer = inputs[0].value
        assert isinstance(buffer, BufferType)
        reading = product((*self.repeats, *(self.shape or buffer.shape)))
        # ``reads`` is true if every reading has at least one tile.
        times = inputs[-1].count
        reads = not is_ragged(reading) and product((times, at_least_one(reading))) == times
        return Work(
            cycles=outputs[0].count - 1,
            last_cycles=reading - 1,
            in_memory=rates.in_memory[0],
            closing=(len(inputs) - 1,) if reads else (),
        )

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        (source, *_), buffer, (after,) = inputs, types[0].value, outputs
        assert isinstance(buffer, BufferType)
        if isinstance(source, str):
            return (source,)
        repeated = len(self.repeats) if len(types) == 1 else types[1].rank - types[0].rank
        tiles, buffers = product(buffer.shape), product(types[0].shape)
        readings = product(after.shape[: types[0].rank + 1 + repeated])
        static = isinstance(tiles, int) and isinstance(readings, int) and isinstance(buffers, int)
        nests = source.cut(tiles) if static else None
        if nests is None:
            return ("data decide how often it reads each tile",)
        return (self._order(source.nested(nests[1]), nests[0], readings // buffers),)

    def _order(self, source: Layout, outer: tuple[Loop, ...], times: int) -> Layout | str:
        """Return the order of the tiles if every buffer is read ``times`` times."""
        inner, start = source.loops, source.start
        if self.shape is not None and self.strides is not None:
            if not all(self.shape):
                return "it reads nothing"
            view = counted(source.trips, self.shape, self.strides, self.offset)
            if view is None:
                return "its steps are not loops over the buffer"
            inner = tuple(_along(loop, source.loops) for loop in view.loops)
            for loop, at in zip(source.loops, view.start, strict=True):
                if loop.dim is not None:
                    moved = start[loop.dim] + at * loop.step
                    start = (*start[: loop.dim], moved, *start[loop.dim + 1 :])
        again = (Loop(times, 1, None),) if times > 1 else ()
        return replace(source.nested((*outer, *again, *inner)), start=start)

    @override
    async def run(self, ports: Ports) -> None:
        if len(ports.inputs) > 1:
            await self._refer(ports)
            return
        unit = ports.unit
        rank = len(ports.output_types[0].shape) - len(ports.input_types[0].shape)
        passes = len(self.repeats)
        inner = rank - passes
        source = Values[BufferReference](ports.source, ports.sink, adds=rank, held=True)
        async for buffer, stop in source:
            reading = self._reading(ports, buffer)
            for _, level, _ in positions(self.repeats):
                last_stop = rank + stop if level == passes else inner + level
                await _read(ports, reading, inner, last_stop)
            source.take()
            drop(buffer, unit.now)

    async def _refer(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.unit
        dimensions = [len(stream.shape) for stream in (*ports.input_types, *ports.output_types)]
        repeats, rank = dimensions[1] - dimensions[0], dimensions[2] - dimensions[1]
        source, reference = Track(ports, 0), Track(ports, 1, repeats)
        buffers = Guided[BufferReference](
            ports, source, reference, sink, inner=repeats + rank, held=True
        )
        async for buffer in buffers:
            reading = self._reading(ports, buffer)
            level = -1
            while level < repeats:
                guide = await reference.source.receive()
                reference.passed(guide)
                if guide is None or reference.is_outside:
                    raise differ(ports, source, reference)
                what, level = guide
                if isinstance(what, Empty):
                    await sink.send_bare(level + rank, what.dimension + rank)
                else:
                    drop(what, unit.now)
                    await _read(ports, reading, rank, rank + level)
            buffers.take()
            drop(buffer, unit.now)

    def _reading(self, ports: Ports, buffer: BufferReference) -> Iterable[_Read]:
        """Return the elements of one reading; the last element closes all dimensions of it."""
        elements: Sequence[_Read] = buffer.elements
        if buffer.allocation.spilled:
            elements = copies = [*elements]
            for number, address in buffer.allocation.spilled.items():
                tile, stop = copies[number]
                assert isinstance(tile, Tile)
                copies[number] = _Spilled(tile, address), stop
        if self.shape is None or self.strides is None:
            return elements
        buffer_type = ports.input_types[0].value
        assert isinstance(buffer_type, BufferType)
        if len(elements) != product(buffer_type.shape):
            raise ports.failure(f"a buffer of size {len(elements):,}: expected {buffer_type}")
        return _Reading(elements, View(self.shape, self.strides, self.offset))


class _Spilled(NamedTuple):
    """A tile in off-chip memory, and its address there."""

    tile: Tile
    address: int


_Read: TypeAlias = tuple[Value | _Spilled, int]
"""A value of a buffer, or a spilled tile, with its stop."""


@dataclass(frozen=True)
class _Reading:
    """The elements of a buffer along a view, which may be too long for a list."""

    elements: Sequence[_Read]
    view: View

    def __iter__(self) -> Iterator[_Read]:
        for item, stop, empty in self.view:
            yield Empty(empty or 0) if item is None else self.elements[item][0], stop


def _along(loop: Loop, loops: tuple[Loop, ...]) -> Loop:
    """Return ``loop`` over the tensor; its ``dim`` is the index of one of ``loops``."""
    if loop.dim is None or loops[loop.dim].dim is None:
        return Loop(loop.trips, 1, None)
    return Loop(loop.trips, loop.step * loops[loop.dim].step, loops[loop.dim].dim)


async def _read(ports: Ports, reading: Iterable[_Read], inner: int, last_stop: int) -> None:
    """Send one reading of ``inner`` dimensions; its end closes ``last_stop`` dimensions."""
    sink, unit = ports.sink, ports.unit
    for element, stop in reading:
        value, level = element, last_stop if stop == inner else stop
        if isinstance(value, Empty):
            await sink.send_bare(level, value.dimension)
            continue
        if isinstance(value, _Spilled):
            await ports.fetch(value.tile, value.address)
            value = value.tile
        await sink.send((value, level))
        unit.charge(1)
