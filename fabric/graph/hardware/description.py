"""The sections of a hardware file as frozen, checked dataclasses.

Prices and areas that are missing are unknown, not 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from numbers import Rational
from typing import Annotated, ClassVar, Final, Literal, NamedTuple, TypeAlias

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.graph.hardware.latency import Mesh
from fabric.messages.text import found_text

Price: TypeAlias = Annotated[float, Bounds(0, 10**15)]

UnitKind: TypeAlias = Literal["compute", "memory", "routing"]
"""The kind of unit that an operator is placed on."""

Gap: TypeAlias = Annotated[int, Bounds(0, 2**30)]


@dataclass(frozen=True, kw_only=True)
class ClockDescription(Section):
    """The clock that counts the cycles.

    Attributes:
        frequency_hz: cycles per second; None: only cycles are reported, no seconds.
    """

    frequency_hz: Annotated[float, Bounds(1, 10**15)] | None = None


@dataclass(frozen=True, kw_only=True)
class EnergyDescription(Section):
    """The energy of each event, in picojoules, and the static power, in watts.

    None is an unknown price, not 0. If a run has events without a price, the report has the
    energy of the priced events and no total.

    Attributes:
        hbm_picojoules_per_byte: of whole requests, read or written.
        memory_write_picojoules_per_byte: of tiles written to a memory unit.
        memory_read_picojoules_per_byte: of tiles read from a memory unit.
        fifo_picojoules_per_byte: of a value, for writing it to a slot of a channel and reading it.
        hop_picojoules_per_byte: of a value in a channel, for each cycle of the latency.
        float32_flop_picojoules: of one operation on this element type; other types have their keys.
        static_watts: drawn during the whole run.
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
        """Whether any event has a price."""
        return any(price is not None for price in vars(self).values())

    def flop_picojoules(self, dtype: str) -> float | None:
        """Return the energy of one operation on numbers of the element type ``dtype``."""
        price: float | None = getattr(self, f"{dtype}_flop_picojoules", None)
        return price


Bound: TypeAlias = Annotated[float, Bounds(0, 10**6)]
Range: TypeAlias = tuple[Bound, Bound]
"""From low to high."""


@dataclass(frozen=True, kw_only=True)
class AreaDescription(Section):
    """Areas in square millimetres, each as two numbers: low and high.

    Attributes:
        small_memory_mm2_per_kib: per 1,024 bytes of a memory unit of at most
            ``small_memory_bytes``.
        memory_mm2_per_kib: per 1,024 bytes of a larger memory unit.
        small_memory_bytes: the size of the largest small memory unit.
        slot_mm2_per_byte: per byte of a slot of a channel. A few slots are registers, not SRAM.
        link_mm2_per_byte_per_cycle: per byte a cycle of a link's bandwidth, with the router's part
            for this link. Links into and out of a site have this area, too.
        float32_flop_mm2: per operation a cycle on this element type; other types have their keys.
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
    def _faults(self) -> Iterator[str]:
        for name, value in vars(self).items():
            if isinstance(value, tuple) and value[0] > value[1]:
                yield f"{name} is from {value[0]:g} to {value[1]:g}: expected the low end first"

    @override
    def _stated(self) -> dict[str, object]:
        return super()._stated() if self.is_stated else {}

    @property
    def is_stated(self) -> bool:
        """Whether any part has an area."""
        return any(isinstance(value, tuple) for value in vars(self).values())

    def flop_mm2(self, dtype: str) -> Range | None:
        """Return the area of one operation a cycle on numbers of the element type ``dtype``."""
        area: Range | None = getattr(self, f"{dtype}_flop_mm2", None)
        return area


@dataclass(frozen=True, kw_only=True)
class PlacementDescription(Section):
    """The addresses of tensors in off-chip memory, and the order of their bytes.

    Attributes:
        tiles: ``row-major``: the rows of a tile have the row pitch of the tensor;
            ``contiguous``: each tile is stored in one piece, if all operators on the tensor cut it
            into the same tiles.
        alignment_bytes: tensors begin at multiples of this number.
        stagger_bytes: tensor i begins ``i * stagger_bytes`` after its aligned address.
        row_padding_bytes: left free after each row of a row-major tensor, if the length of a row in
            bytes is a power of two, exceeds the padding, and is the same for all operators.
    """

    tiles: Literal["row-major", "contiguous"] = "row-major"
    alignment_bytes: Annotated[int, Bounds(1, 2**30)] = 4096
    stagger_bytes: Gap = 0
    row_padding_bytes: Gap = 0

    @override
    def _stated(self) -> dict[str, object]:
        return {} if self == PlacementDescription() else super()._stated()


Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]
Cycles: TypeAlias = Annotated[int, Bounds(0, 2**31 - 1)]
Bytes: TypeAlias = Annotated[int, Bounds(1, 2**62)]

DtypeName: TypeAlias = Literal[
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3",
    "float8_e5m2",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
]


@dataclass(frozen=True, kw_only=True)
class OffChipDescription(Section):
    """A model of off-chip memory: the base class of the section ``[hbm]``.

    Subclasses are frozen dataclasses. Their fields are the keys of the section, and each has a
    default. ``fabric.register_memory`` registers a subclass.
    """

    duties: ClassVar[tuple[str, ...]] = ("model", "request_bytes", "peak_bytes_per_cycle")

    model: ClassVar[str]
    """The value of ``[hbm] model`` that selects this model."""

    joins_rows: ClassVar[bool] = False
    """Whether one request may move the end of a row and the beginning of the next row."""

    @property
    def request_bytes(self) -> int:
        """The size of a request; a row takes whole requests unless the memory ``joins_rows``."""
        raise NotImplementedError

    @property
    def peak_bytes_per_cycle(self) -> int | Fraction:
        """The peak bandwidth, averaged over cycles."""
        raise NotImplementedError

    def peak_for(self, clients: int) -> Fraction:  # noqa: ARG002 - a default
        """Return the peak bandwidth in bytes a cycle for ``clients`` operators, at least 1."""
        return Fraction(self.peak_bytes_per_cycle)

    @override
    def _faults(self) -> Iterator[str]:
        for name in ("request_bytes", "peak_bytes_per_cycle"):
            value: object = getattr(self, name)
            if not isinstance(value, Rational) or value <= 0:
                yield f"{name} is {found_text(value)}: expected a number above 0"

    @override
    def _stated(self) -> dict[str, object]:
        return {"model": self.model, **super()._stated()}


@dataclass(frozen=True, kw_only=True)
class FlatDescription(OffChipDescription):
    """The flat model of HBM: channels without banks, which always deliver their peak.

    Attributes:
        channels: served in parallel.
        request_bytes: moved by one request.
        latency_cycles: from the start of a request to its response, in addition to the start-up.
        initiation_interval_cycles: between two requests on one channel.
        startup_cycles: of every request.
        requests_per_bundle: the most requests that a client hands over in one cycle.
    """

    model: ClassVar[str] = "flat"

    channels: Annotated[int, Bounds(1, 2**20)] = 32
    request_bytes: Count = 64
    latency_cycles: Cycles = 2
    initiation_interval_cycles: Count = 2
    startup_cycles: Cycles = 14
    requests_per_bundle: Annotated[int, Bounds(1, 2**16)] = 1

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        return Fraction(self.channels * self.request_bytes, self.initiation_interval_cycles)


@dataclass(frozen=True, kw_only=True)
class OnChipDescription(Section):
    """The on-chip memory units.

    Attributes:
        bytes_per_cycle: between one memory unit and its reader or writer.
        capacity_bytes: of all memory units together; None for unlimited.
        page_bytes: if stated, each allocation takes whole pages of this size. None for bytes.
        unit_bytes: the size of one memory unit; pages are numbered within a unit.
        spill: the part of a buffer that finds no room is stored off-chip instead of waiting.
    """

    bytes_per_cycle: Count = 64
    capacity_bytes: Bytes | None = None
    page_bytes: Bytes | None = None
    unit_bytes: Bytes = 524_288
    spill: bool = False

    @override
    def _faults(self) -> Iterator[str]:
        if self.page_bytes is not None and self.page_bytes > self.unit_bytes:
            most = f"at most unit_bytes, {self.unit_bytes}"
            yield f"page_bytes is {self.page_bytes}: expected {most}"

    @property
    def pages(self) -> Pages | None:
        """The pages that allocations take; None if they take bytes."""
        return None if self.page_bytes is None else Pages(self.page_bytes, self.unit_bytes)

    @override
    def _stated(self) -> dict[str, object]:
        hidden = set() if self.page_bytes else {"page_bytes", "unit_bytes"}
        hidden |= set() if self.spill else {"spill"}
        return {key: value for key, value in asdict(self).items() if key not in hidden}


@dataclass(frozen=True, kw_only=True)
class ChannelDescription(Section):
    """Defaults of channels, for programs that do not state a depth.

    Attributes:
        depth: in elements.
        interval_cycles: between two elements that a channel takes, and between two that it gives.
            1 for wires, 0 for no limit.
    """

    depth: Count = 2
    interval_cycles: Annotated[int, Bounds(0, 1)] = 0

    @override
    def _stated(self) -> dict[str, object]:
        return {key: value for key, value in super()._stated().items() if key == "depth" or value}


@dataclass(frozen=True, kw_only=True)
class RegisterDescription(Section):
    """Registers in the control of units; 0 for none. They need channels with an interval of 1.

    Attributes:
        wait_cycles: from the cycle in which a unit sent an element that had waited for room, until
            it looks at its inputs.
        choice_cycles: after each sub-tensor of Reassemble and EagerMerge. In Reassemble also before
            the first sub-tensor of each selector.
        end_cycles: from the last element at either end of a channel until the end of the stream.
        cost_cycles: until the cost of an element is known, unless it costs nothing.
    """

    wait_cycles: Annotated[int, Bounds(0, 1)] = 0
    choice_cycles: Annotated[int, Bounds(0, 1)] = 0
    end_cycles: Annotated[int, Bounds(0, 1)] = 0
    cost_cycles: Annotated[int, Bounds(0, 2)] = 0

    @override
    def _stated(self) -> dict[str, object]:
        return super()._stated() if self != NO_REGISTERS else {}


NO_REGISTERS: Final = RegisterDescription()


@dataclass(frozen=True, kw_only=True)
class ComputeDescription(Section):
    """Compute units, for operators without a throughput in the program.

    Attributes:
        flops_per_cycle: of one unit.
    """

    flops_per_cycle: Count = 4096


@dataclass(frozen=True, kw_only=True)
class TileDescription(Section):
    """Tiles, for programs that do not state an element type.

    Attributes:
        dtype: the name of the element type.
    """

    dtype: DtypeName = "bfloat16"


@dataclass(frozen=True, kw_only=True)
class Hardware(Section):
    """A fabric, with one description per part. The default is the paper's evaluation fabric.

    Without a ``network`` every channel is one hop, independent of the sites of its units.
    """

    hbm: OffChipDescription = FlatDescription()
    on_chip: OnChipDescription = OnChipDescription()
    channel: ChannelDescription = ChannelDescription()
    registers: RegisterDescription = NO_REGISTERS
    compute: ComputeDescription = ComputeDescription()
    tile: TileDescription = TileDescription()
    clock: ClockDescription = ClockDescription()
    energy: EnergyDescription = EnergyDescription()
    area: AreaDescription = AreaDescription()
    placement: PlacementDescription = PlacementDescription()
    network: Mesh | None = None

    @override
    def _faults(self) -> Iterator[str]:
        for key, cycles in vars(self.registers).items():
            if cycles and not self.channel.interval_cycles:
                yield f"[registers] {key} is {cycles}: expected 0, or [channel] interval_cycles = 1"

    def placed(self, placement: PlacementDescription | None) -> Hardware:
        """Return this hardware with another placement of tensors, unchanged for None."""
        return self if placement is None else replace(self, placement=placement)

    def of_wires(self) -> Hardware:
        """Return this hardware with channels that take and give at most one element a cycle."""
        return replace(self, channel=replace(self.channel, interval_cycles=1))

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Return every key with its value, as a hardware file would state them."""
        sections = {
            name: part._stated() for name, part in vars(self).items() if isinstance(part, Section)
        }
        return {name: keys for name, keys in sections.items() if keys}


class Pages(NamedTuple):
    """Memory units that are allocated in whole pages. Two allocations do not share a page."""

    page_bytes: int
    unit_bytes: int

    def of(self, size_bytes: int) -> int:
        return -(-size_bytes // self.page_bytes)

    def within(self, capacity_bytes: int) -> int:
        """Return the number of pages in ``capacity_bytes``; the last unit may be smaller."""
        units, rest_bytes = divmod(capacity_bytes, self.unit_bytes)
        return units * (self.unit_bytes // self.page_bytes) + rest_bytes // self.page_bytes

    def capacity_bytes(self, pages: int) -> int:
        """Return the least capacity with ``pages`` pages."""
        units, rest = divmod(pages, self.unit_bytes // self.page_bytes)
        if units and not rest:
            # The last unit is full: the bytes after its last page are not needed.
            units, rest = units - 1, self.unit_bytes // self.page_bytes
        return units * self.unit_bytes + rest * self.page_bytes

    @property
    def number_bits(self) -> int:
        return (self.unit_bytes // self.page_bytes - 1).bit_length()
