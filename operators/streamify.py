"""Streamify: read on-chip buffers, once for each element of a reference or so many times.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import (
    ARTIFACT_BYTES,
    BareStop,
    BufferReference,
    BufferType,
    Costs,
    Dim,
    Element,
    Operator,
    Ports,
    ShapeError,
    Stream,
    StreamType,
    Wiring,
    drop,
    is_static,
    product,
    same,
)
from operators.pairing import Track, differ, settle
from operators.structure import positions

__all__ = ["Streamify"]


@dataclass(frozen=True)
class Streamify(Operator):
    """Read every buffer, in order or along an affine pattern.

    Shapes:
        buffers: [D_b, ..., D_0] of buffers; reference (optional): [D_b, ..., D_0, D'_c-1, ...,
        D'_0] of anything, of which only the structure counts.
        output: [D_b, ..., D_0, *repeats, *shape] of tiles, or the reference's shape with ``shape``
        behind it.

    Timing:
        One cycle a tile; a buffer is released when it has been read for the last time.

    Attributes:
        repeats: how often every buffer is read where there is no reference, outermost first.
        shape: of what is read at a time, outermost first; the buffer's where None.
        strides: in tiles, one for each dimension of ``shape``; only static buffers have any.
    """

    kind: ClassVar = "memory"

    repeats: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def __call__(self, buffers: Stream, reference: Stream | None = None) -> Stream:
        """Return the stream of tiles."""
        (tiles,) = self.wire(buffers) if reference is None else self.wire(buffers, reference)
        return tiles

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        buffers = inputs[0]
        if not isinstance(buffers.value, BufferType):
            raise ShapeError(f"Streamify reads {buffers}: expected a stream of buffers")
        outer = (*buffers.shape, *self.repeats)
        if len(inputs) > 1:
            outer = self._referred(buffers, inputs[1])
        elif any(count < 1 for count in self.repeats):
            raise ShapeError(
                f"Streamify repeats {buffers} {list(self.repeats)} times: expected at least 1"
            )
        return (StreamType((*outer, *self._read_shape(buffers.value)), buffers.value.tile),)

    def _referred(self, buffers: Stream, reference: Stream) -> tuple[Dim, ...]:
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
        return reference.shape

    def _read_shape(self, buffer: BufferType) -> tuple[Dim, ...]:
        """Return the shape of one reading."""
        if self.shape is None and self.strides is None:
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
        size = product(buffer.shape)
        reach = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
        low, high = sum(min(0, each) for each in reach), sum(max(0, each) for each in reach)
        if min(shape) < 0 or (min(shape) > 0 and not 0 <= low <= high < size):
            raise ShapeError(
                f"Streamify reads tiles {low} to {high} of {buffer}: expected 0 to {size - 1}"
            )
        return shape

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        buffer = inputs[0].value
        assert isinstance(buffer, BufferType)
        tiles = 1 + product(buffer.shape)
        return Costs(artifact_on_chip_bytes=tiles * buffer.tile.size_elements * ARTIFACT_BYTES)

    @override
    async def run(self, ports: Ports) -> None:
        if len(ports.inputs) > 1:
            await self._refer(ports)
            return
        source, unit = ports.source, ports.unit
        rank = len(ports.output_types[0].shape) - len(ports.input_types[0].shape)
        passes = [stop for _, stop, _ in positions(self.repeats)]
        inner = rank - len(self.repeats)
        while (element := await source.peek()) is not None:
            value, stop = element
            if isinstance(value, BareStop):
                await ports.sink.send_bare(stop + rank, value.empty_dimension + rank)
                source.take()
                continue
            reading = self._reading(value)
            for level in passes[:-1]:
                await _read(ports, reading, inner + level)
            await _read(ports, reading, rank + stop)
            source.take()
            drop(value, unit.now)

    async def _refer(self, ports: Ports) -> None:
        (source, reference), sink, unit = ports.inputs, ports.sink, ports.unit
        dimensions = [len(each.shape) for each in (*ports.input_types, *ports.output_types)]
        repeats, rank = dimensions[1] - dimensions[0], dimensions[2] - dimensions[1]
        here, there = Track(ports, 0), Track(ports, 1, repeats)
        while (element := await source.peek()) is not None:
            here.passed(element)
            value = element[0]
            reading = None if isinstance(value, BareStop) else self._reading(value)
            ended = False
            while not ended:
                guide = await reference.receive()
                there.passed(guide)
                empty = there.empty_dimension
                outside = empty is not None and empty >= 0
                if guide is None or outside is not (reading is None):
                    raise differ(ports, here, there)
                what, level = guide
                if isinstance(what, BareStop):
                    await sink.send_bare(level + rank, what.empty_dimension + rank)
                elif reading is not None:
                    drop(what, unit.now)
                    await _read(ports, reading, rank + level)
                ended = level >= repeats
            if reading is None and here.empty_dimension != there.empty_dimension:
                raise differ(ports, here, there)
            source.take()
            drop(value, unit.now)
            await settle(ports, here, there, sink, rank)
        there.passed(await reference.peek())
        if there.element is not None:
            here.passed(None)
            raise differ(ports, here, there)

    def _reading(self, buffer: BufferReference) -> list[Element]:
        """Return what one reading gives; the last element closes all of its dimensions."""
        if self.shape is None or self.strides is None:
            return buffer.elements
        strides = self.strides
        return [
            (buffer.elements[sum(i * s for i, s in zip(place, strides, strict=True))][0], stop)
            if empty is None
            else (BareStop(stop, empty), stop)
            for place, stop, empty in positions(self.shape)
        ]


async def _read(ports: Ports, reading: list[Element], last_stop: int) -> None:
    """Send one reading; its last element closes ``last_stop`` dimensions."""
    sink, unit = ports.sink, ports.unit
    last = len(reading) - 1
    for number, (value, stop) in enumerate(reading):
        level = last_stop if number == last else stop
        if isinstance(value, BareStop):
            await sink.send_bare(level, value.empty_dimension)
        else:
            await sink.send((value, level))
            unit.charge(1)
