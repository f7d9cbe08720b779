"""Accum and Scan: fold the inner dimensions of a stream, to one value or to all partial values.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType, TileType
from fabric.extend import (
    ComputeOperator,
    Costs,
    Empty,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    artifact_bytes,
    is_ragged,
    product,
    without_ragged,
)
from operators.functions.base import Reduction, check_flops
from operators.streams.reading import (
    Lockstep,
    Orders,
    Types,
    charged,
    check_inputs,
    load_cycles,
    placed,
    send,
    tracked_as,
    unpacked_types,
)


@dataclass(frozen=True)
class Accumulating(ComputeOperator):
    family = "Higher-order (Table 5)"

    reduction: Reduction
    rank: int = 1
    to_memory: bool = False

    def __call__(self, *inputs: Stream) -> Stream:
        return self.wire(*inputs)[0]

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.reduction.fixed_cycles is None

    def operand_types(self, inputs: tuple[Stream, ...]) -> tuple[TileType, ...]:
        """Return the types of the operands; refuse inputs that do not fit the reduction or rank."""
        name = f"{type(self).__name__}({type(self.reduction).__name__})"
        check_inputs(name, inputs)
        source = inputs[0]
        if not 1 <= self.rank <= source.rank:
            raise ShapeError(
                f"{name} folds rank {self.rank}, but {source} has rank {source.rank}: "
                f"expected 1 <= rank <= {source.rank}"
            )
        return self.reduction.check(name, unpacked_types([stream.value for stream in inputs]))

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        operands = unpacked_types([stream.value for stream in inputs])
        result = outputs[0].value
        first, artifact = artifact_bytes(inputs[0].value), artifact_bytes(result)
        flops = self.reduction.flops(*operands)
        check_flops(self.reduction, flops)
        return Costs(
            on_chip_bytes=self.reduction.operand_bytes(*operands) + result.size_bytes,
            flops=inputs[0].count * flops,
            artifact_on_chip_bytes=artifact,
            # With two inputs, the authors count three elements of the first, and no accumulator.
            artifact_fifo_bytes=first if len(inputs) == 1 else 3 * first - artifact,
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        cycles = rates.compute(self.reduction, *unpacked_types([stream.value for stream in inputs]))
        cycles, source = max(cycles, rates.load(inputs)), inputs[0]
        # An Accum takes a group before it sends an element; a Scan takes one element.
        group = product(source.shape[len(outputs[0].shape) :])
        return Work(
            cycles=source.count * cycles,
            first_cycles=group * cycles,
            last_cycles=cycles,
            gathers=group,
            in_memory=self.to_memory and not self.reduction.keeps_placement,
        )


class Accumulator:
    def __init__(self, ports: Ports, operator: Accumulating) -> None:
        self._ports = ports
        self._unit = ports.compute_unit
        self._reduction = operator.reduction
        self._to_memory = operator.to_memory
        self._functional = ports.functional
        self._result = ports.output_types[0].value
        self._cycles = ports.numbers_of(self._reduction, "cycles")
        self._finish = ports.values_of(self._reduction, "finish")
        self._growth_bytes = ports.numbers_of(self._reduction, "growth_bytes")
        self._update = ports.update_of(self._reduction)
        self._start_bytes = ports.numbers_of(self._reduction, "start_bytes")(self._result)
        self._store_cycles = self._unit.transfer(self._start_bytes) if operator.to_memory else 0
        self._held_bytes = 0
        self._last: list[Value] = []
        self._state = self._reduction.start(self._result, self._functional)

    async def update(self, values: list[Value], *, stored: bool) -> None:
        """Fold in an element; charge the longest of load, compute and, if ``stored``, store."""
        unit = self._unit
        grows = self._growth_bytes(self._state, *values) if not self._start_bytes else 0
        if not self._held_bytes:
            grows += self._start_bytes
        if grows:
            await self._ports.on_chip.allocate(
                unit, grows, "an accumulator", held_bytes=self._held_bytes
            )
            self._held_bytes += grows
        self._state = self._update(self._state, *values)
        self._last = values
        load = sum([load_cycles(unit, value) for value in values])
        compute = self._cycles(unit, *values)
        unit.charge(charged(unit, max(load, compute, self._store_cycles if stored else 0)))

    @property
    def memory(self) -> tuple[object, int]:
        """The state that later cycles and results depend on, and its bytes on chip."""
        return self._state, self._held_bytes

    def value(self) -> Value:
        value = self._finish(self._state, self._result, self._functional)
        value = tracked_as(value, self._last)
        if self._reduction.keeps_placement:
            return value
        return placed(value, in_memory=self._to_memory)

    def restart(self) -> None:
        self._state = self._reduction.start(self._result, self._functional)
        if self._held_bytes:
            self._ports.on_chip.release(self._unit, self._held_bytes, self._unit.now)
            self._held_bytes = 0


@dataclass(frozen=True)
class Accum(Accumulating):
    """Fold the innermost ``rank`` dimensions of one stream, or of several with the same shape.

    Shapes:
        inputs: [D_a, ..., D_rank, ..., D_0]; each item of a tuple is a separate operand.
        output: [D_a, ..., D_rank]. An empty group gives the initial value.

    Timing:
        Per element, the longer of loading and computing. With ``to_memory``, the last element of a
        group takes at least as long as storing an accumulator of the initial size. The slots of
        the inputs are freed before the output waits for a slot.

    Memory:
        On chip, one accumulator, from the first element of a group until the result is sent.
        MatmulSum also keeps operands, as Matmul does in a Map.

    Attributes:
        reduction: the function that accumulates.
        rank: number of dimensions that are folded, at least 1.
        to_memory: whether the output is written to a memory unit, from which its readers load it.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     total = Accum(Sum(), rank=2)(rows)
        ...     LinearOffChipStore("y")(total)
        >>> program.expect(y=lambda: x.sum(axis=0, keepdims=True))
        >>> print(rows.type)
        [1, 4, 1] of 1x4 bfloat16
        >>> print(total.type)
        [1] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    conducted = turns = True

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        operands = self.operand_types(inputs)
        shape = inputs[0].shape
        group = product(shape[-self.rank :])
        result = self.reduction.infer(group, *operands)
        if is_ragged(group) and any(without_ragged(operand) != operand for operand in operands):
            # The mean over groups differs from the mean over elements.
            result = wiring.renewed_value(result)
        return (StreamType(shape[: -self.rank], result),)

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        source = inputs[0]
        if isinstance(source, str):
            return (source,)
        group = product(types[0].shape[-self.rank :])
        nests = source.cut(group) if isinstance(group, int) else None
        if nests is None:
            return ("data decide how large its groups are",)
        return (self.reduction.layout(source, *nests),)

    @override
    async def run(self, ports: Ports) -> None:
        rank, sink = self.rank, ports.sink
        accumulator = Accumulator(ports, self)
        inputs = Lockstep[Value](ports, sink, adds=-rank)
        async for values, stop in inputs:
            if not isinstance(values[0], Empty):
                await accumulator.update(values, stored=stop >= rank)
            inputs.take()
            if stop >= rank:
                await sink.send((accumulator.value(), stop - rank))
                accumulator.restart()
            ports.turn(accumulator.memory)


@dataclass(frozen=True)
class Scan(Accumulating):
    """Replace every element by the accumulation up to and including the element.

    Shapes:
        inputs: [D_a, ..., D_0]; each item of a tuple is a separate operand; output: the same shape.
        The accumulator restarts after each group of the innermost ``rank`` dimensions.

    Timing:
        As in Accum, but with ``to_memory`` every element takes at least as long as storing an
        accumulator of the initial size.

    Memory:
        On chip, one accumulator, from the first element of a group until the last one is sent.

    Attributes:
        reduction: the function that accumulates.
        rank: number of dimensions of a group, at least 1.
        to_memory: whether the output is written to a memory unit, from which its readers load it.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     LinearOffChipStore("y")(Scan(Sum(), rank=2)(rows))
        >>> program.expect(y=lambda: x.cumsum(axis=0))
        >>> print(simulate(program).verified)
        True
    """

    conducted = turns = True

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        operands = self.operand_types(inputs)
        value = self.reduction.infer(1, *operands)
        if value != self.reduction.infer(2, *operands):
            # The size of the accumulator changes with the number of elements.
            count = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
            value = self.reduction.infer(count, *operands)
        return (StreamType(inputs[0].shape, value),)

    @override
    async def run(self, ports: Ports) -> None:
        rank, sink = self.rank, ports.sink
        accumulator = Accumulator(ports, self)
        inputs = Lockstep[Value](ports)
        async for values, stop in inputs:
            value = values[0]
            if not isinstance(value, Empty):
                await accumulator.update(values, stored=True)
                value = accumulator.value()
            inputs.take()
            await send(sink, value, stop)
            if stop >= rank:
                accumulator.restart()
            ports.turn(accumulator.memory)
