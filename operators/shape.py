"""Flatten, Promote and Reshape: the same elements in the same order, in another shape.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from fabric import Dim, ShapeError, Stream, StreamType
from fabric.extend import (
    BoolType,
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    artifact_bytes,
    at_least_one,
    ceil_div,
    filled,
    holds_buffers,
    is_static,
    kept_as,
    product,
    refuse,
)
from operators.streams.reading import Orders, Types, check_number, check_static, new_tile, send


@dataclass(frozen=True)
class _Reshaping(Operator):
    family = "Shape (Table 7)"

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(artifact_fifo_bytes=2 * artifact_bytes(outputs[0].value))


@dataclass(frozen=True)
class Flatten(_Reshaping):
    """Merge dimensions ``inner`` to ``outer``, counted from the innermost.

    Shapes:
        source: [..., D_outer, ..., D_inner, ...]; output: [..., D_outer * ... * D_inner, ...]. The
        product is a new ragged dimension if one of the merged dimensions is ragged.

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
    """

    conducted = turns = carries_numbers = keeps_order = True

    inner: int
    outer: int

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
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
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(passes=True, in_memory=rates.in_memory[0])

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
        """Return the level of a stop, or the number of a dimension, after the merge."""
        inner, outer = self.inner, self.outer
        return number - (outer - inner) if number > outer else min(number, inner)


@dataclass(frozen=True)
class Promote(_Reshaping):
    """Add a dimension of 1, by default outermost.

    Shapes:
        source: [D_a, ..., D_0]; output: [1, D_a, ..., D_0], or [0, D_a, ..., D_0] if the
        stream is empty; with ``dimension`` [..., 1, D_dimension-1, ..., D_0].

    Timing:
        No cycles. If the new dimension is outermost, the last element of each outermost sub-tensor
        waits for the next element or the end, because its stop depends on that.

    Attributes:
        dimension: number of dimensions inside the new one; all if None.

    Example:
        >>> with Program("example") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))())
        ...     column = Promote(0)(rows)
        ...     LinearOffChipStore("y")(column)
        >>> print(rows.type)
        [4] of 1x64 bfloat16
        >>> print(column.type)
        [4, 1] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        106
    """

    conducted = turns = keeps_order = True

    dimension: int | None = None

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        inside = len(source.shape) if self.dimension is None else self.dimension
        if not 0 <= inside <= len(source.shape):
            raise ShapeError(
                f"Promote puts a dimension outside of {inside} of {source}: "
                f"expected 0 to {len(source.shape)}"
            )
        axis = len(source.shape) - inside
        added = 1 if axis else at_least_one(source.shape[0])
        shape = (*source.shape[:axis], added, *source.shape[axis:])
        return (StreamType(shape, source.value),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        # In a stream of one dimension each element may be the last one, so it waits for the next.
        (source,) = inputs
        is_new_outermost = len(source.shape) == 1 and self.dimension in (None, 1)
        return Work(passes=True, in_memory=rates.in_memory[0], holds=is_new_outermost)

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        dimensions = len(ports.input_types[0].shape)
        inside = dimensions if self.dimension is None else self.dimension
        outermost = inside == dimensions
        while (element := await source.receive()) is not None:
            value, stop = element
            if stop >= inside:
                stop += 1
            elif outermost and stop == inside - 1 and await source.peek() is None:
                stop = inside
            if isinstance(value, Empty) and value.dimension >= inside:
                value = Empty(value.dimension + 1)
            await send(sink, value, stop)
            ports.turn()


@dataclass(frozen=True)
class Reshape(_Reshaping):
    """Split dimension ``dimension`` into chunks of ``chunk``.

    Shapes:
        source: [..., D, ...]; output: [..., ceil(D / chunk), chunk, ...]; and a Bool stream of
        the same shape that marks padding. With ``outermost``, which needs a source of rank 0, a
        dimension of 1 is added in front; it is 0 if the stream is empty.

    Timing:
        No cycles. With ``outermost`` the last element of a chunk waits for the next element or the
        end of the stream, because its stop depends on that.

    Attributes:
        chunk: elements of a chunk, at least 1.
        dimension: which dimension is split, counted from the innermost. Only the innermost may
            need padding; any other dimension has to be static and divisible by ``chunk``.
        pad: the number that fills padding tiles; None if the chunks never need padding.
        outermost: whether an outermost dimension is added.

    Example:
        >>> with Program("example") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((10, 64)), tile=(1, 64))())
        ...     chunks, padding = Reshape(chunk=4, pad=0.0)(rows)
        ...     LinearOffChipStore("y")(chunks)
        >>> print(rows.type)
        [10] of 1x64 bfloat16
        >>> print(chunks.type)
        [3, 4] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        266
    """

    conducted = turns = True
    secondary_outputs = (1,)

    chunk: int
    dimension: int = 0
    pad: float | None = None
    outermost: bool = False

    def __call__(self, source: Stream) -> tuple[Stream, Stream]:
        chunks, flags = self.wire(source)
        return chunks, flags

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        rank = source.rank
        if self.chunk < 1 or not 0 <= self.dimension <= rank:
            raise ShapeError(
                f"Reshape splits dimension {self.dimension} of {source} into chunks of "
                f"{self.chunk}: expected a dimension from 0 to {rank} and chunks of at least 1"
            )
        if self.outermost and rank:
            raise ShapeError(f"Reshape adds an outermost dimension to {source}: expected rank 0")
        if holds_buffers(source.value):
            raise ShapeError(f"Reshape splits {source}: expected a stream that holds no buffers")
        axis = rank - self.dimension
        size = source.shape[axis]
        self._check_divisible(source, size)
        shape = (
            *source.shape[:axis],
            wiring.absorb(ceil_div(size, self.chunk)),
            self.chunk,
            *source.shape[axis + 1 :],
        )
        if self.outermost:
            shape = (at_least_one(size), *shape)
        return StreamType(shape, source.value), StreamType(shape, BoolType())

    def _check_divisible(self, source: Stream, size: Dim) -> None:
        if isinstance(size, int) and size % self.chunk == 0:
            return
        if self.dimension:
            raise ShapeError(
                f"Reshape splits dimension {self.dimension} of {source} into chunks of "
                f"{self.chunk}: expected a static multiple of {self.chunk}"
            )
        if self.pad is None and self.chunk > 1:
            raise ShapeError(
                f"Reshape splits dimension 0 of {source} into chunks of {self.chunk}, which may "
                "need padding: expected pad=..."
            )
        if self.pad is not None:
            tile = check_static("Reshape pads", source, source.value)
            check_number("Reshape pads", source, self.pad, tile.dtype)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        # Padding is in no memory.
        in_memory = rates.in_memory[0] and self.pad is None
        pads = self.pad is not None
        # Padding is sent last only if there is a single group.
        return Work(
            in_memory=in_memory,
            passes=not pads or len(inputs[0].shape) == 1,
            pads=pads,
            holds=self.outermost,
        )

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        return inputs[0], "flags are not tiles"

    @override
    async def run(self, ports: Ports) -> None:
        if self.dimension:
            await self._split_outer(ports)
        else:
            await self._split_innermost(ports)

    async def _split_outer(self, ports: Ports) -> None:
        source, (sink, flags) = ports.source, ports.outputs
        dimension, chunk = self.dimension, self.chunk
        count = 0
        while (element := await source.receive()) is not None:
            value, stop = element
            if isinstance(value, Empty) and value.dimension >= dimension:
                value = Empty(value.dimension + 1)
            elif stop >= dimension:
                count += 1
            if stop > dimension:
                if count % chunk:
                    raise ports.failure(
                        f"{source.producer.name} ends in a chunk of {count}: "
                        f"expected chunks of {chunk}"
                    )
                stop += 1
                count = 0
            elif count == chunk:
                stop = dimension + 1
                count = 0
            await send(sink, value, stop)
            await send(flags, value if isinstance(value, Empty) else False, stop)
            ports.turn(count)

    async def _split_innermost(self, ports: Ports) -> None:
        source, (sink, flags) = ports.source, ports.outputs
        chunk = self.chunk
        count = 0
        last = 2 if self.outermost else 1
        while (element := await source.receive()) is not None:
            value, stop = element
            if isinstance(value, Empty):
                if count:
                    await self._fill(ports, chunk - count, stop + 1)
                    count = 0
                else:
                    await sink.send_bare(stop + 1, value.dimension + 1)
                    await flags.send_bare(stop + 1, value.dimension + 1)
                ports.turn(count)
                continue
            count += 1
            if count == chunk:
                level = stop + 1
                if self.outermost and await source.peek() is None:
                    level = last
                await sink.send((value, level))
                await flags.send((False, level))
                count = 0
            else:
                await sink.send((value, 0))
                await flags.send((False, 0))
                if stop:
                    await self._fill(ports, chunk - count, stop + 1)
                    count = 0
            ports.turn(count)
        if count:
            await self._fill(ports, chunk - count, last)

    async def _fill(self, ports: Ports, missing: int, level: int) -> None:
        """Complete a chunk with padding; its last tile closes ``level`` dimensions."""
        padding = new_tile(ports.input_types[0].value)
        padding.valid_rows = 0
        if ports.functional:
            assert self.pad is not None
            padding.data = filled((padding.rows, padding.cols), self.pad, kept_as(padding.dtype))
        for number in range(missing):
            stop = level if number == missing - 1 else 0
            await ports.outputs[0].send((padding, stop))
            await ports.outputs[1].send((True, stop))


def redimensioned(stream: Stream, shape: tuple[int, ...]) -> Stream:
    """Return the elements of ``stream`` in another static shape, with few operators."""
    sizes = tuple(dim for dim in stream.shape if isinstance(dim, int))
    if not all(map(is_static, stream.shape)) or product(sizes) != math.prod(shape):
        refuse(f"{stream} is read in the shape {list(shape)}: expected equal sizes", ShapeError)
    left = len(sizes)
    for old, new in _groups(sizes, shape):
        left -= len(old)
        if old != new:
            if len(old) > 1:
                stream = Flatten(left, left + len(old) - 1)(stream)
            stream = _split(stream, new, left)
    return stream


def _groups(
    old: Sequence[int], new: Sequence[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the smallest groups of old and new dimensions with equal numbers of elements.

    The dimensions of 1 at the end join the last group.
    """
    old_left, new_left = list(old), list(new)
    groups: list[tuple[list[int], list[int]]] = []
    while old_left and new_left:
        left, right = [old_left.pop(0)], [new_left.pop(0)]
        while math.prod(left) != math.prod(right):
            if math.prod(left) < math.prod(right):
                left.append(old_left.pop(0))
            else:
                right.append(new_left.pop(0))
        groups.append((left, right))
    groups[-1][0].extend(old_left)
    groups[-1][1].extend(new_left)
    return [(tuple(left), tuple(right)) for left, right in groups]


def _split(stream: Stream, sizes: Sequence[int], inside: int) -> Stream:
    """Split a dimension into ``sizes``; ``inside`` is the number of dimensions inside it."""
    for axis in range(len(sizes) - 1, 0, -1):
        if math.prod(sizes[:axis]) == 1:
            stream = Promote(inside + 1)(stream)
        elif sizes[axis] == 1:
            stream = Promote(inside)(stream)
        else:
            stream, _ = Reshape(sizes[axis], inside)(stream)
        inside += 1
    return stream
