"""Operators that the fabric inserts into programs: Broadcast and Initial.

Sources: Broadcast is in Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2; its timing
follows the authors' simulator. Initial is the delay of E. Lee and D. Messerschmitt, Synchronous
Data Flow, Proceedings of the IEEE, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typing_extensions import override

from fabric.graph.arguments.checks import Bounds, Unfit, array_of
from fabric.graph.values.conversion import ValueChangedError, converted
from fabric.graph.values.dims import Dim, is_static
from fabric.graph.values.fit import kept_as
from fabric.graph.values.stream_type import (
    BoolType,
    SelectorType,
    StreamType,
    TileType,
    TupleType,
    Types,
    ValueType,
    holds_buffers,
)
from fabric.graph.values.value import ADDRESS_DTYPE, Empty, Selector, Tile, Value, dtype_name, share
from fabric.graph.wiring.costs import Rates, Work
from fabric.graph.wiring.operator import Node, Operator, Wiring
from fabric.graph.wiring.stream import Feedback, Stream
from fabric.messages.errors import ShapeError

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program
    from fabric.timing.engine.ports import Ports


@dataclass(frozen=True)
class Broadcast(Operator):
    """Repeat a stream on ``readers`` outputs.

    Shapes:
        source and every output: [D_a, ..., D_0].

    Timing:
        No cycles. An element waits for a slot in each output, in order.

    Attributes:
        readers: number of outputs.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     one, other = Broadcast(2)(rows)
        ...     LinearOffChipStore("y")(Map(Mul())(one, other))
        >>> print(one.type)
        [1, 4, 1] of 1x64 bfloat16
        >>> print(simulate(program).cycles)
        110
    """

    conducted = turns = carries_numbers = keeps_order = True

    readers: Annotated[int, Bounds(1)]

    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        return (source.type,) * self.readers

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(passes=True, in_memory=rates.in_memory[0])

    @override
    async def run(self, ports: Ports) -> None:
        source, sinks = ports.source, ports.outputs
        buffers = holds_buffers(ports.input_types[0].value)
        while (element := await source.receive()) is not None:
            if buffers:
                share(element[0], len(sinks) - 1)
            for sink in sinks:
                await sink.reserve()
            for sink in sinks:
                sink.put(element)
            ports.turn()


@dataclass(frozen=True)
class Initial(Operator):
    """Put ``count`` sub-tensors in front of a stream; each of their elements is ``value``.

    In a loop, every operator waits for the output of another one.
    ``loop.connect(Initial(0, keep_length=True)(stream))`` gives the loop an element to begin with,
    and drops the last element, which does not enter the loop again. Without ``keep_length`` the
    loop ends when one of its operators ends, for instance a Reassemble without further selectors.

    Shapes:
        source: [D_a, D_a-1, ..., D_0], with D_a-1 to D_0 numbers of at least 1; output:
        [D_a + count, D_a-1, ..., D_0]. With ``keep_length`` D_a is a number of at least ``count``,
        and the output has the shape of the source. At rank 0, ``count`` elements without stops come
        first; at a higher rank, whole sub-tensors [D_a-1, ..., D_0] with the stops that close them.

    Timing:
        No cycles. The elements in front leave at cycle 0 if the channel has slots for them. They
        are not in memory.

    Attributes:
        value: for a tile, a number or rows x cols numbers. For a selector, an index or several.
            For a bool, a truth value. For a tuple, a tuple with a value for each item.
        count: number of sub-tensors, at least 1.
        keep_length: drop the last ``count`` sub-tensors, so that the stream is delayed and keeps
            its length.

    Example:
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((2, 4)), tile=(1, 4))())
        ...     longer = Initial(0)(rows)
        ...     LinearOffChipStore("y")(Promote(0)(longer))
        >>> program.expect(y=lambda: np.array([0, 1, 1])[:, None] * np.ones((3, 4)))
        >>> print(longer.type)
        [3] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    conducted = True

    value: Any
    count: int = 1
    keep_length: bool = False

    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        outer, *inner = source.shape
        puts = f"Initial puts {self.value!r} in front of {source}"
        if self.count < 1:
            puts = f"Initial puts {self.count} sub-tensors in front of {source}"
            raise ShapeError(f"{puts}: expected at least 1")
        if self.keep_length and not (isinstance(outer, int) and outer >= self.count):
            expected = f"an outermost dimension that is a number, at least {self.count}"
            raise ShapeError(
                f"Initial drops the last {self.count} of {source}: expected {expected}"
            )
        if not all(isinstance(dim, int) and dim > 0 for dim in inner):
            raise ShapeError(f"{puts}: expected inner dimensions that are numbers above 0")
        try:
            _value_of(self.value, source.value, functional=True)
        except ValueError as error:
            raise ShapeError(f"{puts}: expected {error}") from None
        if self.keep_length:
            return (source.type,)
        front = wiring.absorb(outer + self.count, ragged=False)
        return (StreamType((front, *inner), source.value),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(needs="none")

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        type_ = ports.input_types[0]
        value = _value_of(self.value, type_.value, functional=ports.functional)
        rank, expected = type_.rank, type_.shape[0]
        dropped = self.count if self.keep_length else 0
        for left in reversed(range(ports.repeats)):
            for _ in range(self.count):
                for stop in _stops(type_.shape[1:]):
                    await sink.send((value, stop))
            # Each input of the program gets the same beginning. If the stream has a known length,
            # elements are counted: in a loop, its end comes only after this operator has ended.
            counts = isinstance(expected, int) and (left or self.keep_length)
            groups = expected if counts else -1
            while groups and (element := await source.receive()) is not None:
                is_dropped = 0 <= groups <= dropped
                groups -= element[1] >= rank
                if is_dropped:
                    continue
                if isinstance(element[0], Empty):
                    await sink.send_bare(element[1], element[0].dimension)
                else:
                    await sink.send(element)
            if groups < 0:
                break


def any_value(type_: ValueType) -> object:
    """Return a value of ``type_`` that ``Initial`` accepts; None if it accepts no such values."""
    match type_:
        case BoolType():
            return True
        case SelectorType(hits=1 | None):
            return 0
        case SelectorType():
            return tuple(range(type_.hits or 0))
        case TileType() if is_static(type_.rows) and is_static(type_.cols):
            return 0
        case TupleType():
            items = tuple(map(any_value, type_.items))
            return None if None in items else items
        case _:
            return None


def beginning(feedback: Feedback, count: int) -> Initial:
    """Return an Initial for ``feedback``, with ``count`` sub-tensors of any value."""
    stream = feedback.connected
    return Initial(any_value(stream.value), count, isinstance(stream.shape[0], int))


def in_front(program: Program, feedback: Feedback, count: int, name: str) -> Node:
    """Return the node of an operator ``beginning``, between ``feedback`` and its stream."""
    stream, place = feedback.connected, feedback.connected_at or feedback.place
    node = Node(beginning(feedback, count), name, place, (stream,))
    types = node.operator.infer(Wiring(program, name), stream)
    node.outputs = tuple(Stream(node, port, type_) for port, type_ in enumerate(types))
    return node


def _stops(shape: Sequence[Dim]) -> Iterator[int]:
    """Yield the level of the stop of each element of a tensor."""
    sizes = [math.prod(shape[-dims:]) for dims in range(1, len(shape) + 1)]
    for number in range(1, math.prod(shape) + 1):
        yield sum(number % size == 0 for size in sizes)


def _value_of(value: object, type_: ValueType, *, functional: bool) -> Value:
    """Return ``value`` as a value of ``type_``, or raise ValueError."""
    match type_:
        case BoolType():
            if not isinstance(value, bool):
                raise ValueError("True or False")
            return value
        case SelectorType():
            return _selector(value, type_)
        case TileType():
            return _tile(value, type_, functional=functional)
        case TupleType():
            items = type_.items
            if not isinstance(value, tuple) or len(value) != len(items):
                raise ValueError(f"a tuple of {len(items)}")
            pairs = zip(value, items, strict=True)
            return tuple(_value_of(part, item, functional=functional) for part, item in pairs)
        case _:
            raise ValueError("a stream without buffers")


def _selector(value: Any, type_: SelectorType) -> Selector:
    try:
        hits = {index(hit) for hit in (value if isinstance(value, Iterable) else (value,))}
    except TypeError:
        hits = {-1}
    fits = type_.hits is None or type_.hits == len(hits)
    if not fits or not hits <= set(range(type_.width)):
        number = {None: "indices", 1: "1 index"}.get(type_.hits, f"{type_.hits} indices")
        raise ValueError(f"{number} from 0 to {type_.width - 1}")
    return Selector(tuple(sorted(hits)), type_.width)


def _tile(value: object, type_: TileType, *, functional: bool) -> Tile:
    rows, cols = type_.rows, type_.cols
    if not isinstance(rows, int) or not isinstance(cols, int):
        raise ValueError("tiles whose rows and columns are numbers")
    numbers = f"a number, or {rows}x{cols} of them"
    try:
        array = array_of(value)
    except Unfit:
        raise ValueError(numbers) from None
    if array.shape not in ((), (rows, cols)):
        raise ValueError(numbers)
    try:
        data = converted(array, type_.dtype)
    except ValueChangedError as error:
        held = f"numbers that {dtype_name(type_.dtype)} can hold"
        raise ValueError(numbers if error.number is None else held) from None
    # Addresses and lengths have data in both modes.
    has_data = functional or type_.dtype == ADDRESS_DTYPE
    if not has_data:
        return Tile(rows, cols, type_.dtype)
    data = data if data.dtype == kept_as(type_.dtype) else array.astype(kept_as(type_.dtype))
    return Tile(rows, cols, type_.dtype, np.broadcast_to(data, (rows, cols)))
