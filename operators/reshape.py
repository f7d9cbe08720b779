"""Reshape: split a dimension into chunks, padding the last one where needed.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Stream, StreamType, Tile, TileType
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
    check_converts,
    dtype_name,
    filled,
    holds_buffers,
    is_static,
    kept_as,
)
from operators.streams.orders import Orders, Types
from operators.streams.values import send

__all__ = ["Reshape"]

_FLAG: Final = BoolType()


@dataclass(frozen=True)
class Reshape(Operator):
    """Split dimension ``dimension`` into chunks of ``chunk``.

    Shapes:
        source: [..., D, ...]; output: [..., ceil(D / chunk), chunk, ...]; and a Bool stream of
        the same shape that tells which elements are padding. With ``outermost``, which needs a
        source of rank 0, a dimension of 1 stands in front; it is 0 if the stream is empty.

    Timing:
        No cycles. With ``outermost`` the last element of a chunk waits for the next element or the
        end of the stream, because its stop depends on that.

    Memory:
        None.

    Attributes:
        chunk: how many elements a chunk has, at least 1.
        dimension: which dimension is split, counted from the innermost. Only the innermost may
            need padding; another one has to be static and divisible.
        pad: the number that fills padding tiles; None if no padding may be needed.
        outermost: whether to add an outermost dimension.

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

    Family:
        Shape (Table 7).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    secondary_outputs: ClassVar = (1,)

    chunk: int
    dimension: int = 0
    pad: float | None = None
    outermost: bool = False

    def __call__(self, source: Stream) -> tuple[Stream, Stream]:
        """Return the chunks and the padding flags."""
        chunks, flags = self.wire(source)
        return chunks, flags

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
        rank = source.rank
        if self.chunk < 1 or not 0 <= self.dimension <= rank:
            raise ShapeError(
                f"Reshape splits dimension {self.dimension} of {source} into chunks of "
                f"{self.chunk}: expected a dimension from 0 to {rank} and chunks of at least 1"
            )
        if self.outermost and (rank or self.dimension):
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
        return StreamType(shape, source.value), StreamType(shape, _FLAG)

    def _check_divisible(self, source: Stream, size: Dim) -> None:
        if isinstance(size, int) and size % self.chunk == 0:
            return
        if self.dimension:
            raise ShapeError(
                f"Reshape splits dimension {self.dimension} of {source} into chunks of "
                f"{self.chunk}: expected a static dimension that is a multiple"
            )
        if self.pad is None and self.chunk > 1:
            raise ShapeError(
                f"Reshape splits dimension 0 of {source} into chunks of {self.chunk}, which may "
                "need padding: expected pad=..."
            )
        tile = source.value
        if self.pad is not None and not (
            isinstance(tile, TileType) and is_static(tile.rows) and is_static(tile.cols)
        ):
            raise ShapeError(f"Reshape pads {source}: expected a stream of tiles of a static size")
        if self.pad is not None and isinstance(tile, TileType):
            try:
                _check_pad(self.pad, tile.dtype)
            except ValueError as error:
                raise ShapeError(
                    f"Reshape pads {source} with {self.pad}: expected a number that "
                    f"{dtype_name(tile.dtype)} holds"
                ) from error

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(artifact_fifo_bytes=2 * artifact_bytes(outputs[0].value))

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        # Padding is in no memory.
        in_memory = rates.in_memory[0] and self.pad is None
        # Of one group, the padding comes last.
        pads = self.pad is not None
        # The last element closes the outermost dimension: whether another comes has to be seen.
        return Work(
            in_memory=in_memory,
            passes=not pads or len(inputs[0].shape) == 1,
            pads=pads,
            holds=self.outermost,
        )

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        return inputs[0], "flags are no tiles"

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
        """Complete a chunk with padding; the last one carries ``level``."""
        tile = ports.input_types[0].value
        assert isinstance(tile, TileType)
        assert isinstance(tile.rows, int)
        assert isinstance(tile.cols, int)
        data = None
        if ports.functional:
            assert self.pad is not None
            data = filled((tile.rows, tile.cols), self.pad, kept_as(tile.dtype))
        padding = Tile(tile.rows, tile.cols, tile.dtype, data, valid_rows=0)
        for number in range(missing):
            stop = level if number == missing - 1 else 0
            await ports.outputs[0].send((padding, stop))
            await ports.outputs[1].send((True, stop))


@lru_cache(typed=True)
def _check_pad(pad: float, dtype: np.dtype) -> None:
    """Refuse what ``check_converts`` does; one program pads thousands of streams alike."""
    check_converts(np.array(pad), dtype)
