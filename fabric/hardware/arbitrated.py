"""An off-chip memory behind an arbiter, as ``[hbm] model = "arbitrated"`` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.hardware.description import OffChipDescription

__all__ = ["ArbitratedDescription"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**20)]


@dataclass(frozen=True, kw_only=True)
class ArbitratedDescription(OffChipDescription):
    """Readers that ask for all they will need, an arbiter, and one port to a memory without banks.

    A reader asks for its whole stream, one request a cycle, and is answered in the order in which
    the arbiter sent the requests of all. Only units that announce what they read have more than one
    burst asked for.

    Attributes:
        request_bytes: moved by one request.
        tag_bytes: stored with each burst.
        interval_cycles: between the starts of two requests.
        latency_cycles: from the start of a read to its answer.
        reads_in_flight: of all readers together.
        answers: that wait for one reader before its requests lose their turn.
    """

    model: ClassVar[str] = "arbitrated"

    request_bytes: Count = 512
    tag_bytes: Annotated[int, Bounds(0, 2**20)] = 0
    interval_cycles: Count = 2
    latency_cycles: Count = 30
    reads_in_flight: Count = 64
    answers: Count = 128

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        return Fraction(self.request_bytes, self.interval_cycles)
