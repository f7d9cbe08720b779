"""Operators that only tests need."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Selector, SelectorType, Stream, StreamType
from fabric.extend import Ports, Wiring
from tests.bases import Source


@dataclass(frozen=True)
class HitList(Source):
    hits: tuple[tuple[int, ...], ...]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1, len(self.hits)), SelectorType(2)),)

    @override
    async def run(self, ports: Ports) -> None:
        for number, hits in enumerate(self.hits):
            await ports.sink.send((Selector(hits, 2), int(number == len(self.hits) - 1)))
