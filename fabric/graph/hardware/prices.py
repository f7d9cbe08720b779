"""What the events and the parts of a fabric cost: seconds, joules, and area of a die.

The clock says what a cycle is in seconds; a byte and a FLOP are priced in joules. Every number is
optional; what is not stated is not priced. Areas are ranges, from low to high: figures for one
thing differ by ten between tools and sources, so that none is given alone. An area that is not
stated is not known, which is not the same as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import refuse
from fabric.graph.arguments.sections import Section
from fabric.messages.telling.errors import ConfigurationError

__all__ = ["AreaDescription", "ClockDescription", "EnergyDescription", "Range"]

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


Bound: TypeAlias = Annotated[float, Bounds(0, 10**6)]

Range: TypeAlias = tuple[Bound, Bound]
"""From low to high."""


@dataclass(frozen=True, kw_only=True)
class AreaDescription(Section):
    """Square millimetres, each as two numbers: low and high.

    Attributes:
        small_memory_mm2_per_kib: of 1,024 bytes of a memory unit with at most
            ``small_memory_bytes``.
        memory_mm2_per_kib: of those of a larger one.
        small_memory_bytes: up to which a memory unit is small.
        slot_mm2_per_byte: of a byte in a slot of a channel; a few slots are registers, no SRAM.
        link_mm2_per_byte_per_cycle: of a byte a cycle that a link of the network carries, with its
            part of the router at its end; so of a way into a site, and out of it.
        float32_flop_mm2: of one operation a cycle on numbers of this element type; the others
            alike.
    """

    small_memory_mm2_per_kib: Range | None = None
    memory_mm2_per_kib: Range | None = None
    small_memory_bytes: Annotated[int, Bounds(0, 2**40)] = 4096
    slot_mm2_per_byte: Range | None = None
    link_mm2_per_byte_per_cycle: Range | None = None
    float32_flop_mm2: Range | None = None
    float16_flop_mm2: Range | None = None
    bfloat16_flop_mm2: Range | None = None
    float8_e4m3_flop_mm2: Range | None = None
    float8_e5m2_flop_mm2: Range | None = None
    int4_flop_mm2: Range | None = None
    int8_flop_mm2: Range | None = None
    int16_flop_mm2: Range | None = None
    int32_flop_mm2: Range | None = None
    int64_flop_mm2: Range | None = None
    uint8_flop_mm2: Range | None = None
    uint16_flop_mm2: Range | None = None
    uint32_flop_mm2: Range | None = None

    @override
    def __post_init__(self) -> None:
        """Refuse ranges whose low end is above the high one.

        Raises:
            ConfigurationError: there is one, or a value is out of its bounds.
        """
        super().__post_init__()
        for name, value in vars(self).items():
            if isinstance(value, tuple) and value[0] > value[1]:
                refuse(
                    f"AreaDescription: {name} is from {value[0]:g} to {value[1]:g}: expected the "
                    "low end first",
                    ConfigurationError,
                )

    @override
    def _stated(self) -> dict[str, object]:
        """Return what is stated; nothing where nothing has an area."""
        return super()._stated() if self.is_stated else {}

    @property
    def is_stated(self) -> bool:
        """Whether anything has an area."""
        return any(isinstance(each, tuple) for each in vars(self).values())

    def flop_mm2(self, dtype: str) -> Range | None:
        """Return what one operation a cycle on numbers of the element type ``dtype`` takes."""
        found: Range | None = getattr(self, f"{dtype}_flop_mm2", None)
        return found
