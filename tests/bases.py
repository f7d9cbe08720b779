from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Stream, StreamType
from fabric.extend import Operator, Wiring


@dataclass(frozen=True)
class Source(Operator):
    def __call__(self) -> Stream:
        return self.wire()[0]


@dataclass(frozen=True)
class Passing(Operator):
    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,)


@dataclass(frozen=True)
class Sink(Operator):
    def __call__(self, source: Stream) -> None:
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()
