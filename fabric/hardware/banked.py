"""HBM with banks, as ``[hbm] model = "banked"`` describes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.arguments.described import refuse
from fabric.hardware.address_bits import Widths, address_bits
from fabric.hardware.description import OffChipDescription
from fabric.hardware.dram_timing import PRESETS, DramOrganization, DramTiming
from fabric.telling.errors import ConfigurationError

__all__ = ["BankedDescription"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**20)]
Channels: TypeAlias = Annotated[int, Bounds(1, 2**16)]
Banks: TypeAlias = Annotated[int, Bounds(1, 2**5)]
Cycles: TypeAlias = Annotated[int, Bounds(0, 2**20)]
Part = TypeVar("Part", DramOrganization, DramTiming)
Percent: TypeAlias = Annotated[int, Bounds(0, 100)]


@dataclass(frozen=True, kw_only=True)
class BankedDescription(OffChipDescription):
    """HBM with channels, pseudo channels, bank groups, banks and rows.

    A cycle of its clock is one of the fabric's. What is None is that of the preset.

    Attributes:
        preset: timing and organization.
        channels: served side by side, each with a command slot for rows and one for columns.
        request_bytes: moved by one request, all of it in one row: one burst or several.
        requests_per_bundle: what one client hands over in one cycle.
        mapping: which bits of an address say what, by name or as a list of fields from the lowest
            bit on; see ``fabric.hardware.address_bits``.
        scheduler: which request of the window has its turn: the one whose next command can go
            first (first ready, first come: FR-FCFS), or the oldest one.
        refreshes: whether rows are refreshed.
        read_window_requests, write_window_requests: of a channel, among which it chooses; others
            wait behind these.
        write_high_percent, write_low_percent: a channel turns to writing when its write window is
            filled above the one, or when no read waits, and back when it is below the other.
    """

    model: ClassVar[str] = "banked"

    preset: Literal["HBM2 2000 Mbps", "HBM3 6400 Mbps"] = "HBM2 2000 Mbps"
    channels: Channels = 32
    request_bytes: Count = 64
    requests_per_bundle: Annotated[int, Bounds(1, 2**16)] = 1
    mapping: str | tuple[str, ...] = "interleaved with hash"
    scheduler: Literal["first ready", "first come"] = "first ready"
    refreshes: bool = True
    read_window_requests: Annotated[int, Bounds(1, 64)] = 19
    write_window_requests: Annotated[int, Bounds(1, 64)] = 16
    write_high_percent: Percent = 80
    write_low_percent: Percent = 20
    pseudo_channels: Banks | None = None
    bank_groups: Banks | None = None
    banks: Banks | None = None
    row_bytes: Count | None = None
    burst_bytes: Count | None = None
    burst_cycles: Count | None = None
    cl_cycles: Cycles | None = None
    cwl_cycles: Cycles | None = None
    rcd_read_cycles: Cycles | None = None
    rcd_write_cycles: Cycles | None = None
    rp_cycles: Cycles | None = None
    ras_cycles: Cycles | None = None
    rc_cycles: Cycles | None = None
    wr_cycles: Cycles | None = None
    rtp_cycles: Cycles | None = None
    ccd_s_cycles: Count | None = None
    ccd_l_cycles: Count | None = None
    rrd_s_cycles: Count | None = None
    rrd_l_cycles: Count | None = None
    wtr_s_cycles: Cycles | None = None
    wtr_l_cycles: Cycles | None = None
    faw_cycles: Cycles | None = None
    rfc_cycles: Cycles | None = None
    refi_cycles: Count | None = None

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            address_bits(self.mapping, self.widths)
        except ConfigurationError as error:
            refuse(f"{type(self).__name__}: {error.message}", ConfigurationError)

    @property
    def organization(self) -> DramOrganization:
        """What a channel is made of."""
        return _stated(PRESETS[self.preset].organization, self)

    @property
    def timing(self) -> DramTiming:
        """The cycles between commands."""
        return _stated(PRESETS[self.preset].timing, self)

    @property
    def widths(self) -> Widths:
        """The bits of each field of an address but the row; a column is a request in a row.

        Raises:
            ConfigurationError: there is no whole number of them.
        """
        made_of = self.organization
        counts = {
            "channel": ("channels", self.channels),
            "pseudo_channel": ("pseudo_channels", made_of.pseudo_channels),
            "bank_group": ("bank_groups", made_of.bank_groups),
            "bank": ("banks", made_of.banks),
            "request": ("request_bytes", self.request_bytes),
            "row": ("row_bytes", made_of.row_bytes),
        }
        for key, count in counts.values():
            if count & (count - 1):
                raise ConfigurationError(f"{key} is {count}: expected a power of two")
        if self.request_bytes > made_of.row_bytes:
            raise ConfigurationError(
                f"request_bytes is {self.request_bytes}: expected at most {made_of.row_bytes}, "
                "those of a row"
            )
        widths = {field: count.bit_length() - 1 for field, (_, count) in counts.items()}
        widths["column"] = widths.pop("row") - widths.pop("request")
        return widths

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        made_of, timing = self.organization, self.timing
        cycles = max(timing.burst_cycles, timing.ccd_s_cycles)
        return Fraction(self.channels * made_of.pseudo_channels * made_of.burst_bytes, cycles)


def _stated(part: Part, stated: BankedDescription) -> Part:
    """Return ``part`` of a preset with what is stated in the place of its own."""
    own = {key: value for key in vars(part) if (value := getattr(stated, key)) is not None}
    return replace(part, **own)
