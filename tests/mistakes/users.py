"""Streams, operators and functions for the rows of ``table.txt``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

import operators as op
from fabric import (
    Hardware,
    Program,
    SelectorType,
    Stream,
    StreamType,
    Tile,
    TileType,
    TupleType,
    hardware_scope,
)
from fabric.extend import (
    BoolType,
    BufferType,
    Costs,
    OffChipDescription,
    Operator,
    Ports,
    Rates,
    ValueType,
    Wiring,
    Work,
    ceil_div,
)
from operators import Function
from tests.bases import Source
from tests.operators.driving import NUMBER, Emit, ragged, tile  # noqa: F401 - for the table
from tests.operators.writing import read

Types = tuple[StreamType, ...]

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)
TILE, COLUMN, FLOAT = TileType(2, 4, F32), TileType(2, 1, F32), TileType(1, 1, F32)
RAGGED = N = ragged(0)
M = ragged(1)
X = np.arange(32, dtype=np.float32).reshape(4, 8)


def stream(*shape: Any, value: ValueType = TILE) -> Stream:
    return Emit(StreamType(shape, value), [])()


def steered(width: int, *shape: Any) -> Stream:
    return stream(*shape, value=SelectorType(width))


def buffers(*shape: Any, of: tuple[Any, ...]) -> Stream:
    return stream(*shape, value=BufferType(of, TILE))


def tuples(count: int) -> Stream:
    return stream(2, value=TupleType((TILE,) * count))


def written(text: str, *shape: Any) -> Stream:
    return Emit(StreamType(shape, NUMBER), read(text))()


def addresses(values: Any) -> Stream:
    array = np.asarray(values, np.int32)[:, np.newaxis]
    return op.Flatten(0, 2)(op.LinearOffChipLoad(array, (1, 1))())


def line(count: int, size: tuple[int, int] = (1, 1)) -> Stream:
    data = np.ones((size[0] * count, size[1]))
    stored = op.Tensor(data.shape, data, dtype="float32")
    return op.Flatten(0, 1)(op.LinearOffChipLoad(stored, size, (count,), (1,))())


PAIR = TileType(1, 2, F32)


def pair(rows: Any = 1, cols: Any = 2, dtype: Any = F32, data: Any = 0, **more: Any) -> Tile:
    return Tile(rows, cols, dtype, np.zeros((1, 2), F32) if isinstance(data, int) else data, **more)


@dataclass(frozen=True)
class Sends(Source):
    elements: Any
    value: ValueType = field(default_factory=BoolType)
    shape: tuple[int, ...] = (3,)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return (StreamType(self.shape, self.value),)

    @override
    async def run(self, ports: Ports) -> None:
        for element in self.elements:
            await ports.sink.send(element)


def parted() -> tuple[Stream, ...]:
    selectors = op.Selectors(np.array([[0], [1], [1]]), 2)()
    return op.Partition(2)(line(3), op.Flatten(0, 1)(selectors))


@dataclass(frozen=True)
class Memory(OffChipDescription):
    model = "own"
    request_bytes = 64
    peak_bytes_per_cycle = 64


def on(memory: OffChipDescription) -> Program:
    with hardware_scope(Hardware(hbm=memory)), Program("on") as program:
        op.Consumer()(line(4))
    return program


class Copy(Operator):
    def __call__(self, source: Stream) -> Any:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return (inputs[0].type,)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


class Half(Operator):
    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return (StreamType((ceil_div(inputs[0].shape[0], 2),), inputs[0].value),)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            await ports.source.receive()


class NoCosts(Operator):
    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return (inputs[0].type,)

    @override
    async def run(self, ports: Ports) -> None:
        await ports.source.receive()


class Fields(Half):
    count: int


@dataclass(frozen=True)
class Own(Function):
    limit: float

    def __init__(self, limit: float) -> None:
        self.limit = limit  # type: ignore[misc]  # here

    @override
    def infer(self, *inputs: Any) -> TileType:
        result: TileType = inputs[0]
        return result

    @override
    def flops(self, *inputs: Any) -> int:
        return 0

    @override
    def apply(self, *inputs: Any) -> Any:
        return inputs[0]


@dataclass(frozen=True)
class Limit(Function):
    limit: float

    @override
    def infer(self, *inputs: Any) -> Any:
        return None

    @override
    def flops(self, *inputs: Any) -> int:
        return 0

    @override
    def apply(self, *inputs: Any) -> Any:
        return inputs[0]


@dataclass(frozen=True)
class NoApply(Function):
    @override
    def infer(self, *inputs: Any) -> Any:
        return inputs[0]

    @override
    def flops(self, *inputs: Any) -> int:
        return 0


@dataclass(frozen=True)
class Infers(Half):
    types: Any

    @override  # here
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        found: Types = self.types(inputs[0])
        return found


@dataclass(frozen=True)
class Bounded(Half):
    limit: int | None = None


@dataclass(frozen=True)
class Costly(Half):
    amounts: Any

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        return (StreamType(inputs[0].shape, BoolType()),)

    @override  # here
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        found: Costs = self.amounts()
        return found


@dataclass(frozen=True)
class Paced(Half):
    least: Any

    @override  # here
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work | None:
        found: Work | None = self.least()
        return found
