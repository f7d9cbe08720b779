"""Reassemble and EagerMerge: sub-tensors of several streams become one stream.

A Reassemble takes sub-tensors in the order of its selectors; an EagerMerge in order of arrival.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2. The authors' EagerMerge polls
its inputs in a loop. Here, its timing is a deterministic rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from typing_extensions import override

from fabric import Dim, Selector, SelectorType, ShapeError, Stream, StreamType, TileType
from fabric.extend import (
    Arrivals,
    Bounds,
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Source,
    ValueType,
    Wiring,
    Work,
    artifact_bytes,
    is_ragged,
    same,
    without_ragged,
)
from operators.streams.reading import Types, Values, load_cycles, placed


@dataclass(frozen=True)
class Reassemble(Operator):
    """For each selector, pass on one sub-tensor of every stream it names, the earliest first.

    Shapes:
        inputs: n streams [D_i, D_rank-1, ..., D_0]; selectors: [S_b, ..., S_0];
        output: [S_b, ..., S_0, hits, D_rank-1, ..., D_0]. ``hits`` is the number of streams that
        a selector names; it is ragged if that number varies.

    Timing:
        The operator waits until every stream that the selector names has an element. An element
        leaves ``switch_cycles`` after the first element of its sub-tensor arrived, or in the cycle
        of its own arrival if that is later.

    Attributes:
        rank: the rank of the sub-tensors.
        switch_cycles: the latency of an element from its input to the output.

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
    """

    family = "Routing and merging (Table 6)"
    conducted = turns = carries_numbers = True
    no_order = "data decide which of its tiles come when"

    rank: int = 0
    switch_cycles: Annotated[int, Bounds(0)] = 1

    def __call__(self, inputs: Sequence[Stream], selectors: Stream) -> Stream:
        return self.wire(*inputs, selectors)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        *streams, selectors = inputs
        chosen = selectors.value
        if not isinstance(chosen, SelectorType) or chosen.width != len(streams):
            raise ShapeError(
                f"Reassemble is steered by {selectors}: "
                f"expected selectors of {len(streams)}, the number of its streams"
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
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(artifact_fifo_bytes=len(inputs) * artifact_bytes(inputs[0].value))

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        *streams, selectors = inputs
        steered_by = selectors.value
        assert isinstance(steered_by, SelectorType)
        # The operator does not wait for elements that no selector names.
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
        """Send a sub-tensor of each stream; the last one closes ``closing`` more dimensions."""
        arrivals = ports.arrivals()
        for source in selected:
            if not await arrivals.show(source):
                await ports.starve(source, seen_stop=0, awaited_stop=0)
        ports.unit.charge(ports.unit.registers.choice_cycles)
        for left in reversed(range(len(selected))):
            ports.turn(closing, left)
            source = await arrivals.earliest()
            await self._forward(ports, source, arrivals, closing, left)

    async def _forward(
        self, ports: Ports, source: Source, arrivals: Arrivals, closing: int, left: int
    ) -> None:
        """Send one sub-tensor; if ``left`` is 0, it closes ``closing`` more dimensions."""
        unit, sink, rank = ports.unit, ports.sink, self.rank
        stop = 0
        while True:
            element = await source.peek()
            if element is None:
                await ports.starve(source, seen_stop=stop, awaited_stop=rank)
                return
            value, stop = element
            ended = stop >= rank
            level = stop + closing if ended and not left else stop
            if isinstance(value, Empty):
                source.take()
                await sink.send_bare(level, value.dimension)
            else:
                load = load_cycles(unit, value)
                if load:
                    value = placed(value, in_memory=False)
                    unit.charge(unit.registers.cost_cycles)
                arrivals.busy_until(self.switch_cycles + load)
                source.take()
                await sink.send((value, level))
            if ended:
                unit.charge(unit.registers.choice_cycles)
                return
            ports.turn(closing, left, source, stop)


@dataclass(frozen=True)
class EagerMerge(Operator):
    """Pass on the sub-tensors of all inputs in order of arrival; selectors name their inputs.

    Shapes:
        inputs: n streams [D_i, D_rank-1, ..., D_0]; data: [sum of D_i, D_rank-1, ..., D_0];
        selectors: [sum of D_i], one-hot of n. Either output may stay unread. If the tiles of the
        inputs have different sizes, no tile of the output is larger than the largest input tile.

    Timing:
        A sub-tensor starts when its first element is visible. Its selector leaves in the same
        cycle, or one hop earlier if every input has an element in flight. One cycle lies between
        two elements of a sub-tensor. The sub-tensor that became visible first goes first. If
        several became visible in one cycle, the lowest input goes first.

    Attributes:
        rank: the rank of the sub-tensors.

    Example:
        >>> with Program("example") as program:
        ...     near = Flatten(0, 2)(LinearOffChipLoad(np.ones((2, 64)), tile=(1, 64))())
        ...     far = Flatten(0, 2)(LinearOffChipLoad(np.ones((3, 64)), tile=(1, 64))())
        ...     data, source = EagerMerge()([near, far])
        ...     Consumer()(data)
        ...     Consumer()(source)
        >>> print(data.type)
        [5] of 1x64 bfloat16
        >>> print(source.type)
        [5] of selector of 2
        >>> print(simulate(program).cycles)
        64
    """

    family = "Routing and merging (Table 6)"
    conducted = True
    no_order = "arrival decides the order"
    secondary_outputs = (0, 1)

    rank: int = 0

    def __call__(self, inputs: Sequence[Stream]) -> tuple[Stream, Stream]:
        data, selectors = self.wire(*inputs)
        return data, selectors

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        if not inputs:
            raise ShapeError("EagerMerge merges no streams: expected at least one")
        first = inputs[0]
        for stream in inputs:
            if stream.rank != self.rank:
                raise ShapeError(
                    f"EagerMerge(rank={self.rank}) is given {stream}: expected rank {self.rank}"
                )
        value = _merged_value(wiring, inputs)
        inner = tuple(self._merged_dim(wiring, inputs, axis) for axis in range(1, len(first.shape)))
        outer: Dim = sum(stream.shape[0] for stream in inputs)
        if is_ragged(outer):
            outer = wiring.symbol(f"D_{wiring.node_name}")
        return (
            StreamType((outer, *inner), value),
            StreamType((outer,), SelectorType(len(inputs), hits=1)),
        )

    def _merged_dim(self, wiring: Wiring, inputs: Sequence[Stream], axis: int) -> Dim:
        """Return an inner dimension of the output; it is ragged if the inputs may differ."""
        first = inputs[0]
        verdicts = {same(first.shape[axis], stream.shape[axis]) for stream in inputs}
        if False in verdicts:
            found = " and ".join(map(str, inputs))
            raise ShapeError(
                f"EagerMerge(rank={self.rank}) merges {found}: expected equal inner dimensions"
            )
        if None in verdicts:
            return wiring.symbol(f"D_{wiring.node_name}_{axis}", ragged=True)
        return first.shape[axis]

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs(
            artifact_fifo_bytes=(len(inputs) + 1)
            * sum(artifact_bytes(stream.value) for stream in outputs)
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        # A selector may be sent a cycle before its data arrive.
        inner = sum(stream.count - stream.shape[0] for stream in inputs) if self.rank else 0
        return Work(
            cycles=inner, first_cycles=-1, needs="any", late=(0,), in_memory=all(rates.in_memory)
        )

    @override
    async def run(self, ports: Ports) -> None:
        sources, selectors = ports.inputs, ports.outputs[1]
        chosen = [Selector((port,), len(sources)) for port in range(len(sources))]
        while (winner := await _winner(ports)) is not None:
            cycle, port = winner
            sources[port].idle(cycle)
            await selectors.send((chosen[port], 0))
            await self._pass(ports, sources[port])
        for source in sources:
            await source.receive()

    async def _pass(self, ports: Ports, source: Source) -> None:
        data, unit, rank = ports.outputs[0], ports.unit, self.rank
        while True:
            element = await source.receive()
            if element is None:
                name = source.producer.name
                raise ports.failure(
                    f"{name} has ended: expected the rest of a rank-{rank} sub-tensor"
                )
            value, stop = element
            occupied_cycles = 0
            if isinstance(value, Empty):
                await data.send_bare(stop, value.dimension)
            else:
                await data.send(element)
                occupied_cycles = 1
            if stop >= rank:
                unit.charge(unit.registers.choice_cycles)
                return
            unit.charge(occupied_cycles)


async def _winner(ports: Ports) -> tuple[int, int] | None:
    """Return the cycle and the input of the next sub-tensor; None if all inputs have ended.

    A sub-tensor is chosen when its first element is visible. If every open input has an element in
    flight, no other element can arrive first. So the choice is made one hop earlier, and the
    selector leaves before the data. With channels of wires, an element has to be visible first.
    """
    sources = ports.inputs
    while True:
        empty = tuple(
            source for source in sources if not source.queue and source.closed_cycle is None
        )
        heads = [(each.head_cycle, port) for port, each in enumerate(sources) if each.queue]
        if not heads:
            if not empty:
                return None
            await ports.first_of(empty)
            continue
        cycle, port = min(heads)
        if not empty:
            if ports.interval_cycles:
                return cycle, port
            sent = [source.head_sent_cycle for source in sources if source.queue]
            ends = [source.closed_cycle for source in sources if not source.queue]
            latest = max([*sent, *(end for end in ends if end is not None)])
            return min(cycle, latest), port
        # An input that is empty now may still show an element of the same cycle or before.
        await ports.clock.reach(ports.unit, cycle, watching=empty)
        if not any(source.queue or source.closed_cycle is not None for source in empty):
            return cycle, port


def _merged_value(wiring: Wiring, inputs: Sequence[Stream]) -> ValueType:
    values = [stream.value for stream in inputs]
    first = values[0]
    if all(value == first for value in values):
        return first
    tiles = [value for value in values if isinstance(value, TileType)]
    if len(tiles) == len(values) and len({tile.dtype for tile in tiles}) == 1:
        rows, cols = [tile.rows for tile in tiles], [tile.cols for tile in tiles]
        if not (_known_to_differ(rows) or _known_to_differ(cols)):
            counts = [stream.type.count for stream in inputs]
            return TileType(
                wiring.mixture("rows", counts, rows),
                wiring.mixture("cols", counts, cols),
                tiles[0].dtype,
            )
    if len(set(map(without_ragged, values))) == 1:
        return wiring.renewed_value(first)
    found = " and ".join(map(str, inputs))
    raise ShapeError(f"EagerMerge merges {found}: expected one element type")


def _known_to_differ(dims: Sequence[Dim]) -> bool:
    return len({dim for dim in dims if isinstance(dim, int)}) > 1
