"""Partition and Parallelize: send the sub-tensors of a stream to several consumers.

In a Partition, a selector names the consumers; a Parallelize takes the consumers in turn.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2; Parallelize: the
authors' artifact, the static counterpart of the paper's Partition (Table 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from typing_extensions import override

from fabric import Feedback, Selector, SelectorType, ShapeError, Stream, StreamType
from fabric.extend import (
    Bounds,
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    artifact_bytes,
    ceil_div,
    drop,
    holds_buffers,
    same,
    share,
)
from operators.shape import Flatten, Promote
from operators.sources import Selectors
from operators.streams.reading import Guided, Track, Types, charged, differ, load_cycles, placed


@dataclass(frozen=True)
class Partition(Operator):
    """Send each rank-``rank`` sub-tensor to every consumer that its selector names.

    Shapes:
        source: [D_a, ..., D_rank, D_rank-1, ..., D_0]; selectors: [D_a, ..., D_rank];
        output i: [D_i, D_rank-1, ..., D_0]; D_i depends on the data.

    Timing:
        An element takes the cycles for loading it, if it is in memory, and then ``switch_cycles``.

    Attributes:
        consumers: number of outputs.
        rank: the rank of the sub-tensors.
        switch_cycles: cycles for which an element that goes to a consumer occupies the unit.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 4))())
        ...     route = Flatten(0, 1)(Selectors(np.array([[0], [1], [1], [0]]), width=2)())
        ...     even, odd = Partition(2)(rows, route)
        ...     LinearOffChipStore("even")(Promote(0)(even))
        ...     LinearOffChipStore("odd")(Promote(0)(odd))
        >>> program.expect(even=lambda: x[[0, 3]], odd=lambda: x[[1, 2]])
        >>> print(even.type)
        [D_selectors_1[0]] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    family = "Routing and merging (Table 6)"
    conducted = turns = carries_numbers = True
    no_order = "data decide which of its tiles come where"

    consumers: Annotated[int, Bounds(1)]
    rank: int = 0
    switch_cycles: Annotated[int, Bounds(0)] = 1

    def __call__(self, source: Stream, selectors: Stream) -> tuple[Stream, ...]:
        return self.wire(source, selectors)

    @override
    def infer(self, wiring: Wiring, source: Stream, selectors: Stream) -> Types:
        chosen = selectors.value
        if not isinstance(chosen, SelectorType) or chosen.width != self.consumers:
            raise ShapeError(
                f"Partition({self.consumers}) is steered by {selectors}: "
                f"expected selectors of {self.consumers}"
            )
        if self.rank < 0 or source.rank - self.rank != selectors.rank:
            raise ShapeError(
                f"Partition(rank={self.rank}) of {source} is steered by {selectors}: "
                "expected one selector for each sub-tensor"
            )
        outer = zip(source.shape, selectors.shape, strict=False)
        if any(same(a, b) is False for a, b in outer):
            raise ShapeError(
                f"Partition(rank={self.rank}) of {source} is steered by {selectors}: "
                "expected the same outer dimensions"
            )
        inner = source.shape[source.rank + 1 - self.rank :]
        # A feedback gets its source when the program is complete, so here it stands for itself.
        steered_by = selectors if isinstance(selectors, Feedback) else selectors.resolve()
        label = _origin(steered_by)
        counts = _counts(steered_by, self.consumers)
        return tuple(
            StreamType(
                (
                    wiring.symbol(
                        f"D_{label}[{consumer}]",
                        shared_by=("partition", steered_by, consumer),
                        size=None if counts is None else counts[consumer],
                    ),
                    *wiring.renewed(inner),
                ),
                wiring.renewed_value(source.value),
            )
            for consumer in range(self.consumers)
        )

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(artifact_fifo_bytes=(len(outputs) + 1) * artifact_bytes(inputs[0].value))

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        selectors = inputs[1].value
        assert isinstance(selectors, SelectorType)
        cycles = rates.load(inputs) + (self.switch_cycles if selectors.hits else 0)
        closing = (0,) if selectors.hits else ()
        return Work.each(inputs[0].count, cycles, closing=closing, passes=True, deals=True)

    @override
    async def run(self, ports: Ports) -> None:
        source, selectors = Track(ports, 0, self.rank), Track(ports, 1)
        steering = Guided[Selector](ports, selectors, source)
        async for selector in steering:
            await self._route(ports, selector.hits, source, selectors)
            ports.turn(steering.memory)

    async def _route(
        self, ports: Ports, hits: tuple[int, ...], track: Track, selectors: Track
    ) -> None:
        source, unit, rank = ports.inputs[0], ports.unit, self.rank
        sinks = [ports.outputs[hit] for hit in hits]
        switch = self.switch_cycles if hits else 0
        buffers = holds_buffers(ports.input_types[0].value)
        stop = -1
        while stop < rank:
            element = await source.peek()
            track.passed(element)
            if element is None:
                raise differ(ports, track, selectors)
            value, stop = element
            if isinstance(value, Empty):
                if track.is_outside:
                    raise differ(ports, track, selectors)
                source.take()
                for sink in sinks:
                    await sink.send_bare(min(stop, rank), value.dimension)
                continue
            load = load_cycles(unit, value)
            if load:
                unit.charge(charged(unit, load))
                value = placed(value, in_memory=False)
            source.take()
            unit.charge(switch)
            if buffers and hits:
                share(value, len(hits) - 1)
            elif buffers:
                drop(value, unit.now)
            routed = (value, min(stop, rank))
            for sink in sinks:
                await sink.send(routed)
            ports.turn(hits, track.memory, selectors.memory)


def _origin(selectors: Stream) -> str:
    """Return the name of the operator that made ``selectors``, before their shape was changed."""
    while selectors.node is not None:
        node = selectors.node
        if len(node.inputs) != 1 or not isinstance(node.inputs[0].value, SelectorType):
            return node.name
        first = node.inputs[0]
        selectors = first if isinstance(first, Feedback) else first.resolve()
    return "feedback"


def _counts(selectors: Stream, consumers: int) -> list[int] | None:
    """Return how often a list of ``selectors`` names each consumer; None for other selectors."""
    while selectors.node is not None:
        operator = getattr(selectors.node, "operator", None)
        if isinstance(operator, Selectors):
            return [int(each) for each in np.bincount(operator.choice.ravel(), minlength=consumers)]
        if not isinstance(operator, Flatten | Promote):
            break
        first = selectors.node.inputs[0]
        if isinstance(first, Feedback):
            break
        selectors = first.resolve()
    return None


@dataclass(frozen=True)
class Parallelize(Operator):
    """Send sub-tensor i to consumer ``i mod consumers``.

    Shapes:
        source: [D, D_rank-1, ..., D_0]; output i: [ceil((D - i) / consumers), D_rank-1, ..., D_0].

    Timing:
        No cycles. An element is visible ``switch_cycles`` after its arrival, at the earliest.

    Attributes:
        consumers: number of outputs, at least 1.
        rank: the rank of the sub-tensors, which is the source's rank.
        switch_cycles: latency to a consumer.

    Example:
        >>> with Program("example") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((5, 64)), tile=(1, 64))())
        ...     first, second = Parallelize(2)(rows)
        ...     LinearOffChipStore("even")(Promote(0)(first))
        ...     LinearOffChipStore("odd")(Promote(0)(second))
        >>> print(first.type)
        [3] of 1x64 bfloat16
        >>> print(second.type)
        [2] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        127
    """

    conducted = turns = carries_numbers = True
    no_order = "each consumer gets only some of its tiles"

    consumers: int
    rank: int = 0
    switch_cycles: Annotated[int, Bounds(0)] = 1

    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        if self.consumers < 1 or source.rank != self.rank:
            raise ShapeError(
                f"Parallelize({self.consumers}, rank={self.rank}) is given {source}: "
                f"expected rank {self.rank} and at least 1 consumer"
            )
        size, *inner = source.shape
        return tuple(
            StreamType(
                (ceil_div(size + behind, self.consumers), *wiring.renewed(inner)),
                wiring.renewed_value(source.value),
            )
            for behind in range(0, -self.consumers, -1)
        )

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(artifact_fifo_bytes=(len(outputs) + 1) * artifact_bytes(inputs[0].value))

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        # Without ``switch_cycles``, a sent element is visible a cycle later, too.
        late = max(self.switch_cycles - 1, 0)
        return Work(delay_cycles=late, passes=True, deals=True, in_memory=rates.in_memory[0])

    @override
    async def run(self, ports: Ports) -> None:
        source, sinks = ports.source, ports.outputs
        turn = 0
        while (element := await source.receive()) is not None:
            value, stop = element
            sink = sinks[turn]
            if isinstance(value, Empty):
                await sink.send_bare(stop, value.dimension)
            else:
                await sink.send_at(element, ports.now + self.switch_cycles)
            if stop >= self.rank:
                turn = (turn + 1) % self.consumers
            ports.turn(turn)
