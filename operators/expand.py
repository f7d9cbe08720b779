"""Expand and Repeat: repeat elements, once per element of a reference or a fixed number of times.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType
from fabric.extend import (
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    artifact_bytes,
    drop,
    holds_buffers,
    is_ragged,
    is_static,
    product,
    same,
    share,
)
from operators.streams.reading import Guided, Orders, Track, Types, Values


@dataclass(frozen=True)
class _Repetition(Operator):
    family = "Shape (Table 7)"

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        value = outputs[0].value
        artifact = artifact_bytes(value)
        return Costs(
            on_chip_bytes=value.size_bytes,
            artifact_on_chip_bytes=artifact,
            artifact_fifo_bytes=artifact,
        )


@dataclass(frozen=True)
class Repeat(_Repetition):
    """Repeat every element ``count`` times.

    Shapes:
        source: [D_a, ..., D_0]; output: [D_a, ..., D_0, count].

    Timing:
        The first two copies are visible together. Each further copy is visible one cycle after the
        copy before it. The slot of the element is freed ``count`` cycles after it arrived. If
        channels take one element per cycle, the slot is freed when the last copy leaves.

    Memory:
        On chip, one element.

    Attributes:
        count: number of copies, at least 1.

    Example:
        >>> x = np.arange(8.0).reshape(2, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 1)(LinearOffChipLoad(x, tile=(1, 4))())
        ...     thrice = Repeat(3)(rows)
        ...     LinearOffChipStore("y")(thrice)
        >>> program.expect(y=lambda: np.tile(x, 3))
        >>> print(thrice.type)
        [1, 2, 3] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    conducted = turns = carries_numbers = True

    count: int

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        if self.count < 1:
            raise ShapeError(f"Repeat repeats {source} {self.count} times: expected at least 1")
        return (StreamType((*source.shape, self.count), source.value),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        # The first two copies are visible together, so the last one is visible count - 2 later.
        late = max(self.count - 2, 0)
        return Work(
            cycles=(inputs[0].count - 1) * self.count + late,
            last_cycles=late,
            in_memory=rates.in_memory[0],
        )

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        (source,) = inputs
        if isinstance(source, str):
            return inputs
        return (source.again(self.count),)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit, count = ports.sink, ports.unit, self.count
        source = Values[Value](ports.source, sink, adds=1, held=True)
        async for value, stop in source:
            share(value, count - 1)
            for number in range(count):
                copy = value, stop + 1 if number == count - 1 else 0
                if ports.interval_cycles:
                    await sink.send(copy)
                else:
                    await sink.send_at(copy, ports.now + number)
            if not ports.interval_cycles:
                unit.charge(count)
            source.take()
            ports.turn()


@dataclass(frozen=True)
class Expand(_Repetition):
    """Repeat every element for each element of its group in a reference stream.

    For example, ``source`` has the sum of each group, with an inner dimension of 1
    (``Promote(0)``), and ``reference`` has the rows. The output has a sum for each row.

    Shapes:
        source: [D_a, ..., D_rank, 1, ..., 1]; reference: [D_a, ..., D_0]; output: as the
        reference.

    Memory:
        On chip, one element.

    Attributes:
        rank: number of dimensions of 1 that are expanded, at least 1.

    Example:
        >>> with Program("example") as program:
        ...     scale = LinearOffChipLoad(np.ones((2, 64)), tile=(1, 64))()
        ...     rows = LinearOffChipLoad(np.ones((2, 192)), tile=(1, 64))()
        ...     repeated = Expand()(scale, rows)
        ...     LinearOffChipStore("y")(Map(Mul())(repeated, rows))
        >>> print(scale.type)
        [1, 2, 1] of 1x64 bfloat16
        >>> print(repeated.type)
        [1, 2, 3] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        151
    """

    conducted = turns = carries_numbers = True

    rank: int = 1

    def __call__(self, source: Stream, reference: Stream) -> Stream:
        return self.wire(source, reference)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream, reference: Stream) -> Types:
        inner = source.shape[source.rank + 1 - self.rank :]
        outer = zip(source.shape[: -self.rank], reference.shape[: -self.rank], strict=False)
        if (
            not 1 <= self.rank <= reference.rank + 1
            or source.rank != reference.rank
            or any(same(dim, 1) is False for dim in inner)
            or any(same(a, b) is False for a, b in outer)
        ):
            raise ShapeError(
                f"Expand(rank={self.rank}) repeats {source} as {reference}: expected equal ranks, "
                "equal outer dimensions, and inner dimensions of 1 in the source"
            )
        value = source.value
        if any(map(is_ragged, reference.shape[-self.rank :])):
            value = wiring.renewed_value(value)
        return (StreamType(reference.shape, value),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(closing=(1,), in_memory=rates.in_memory[0])

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        source, _ = inputs
        (after,) = outputs
        if isinstance(source, str):
            return (source,)
        if not all(map(is_static, after.shape)):
            return ("data decide how often it repeats each tile",)
        times = product(after.shape[-self.rank :])
        assert isinstance(times, int)
        return (source.again(times),)

    @override
    async def run(self, ports: Ports) -> None:
        rank = self.rank
        source, reference = Track(ports, 0, rank), Track(ports, 1, rank)
        values = Guided[Value](ports, source, reference, ports.sink, inner=rank, held=True)
        async for value in values:
            await self._repeat(ports, value, values, reference)
            values.take()
            ports.turn(values.memory)

    async def _repeat(
        self, ports: Ports, value: Value, values: Guided[Value], track: Track
    ) -> None:
        reference, sink, rank, unit = ports.inputs[1], ports.sink, self.rank, ports.unit
        buffers = holds_buffers(ports.input_types[0].value)
        while (guide := await reference.receive()) is not None:
            track.passed(guide)
            what, level = guide
            if isinstance(what, Empty):
                await sink.send_bare(level, what.dimension)
            else:
                drop(what, unit.now)
                if buffers:
                    share(value, 1)
                await sink.send((value, level))
            if level >= rank:
                break
            ports.turn(value, values.memory)
        else:
            track.passed(None)
        drop(value, unit.now)
