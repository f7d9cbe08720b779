"""Partition: route sub-tensors to the consumers that a selector names.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 6.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import (
    BareStop,
    Costs,
    Operator,
    Ports,
    SelectorType,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    Wiring,
    same,
)
from operators.pairing import uneven

__all__ = ["Partition"]


@dataclass(frozen=True)
class Partition(Operator):
    """Send each rank-``rank`` sub-tensor to every consumer that its selector names.

    Shapes:
        source: [D_a, ..., D_rank, D_rank-1, ..., D_0]; selectors: [D_a, ..., D_rank];
        output i: [D_i, D_rank-1, ..., D_0], where the data decide D_i.

    Timing:
        Per element, loading it where it is in memory, and ``switch_cycles``, one after the other.

    Attributes:
        consumers: how many outputs.
        rank: of the sub-tensors.
        switch_cycles: occupied per element that goes to a consumer.
    """

    consumers: int
    rank: int = 0
    switch_cycles: int = 1

    def __call__(self, source: Stream, selectors: Stream) -> tuple[Stream, ...]:
        """Return one stream per consumer."""
        return self.wire(source, selectors)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        source, selectors = inputs
        chosen = selectors.value
        if not isinstance(chosen, SelectorType) or chosen.width != self.consumers:
            raise ShapeError(
                f"Partition to {self.consumers} consumers is steered by {selectors}: "
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
        steered_by = selectors.resolve()
        label = "feedback" if steered_by.node is None else steered_by.node.name
        return tuple(
            StreamType(
                (
                    wiring.symbol(
                        f"D_{label}[{consumer}]",
                        shared_by=("partition", steered_by.name, consumer),
                    ),
                    *inner,
                ),
                source.value,
            )
            for consumer in range(self.consumers)
        )

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        selectors = ports.inputs[1]
        while (choice := await selectors.peek()) is not None:
            selectors.take()
            selector, outer_stop = choice
            if isinstance(selector, BareStop):
                await ports.inputs[0].receive()
                continue
            await self._route(ports, selector.hits, outer_stop)
        if await ports.inputs[0].peek() is not None:
            raise uneven(ports, f"{ports.inputs[0].producer.name} goes on after the last selector")

    async def _route(self, ports: Ports, hits: tuple[int, ...], outer_stop: int) -> None:
        """Send one sub-tensor to the consumers ``hits``."""
        source, unit, rank = ports.inputs[0], ports.unit, self.rank
        sinks = [ports.outputs[hit] for hit in hits]
        switch = self.switch_cycles if hits else 0
        while True:
            element = await source.peek()
            if element is None:
                raise uneven(ports, f"{source.producer.name} has ended before the selectors")
            value, stop = element
            if isinstance(value, BareStop):
                source.take()
                for sink in sinks:
                    await sink.send_bare(min(stop, rank), value.empty_dimension)
            else:
                if isinstance(value, Tile) and value.in_memory:
                    unit.charge(unit.transfer(value.size_bytes))
                    value = value.placed(in_memory=False)
                source.take()
                unit.charge(switch)
                routed = (value, min(stop, rank))
                for sink in sinks:
                    await sink.send(routed)
            if stop >= rank:
                break
        if stop != outer_stop + rank:
            raise uneven(
                ports,
                f"{source.producer.name} closes {stop} dimensions where the selector closes "
                f"{outer_stop}",
            )
