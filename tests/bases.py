"""What small operators of tests have in common: no costs, and how they are wired."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Stream, StreamType
from fabric.extend import Costs, Operator, Wiring

__all__ = ["Costless", "Hop", "Sink", "Source"]


@dataclass(frozen=True)
class Costless(Operator):
    """Holds, moves and computes nothing."""

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()


@dataclass(frozen=True)
class Source(Costless):
    """Makes one stream of none."""

    def __call__(self) -> Stream:
        """Return the stream."""
        return self.wire()[0]


@dataclass(frozen=True)
class Hop(Costless):
    """Makes of one stream another of the same type."""

    def __call__(self, source: Stream) -> Stream:
        """Return the stream."""
        return self.wire(source)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,)


@dataclass(frozen=True)
class Sink(Costless):
    """Ends one stream."""

    def __call__(self, source: Stream) -> None:
        """End the stream."""
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()
