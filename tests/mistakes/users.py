"""Operators and functions as somebody writes them on a first day, each with a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from fabric import Stream, StreamType, TileType
from fabric.extend import (
    BoolType,
    Costs,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    ceil_div,
)
from operators import Function

Types = tuple[StreamType, ...]


class Half(Operator):
    """Without a mistake: every second element of a stream of rank 0."""

    def __call__(self, source: Stream) -> Stream:
        """Return a stream."""
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
        """Return a stream."""
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
        """Set what is frozen."""
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
    """Infers whatever ``types`` returns for a stream."""

    types: Any

    @override  # here
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        found: Types = self.types(inputs[0])
        return found


@dataclass(frozen=True)
class Bounded(Half):
    """A user's own operator with a field of its own."""

    limit: int | None = None


@dataclass(frozen=True)
class Costly(Half):
    """Costs whatever ``amounts`` returns."""

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
    """Does at least what ``least`` returns."""

    least: Any

    @override  # here
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work | None:
        found: Work | None = self.least()
        return found
