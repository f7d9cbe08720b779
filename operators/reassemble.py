"""Reassemble: put sub-tensors of several streams together as selectors say.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Stream, StreamType
from fabric.extend import (
    Arrivals,
    Bounds,
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Source,
    Wiring,
    Work,
    artifact_bytes,
    same,
    without_ragged,
)
from operators.streams.operands import load_cycles, placed
from operators.streams.values import Values

__all__ = ["Reassemble"]


@dataclass(frozen=True)
class Reassemble(Operator):
    """For each selector, pass on one sub-tensor of every stream it names, the earliest first.

    Shapes:
        inputs: n streams [D_i, D_rank-1, ..., D_0]; selectors: [S_b, ..., S_0];
        output: [S_b, ..., S_0, hits, D_rank-1, ..., D_0]; ``hits`` is ragged unless every
        selector names equally many.

    Timing:
        It waits until every stream that the selector names has an element. An element leaves
        ``switch_cycles`` after the first element of its sub-tensor came, or at once if it comes
        later than that.

    Memory:
        None.

    Attributes:
        rank: the rank of the sub-tensors.
        switch_cycles: the latency of a stream's elements.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 4))())
        ...     route = Flatten(0, 1)(Selectors(np.array([[0], [1], [1], [0]]), width=2)())
        ...     merged = Reassemble()(Partition(2)(rows, route), route)
        ...     LinearOffChipStore("y")(merged)
        >>> program.expect(y=lambda: x)
        >>> print(merged.type)
        [4, 1] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True

    Family:
        Routing and merging (Table 6).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True
    no_order: ClassVar[str] = "data decide which of its tiles come when"

    rank: int = 0
    switch_cycles: Annotated[int, Bounds(0)] = 1

    def __call__(self, inputs: Sequence[Stream], selectors: Stream) -> Stream:
        """Return the reassembled stream."""
        (result,) = self.wire(*inputs, selectors)
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        *streams, selectors = inputs
        chosen = selectors.value
        if not isinstance(chosen, SelectorType) or chosen.width != len(streams):
            raise ShapeError(
                f"Reassemble is steered by {selectors}: "
                f"expected selectors of {len(streams)}, as many as it has streams"
            )
        first = streams[0]
        for stream in streams:
            if stream.rank != self.rank or without_ragged(stream.value) != without_ragged(
                first.value
            ):
                raise ShapeError(
                    f"Reassemble(rank={self.rank}) is given {first} and {stream}: "
                    f"expected rank {self.rank} and one element type"
                )
            pairs = zip(stream.shape[1:], first.shape[1:], strict=True)
            if any(same(a, b) is False for a, b in pairs):
                raise ShapeError(
                    f"Reassemble(rank={self.rank}) is given {first} and {stream}: "
                    "expected equal inner dimensions"
                )
        hits = chosen.hits
        if hits is None:
            hits = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
        inner = (
            first.shape[axis]
            if all(same(stream.shape[axis], first.shape[axis]) for stream in streams)
            else wiring.symbol(f"D_{wiring.node_name}", ragged=True)
            for axis in range(1, len(first.shape))
        )
        shape = (*selectors.shape, hits, *wiring.renewed(tuple(inner)))
        return (StreamType(shape, wiring.renewed_value(first.value)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(artifact_fifo_bytes=len(inputs) * artifact_bytes(inputs[0].value))

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        *streams, selectors = inputs
        steered_by = selectors.value
        assert isinstance(steered_by, SelectorType)
        # What the selectors leave is not waited for.
        everything = rates.together(streams) == outputs[0].count
        closing = range(len(streams) if everything else 0)
        last = (len(streams),) if steered_by.hits else ()
        return Work(
            needs="selected" if steered_by.hits else "any",
            closing=(*closing, *last),
            sees=(len(streams),),
        )

    @override
    async def run(self, ports: Ports) -> None:
        *streams, steering = ports.inputs
        selectors = Values[Selector](steering, ports.sink, adds=self.rank + 1)
        async for selector, outer_stop in selectors:
            closing = outer_stop + 1
            if selector.hits:
                await self._put_together(ports, [streams[hit] for hit in selector.hits], closing)
            else:
                await ports.sink.send_bare(self.rank + closing, self.rank)
            ports.turn()

    async def _put_together(self, ports: Ports, selected: list[Source], closing: int) -> None:
        """Send one sub-tensor of each stream; the last one closes ``closing`` dimensions more."""
        arrivals = ports.arrivals()
        for source in selected:
            if not await arrivals.show(source):
                await ports.starve(source, seen_stop=0, awaited_stop=0)
        for left in reversed(range(len(selected))):
            ports.turn(closing, left)
            source = await arrivals.earliest()
            await self._forward(ports, source, arrivals, 0 if left else closing, (closing, left))

    async def _forward(
        self,
        ports: Ports,
        source: Source,
        arrivals: Arrivals,
        closing: int,
        memory: tuple[int, int],
    ) -> None:
        """Send one sub-tensor; its last element closes ``closing`` dimensions more."""
        unit, sink, rank = ports.unit, ports.sink, self.rank
        stop = 0
        while True:
            element = await source.peek()
            if element is None:
                await ports.starve(source, seen_stop=stop, awaited_stop=rank)
                return
            value, stop = element
            ended = stop >= rank
            level = stop + closing if ended else stop
            if isinstance(value, Empty):
                source.take()
                await sink.send_bare(level, value.dimension)
            else:
                load = load_cycles(unit, value)
                if load:
                    value = placed(value, in_memory=False)
                arrivals.busy_until(self.switch_cycles + load)
                source.take()
                await sink.send((value, level))
            if ended:
                return
            ports.turn(*memory, source, stop)
