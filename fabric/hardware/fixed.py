"""An off-chip memory without queues, as ``[hbm] model = "fixed"`` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.hardware.description import OffChipDescription

__all__ = ["FixedDescription"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


@dataclass(frozen=True, kw_only=True)
class FixedDescription(OffChipDescription):
    """A memory that answers a burst after the same time, whoever else asks.

    Attributes:
        request_bytes: moved by one request.
        latency_cycles: of every burst, beside its bytes.
        bytes_per_cycle: between the memory and one client, whole requests.
    """

    model: ClassVar[str] = "fixed"

    request_bytes: Count = 64
    latency_cycles: Annotated[int, Bounds(0, 2**31 - 1)] = 100
    bytes_per_cycle: Count = 64

    @property
    @override
    def peak_bytes_per_cycle(self) -> int:
        return self.bytes_per_cycle

    @override
    def peak_for(self, clients: int) -> Fraction:
        return Fraction(clients * self.bytes_per_cycle)

    def burst_cycles(self, requests: int) -> int:
        """Return the cycles from handing a burst over to seeing it complete."""
        return self.latency_cycles - (-requests * self.request_bytes // self.bytes_per_cycle)
