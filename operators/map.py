"""Map: apply a function to every element of a stream, or of several streams of one shape.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Stream, StreamType, TileType
from fabric.extend import ComputeOperator, Costs, Ports, Rates, Value, Wiring, Work, artifact_bytes
from operators.functions.base import Function, check_flops
from operators.streams.reading import (
    Lockstep,
    Orders,
    Types,
    charged,
    check_inputs,
    load_cycles,
    placed,
    size_bytes,
    tracked_as,
    unpacked_types,
)


@dataclass(frozen=True)
class Map(ComputeOperator):
    """Apply ``function`` to every element.

    Shapes:
        inputs: one or more streams [D_a, ..., D_0]; output: the same shape. Each item of a tuple is
        a separate operand.

    Timing:
        An element takes as long as the longest of three: loading the inputs that are in memory, one
        after the other; computing; storing the output, with ``to_memory``. The slots of the inputs
        are freed when the output is sent.

    Memory:
        On chip, the operands that the function keeps. Matmul and AttentionScores keep the second
        operand, and 16 bytes for each column of the first. The other functions keep none.

    Attributes:
        function: the function that turns the operands into a value.
        to_memory: whether the output is written to a memory unit, from which its readers load it.

    Example:
        >>> a, b = np.ones((16, 64)), np.ones((64, 32))
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(16, 64))()
        ...     right = LinearOffChipLoad(b, tile=(64, 32))()
        ...     product = Map(Matmul(), flops_per_cycle=1024)(left, right)
        ...     LinearOffChipStore("y")(product)
        >>> program.expect(y=lambda: a @ b)
        >>> print(product.type)
        [1, 1, 1] of 16x32 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    family = "Higher-order (Table 5)"
    conducted = turns = True

    function: Function
    to_memory: bool = False

    def __call__(self, *inputs: Stream) -> Stream:
        return self.wire(*inputs)[0]

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.function.fixed_cycles is None

    @property
    @override
    def joins_elements(self) -> bool:
        return self.function.elementwise

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        name = f"Map({type(self.function).__name__})"
        check_inputs(name, inputs)
        operands = self.function.check(name, unpacked_types([stream.value for stream in inputs]))
        return (StreamType(inputs[0].shape, self.function.infer(*operands)),)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        operands = unpacked_types([stream.value for stream in inputs])
        flops = self.function.flops(*operands)
        check_flops(self.function, flops)
        return Costs(
            on_chip_bytes=self.function.operand_bytes(*operands),
            flops=inputs[0].count * flops,
            artifact_fifo_bytes=sum(artifact_bytes(stream.value) for stream in (*inputs, *outputs)),
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        cycles = rates.compute(self.function, *unpacked_types([stream.value for stream in inputs]))
        cycles = max(cycles, rates.load(inputs))
        if self.to_memory:
            cycles = max(cycles, rates.transfer(outputs[0].value))
        return Work.each(inputs[0].count, cycles, passes=True, in_memory=self.to_memory)

    @override
    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:
        value = outputs[0].value
        if not self.function.elementwise:
            return (f"{type(self.function).__name__} makes another tensor",)
        orders = [
            order
            for order in inputs
            if not isinstance(order, str)
            and isinstance(value, TileType)
            and (order.rows, order.cols) == (value.rows, value.cols)
        ]
        if not orders:
            reasons = (order for order in inputs if isinstance(order, str))
            return (next(reasons, "it makes other tiles"),)
        for other in orders[1:]:
            if other.shape == orders[0].shape and not other.same_order(orders[0]):
                return (f"it joins ({orders[0]}) with ({other})",)
        return (orders[0],)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.compute_unit
        apply = ports.values_of(self.function, "apply")
        cycles = ports.numbers_of(self.function, "cycles")
        inputs = Lockstep[Value](ports, sink, held=True)
        async for values, stop in inputs:
            result = placed(tracked_as(apply(*values), values), in_memory=self.to_memory)
            load = sum([load_cycles(unit, value) for value in values])
            store = unit.transfer(size_bytes(result)) if self.to_memory else 0
            unit.charge(charged(unit, max(load, cycles(unit, *values), store)))
            await sink.send((result, stop))
            inputs.take()
            ports.turn()
