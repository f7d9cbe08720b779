"""The clock of a fabric, and what its events cost: a cycle in seconds, a byte and a FLOP in joules.

Every number is optional; what is not stated is not priced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fabric.arguments.checks import Bounds
from fabric.arguments.sections import Section

__all__ = ["ClockDescription", "EnergyDescription"]

Frequency: TypeAlias = Annotated[float, Bounds(1, 10**15)]
Price: TypeAlias = Annotated[float, Bounds(0, 10**15)]


@dataclass(frozen=True, kw_only=True)
class ClockDescription(Section):
    """The clock that counts the cycles.

    Attributes:
        frequency_hz: cycles in a second; None: a run has no seconds.
    """

    frequency_hz: Frequency | None = None


@dataclass(frozen=True, kw_only=True)
class EnergyDescription(Section):
    """The energy of each event, in picojoules, and the static power, in watts.

    A price that is None is not known, which is not the same as 0: a run with events that have no
    price has no joules in all, only those of what is priced.

    Attributes:
        hbm_picojoules_per_byte: of whole requests, read or written.
        memory_write_picojoules_per_byte: of tiles written to a memory unit.
        memory_read_picojoules_per_byte: of tiles read from one.
        fifo_picojoules_per_byte: of values written to the slots of a channel and read from there,
            both together.
        hop_picojoules_per_byte: of values on their way through a channel, for every cycle of its
            latency.
        float32_flop_picojoules: of one operation on numbers of this element type; the others alike.
        static_watts: as long as the run lasts.
    """

    hbm_picojoules_per_byte: Price | None = None
    memory_write_picojoules_per_byte: Price | None = None
    memory_read_picojoules_per_byte: Price | None = None
    fifo_picojoules_per_byte: Price | None = None
    hop_picojoules_per_byte: Price | None = None
    float32_flop_picojoules: Price | None = None
    float16_flop_picojoules: Price | None = None
    bfloat16_flop_picojoules: Price | None = None
    float8_e4m3_flop_picojoules: Price | None = None
    float8_e5m2_flop_picojoules: Price | None = None
    int4_flop_picojoules: Price | None = None
    int8_flop_picojoules: Price | None = None
    int16_flop_picojoules: Price | None = None
    int32_flop_picojoules: Price | None = None
    int64_flop_picojoules: Price | None = None
    uint8_flop_picojoules: Price | None = None
    uint16_flop_picojoules: Price | None = None
    uint32_flop_picojoules: Price | None = None
    static_watts: Price | None = None

    @property
    def is_stated(self) -> bool:
        """Whether anything has a price."""
        return any(each is not None for each in vars(self).values())

    def flop_picojoules(self, dtype: str) -> float | None:
        """Return what one operation on numbers of the element type ``dtype`` costs."""
        price: float | None = getattr(self, f"{dtype}_flop_picojoules", None)
        return price
