"""Streams, operators and functions for the rows of ``table.txt``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

import fabric as fab
import fabric.extend as ext
import operators as op
from operators import Function
from tests.bases import Passing, Source
from tests.operators.driving import NUMBER, Emit, ragged, tile  # noqa: F401 - for the table
from tests.operators.writing import read

Types = tuple[fab.StreamType, ...]

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)
TILE, COLUMN, FLOAT = fab.TileType(2, 4, F32), fab.TileType(2, 1, F32), fab.TileType(1, 1, F32)
RAGGED = N = ragged(0)
M = ragged(1)
X = np.arange(32, dtype=np.float32).reshape(4, 8)


def stream(*shape: Any, value: ext.ValueType = TILE) -> fab.Stream:
    return Emit(fab.StreamType(shape, value), [])()


def steered(width: int, *shape: Any) -> fab.Stream:
    return stream(*shape, value=fab.SelectorType(width))


def buffers(*shape: Any, of: tuple[Any, ...]) -> fab.Stream:
    return stream(*shape, value=ext.BufferType(of, TILE))


def tuples(count: int) -> fab.Stream:
    return stream(2, value=fab.TupleType((TILE,) * count))


def written(text: str, *shape: Any) -> fab.Stream:
    return Emit(fab.StreamType(shape, NUMBER), read(text))()


def _traced() -> fab.Trace:
    with fab.Program("traced") as program:
        tiles = op.LinearOffChipLoad(np.ones((32, 32), np.float32), tile=(16, 16), name="tiles")()
        others = (
            op.Selectors(np.array([[0], [1]]), 2, name="selectors")(),
            op.Metadata(np.array([1, 2]), name="integers")(),
        )
        for each in (tiles, *others):
            op.Consumer()(each)
        op.LinearOffChipStore("y", name="store")(tiles)
    return fab.simulate(program, trace="events").trace()


TRACE = _traced()


def addresses(values: Any) -> fab.Stream:
    array = np.asarray(values, np.int32)[:, np.newaxis]
    return op.Flatten(0, 2)(op.LinearOffChipLoad(array, (1, 1))())


def line(count: int, size: tuple[int, int] = (1, 1)) -> fab.Stream:
    data = np.ones((size[0] * count, size[1]))
    stored = op.Tensor(data.shape, data, dtype="float32")
    return op.Flatten(0, 1)(op.LinearOffChipLoad(stored, size, (count,), (1,))())


PAIR = fab.TileType(1, 2, F32)


def pair(rows: Any = 1, cols: Any = 2, dtype: Any = F32, data: Any = 0, **more: Any) -> fab.Tile:
    return fab.Tile(
        rows, cols, dtype, np.zeros((1, 2), F32) if isinstance(data, int) else data, **more
    )


@dataclass(frozen=True)
class Sends(Source):
    elements: Any
    value: ext.ValueType = field(default_factory=ext.BoolType)
    shape: tuple[int, ...] = (3,)

    @override
    def infer(self, wiring: ext.Wiring, *inputs: fab.Stream) -> Types:
        return (fab.StreamType(self.shape, self.value),)

    @override
    async def run(self, ports: ext.Ports) -> None:
        for element in self.elements:
            await ports.sink.send(element)


def parted() -> tuple[fab.Stream, ...]:
    selectors = op.Selectors(np.array([[0], [1], [1]]), 2)()
    return op.Partition(2)(line(3), op.Flatten(0, 1)(selectors))


@dataclass(frozen=True)
class Memory(ext.OffChipDescription):
    model = "own"
    request_bytes = 64
    peak_bytes_per_cycle = 64


def on(memory: ext.OffChipDescription) -> fab.Program:
    with fab.hardware_scope(fab.Hardware(hbm=memory)), fab.Program("on") as program:
        op.Consumer()(line(4))
    return program


class Copy(Passing):
    @override
    async def run(self, ports: ext.Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


class Half(Passing):
    @override
    def infer(self, wiring: ext.Wiring, *inputs: fab.Stream) -> Types:
        return (fab.StreamType((ext.ceil_div(inputs[0].shape[0], 2),), inputs[0].value),)

    @override
    async def run(self, ports: ext.Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            await ports.source.receive()


class Fields(Half):
    count: int


@dataclass(frozen=True)
class Own(Function):
    limit: float

    def __init__(self, limit: float) -> None:
        self.limit = limit  # type: ignore[misc]  # here

    @override
    def infer(self, *inputs: Any) -> fab.TileType:
        result: fab.TileType = inputs[0]
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
    def infer(self, wiring: ext.Wiring, *inputs: fab.Stream) -> Types:
        found: Types = self.types(inputs[0])
        return found


@dataclass(frozen=True)
class Bounded(Half):
    limit: int | None = None


@dataclass(frozen=True)
class Costly(Half):
    amounts: Any

    @override
    def infer(self, wiring: ext.Wiring, *inputs: fab.Stream) -> Types:
        return (fab.StreamType(inputs[0].shape, ext.BoolType()),)

    @override  # here
    def costs(self, inputs: Types, outputs: Types) -> ext.Costs:
        found: ext.Costs = self.amounts()
        return found


@dataclass(frozen=True)
class Paced(Half):
    least: Any

    @override  # here
    def work(self, inputs: Types, outputs: Types, rates: ext.Rates) -> ext.Work | None:
        found: ext.Work | None = self.least()
        return found
