"""Parallelize: deal the sub-tensors of a stream out to several consumers in turn.

Source: the authors' artifact; the static counterpart of the paper's Partition (Table 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType
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
)

__all__ = ["Parallelize"]


@dataclass(frozen=True)
class Parallelize(Operator):
    """Send sub-tensor i to consumer ``i mod consumers``.

    Shapes:
        source: [D, D_rank-1, ..., D_0]; output i: [ceil((D - i) / consumers), D_rank-1, ..., D_0].

    Timing:
        No cycles. An element becomes visible ``switch_cycles`` after it came, at the earliest.

    Memory:
        None.

    Attributes:
        consumers: how many outputs there are, at least 1.
        rank: the rank of the sub-tensors, which is the source's rank.
        switch_cycles: the latency to a consumer.

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

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True
    no_order: ClassVar[str] = "who is free decides which of its tiles come where"

    consumers: int
    rank: int = 0
    switch_cycles: Annotated[int, Bounds(0)] = 1

    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        """Return one stream per consumer."""
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (source,) = inputs
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
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(artifact_fifo_bytes=(len(outputs) + 1) * artifact_bytes(inputs[0].value))

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        # What is sent is visible a cycle later in any case.
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
