"""HBM with banks, as ``[hbm] model = "banked"`` describes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar

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
PresetName: TypeAlias = Literal[
    "HBM2 1600 Mbps", "HBM2 2000 Mbps", "HBM2 2400 Mbps", "HBM3 6400 Mbps"
]
Part = TypeVar("Part", DramOrganization, DramTiming)
Percent: TypeAlias = Annotated[int, Bounds(0, 100)]

_POWERS: Final = (
    "channels",
    "pseudo_channels",
    "bank_groups",
    "banks",
    "row_bytes",
    "request_bytes",
    "burst_bytes",
)

_AT_LEAST: Final = {
    "request_bytes": ("burst_bytes",),
    "row_bytes": ("request_bytes",),
    "rc_cycles": ("ras_cycles", "rp_cycles"),
    "cl_cycles": ("cwl_cycles",),
    "ccd_l_cycles": ("ccd_s_cycles",),
    "rrd_l_cycles": ("rrd_s_cycles",),
    "wtr_l_cycles": ("wtr_s_cycles",),
    "faw_cycles": ("rrd_s_cycles",),
    "write_high_percent": ("write_low_percent",),
}
"""What each is no less than: others together."""


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
        read_window_bursts, write_window_bursts: of a channel, among which it chooses; others
            wait behind these.
        write_high_percent, write_low_percent: a channel turns to writing when its write window is
            filled above the one, or when no read waits, and back when it is below the other.
        prefetch_requests: what is fetched of the tiles that a linear load will ask for, beyond the
            one that it has asked for.
    """

    model: ClassVar[str] = "banked"

    preset: PresetName = "HBM2 2000 Mbps"
    channels: Channels = 32
    request_bytes: Count = 64
    requests_per_bundle: Annotated[int, Bounds(1, 2**16)] = 1
    mapping: str | tuple[str, ...] = "interleaved with hash"
    scheduler: Literal["first ready", "first come"] = "first ready"
    refreshes: bool = True
    read_window_bursts: Annotated[int, Bounds(1, 256)] = 32
    write_window_bursts: Annotated[int, Bounds(1, 256)] = 32
    write_high_percent: Percent = 80
    write_low_percent: Percent = 20
    prefetch_requests: Annotated[int, Bounds(0, 2**10)] = 0
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
            self._check()
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
        """The bits of each field of an address but the row; a column is a request in a row."""
        made_of = self.organization
        counts = {
            "channel": self.channels,
            "pseudo_channel": made_of.pseudo_channels,
            "bank_group": made_of.bank_groups,
            "bank": made_of.banks,
            "column": made_of.row_bytes // self.request_bytes,
        }
        return {field: count.bit_length() - 1 for field, count in counts.items()}

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        made_of, timing = self.organization, self.timing
        # A channel has a bus for each pseudo channel, and one slot for column commands.
        apart = Fraction(max(timing.burst_cycles, timing.ccd_s_cycles), made_of.pseudo_channels)
        return self.channels * made_of.burst_bytes / max(apart, Fraction(1))

    def _check(self) -> None:
        """Refuse values that fit their keys, and not each other."""
        values = {**vars(self), **vars(self.organization), **vars(self.timing)}
        for key in _POWERS:
            if values[key] & (values[key] - 1):
                raise ConfigurationError(f"{key} is {values[key]}: expected a power of two")
        for key, others in _AT_LEAST.items():
            least = sum(values[each] for each in others)
            if values[key] < least:
                raise ConfigurationError(
                    f"{key} is {values[key]}: expected at least {least}, {' + '.join(others)}"
                )
        bursts = self.request_bytes // values["burst_bytes"]
        for key in ("read_window_bursts", "write_window_bursts"):
            if values[key] < bursts:
                raise ConfigurationError(
                    f"{key} is {values[key]}: expected at least {bursts}, those of a request"
                )
        columns = (bursts - 1) * max(values["ccd_l_cycles"], values["burst_cycles"])
        opened = max(values["rcd_read_cycles"], values["rcd_write_cycles"]) + columns
        closed = values["rfc_cycles"] + max(1, values["rp_cycles"])
        least = closed + max(values["ras_cycles"], opened) + 2
        if self.refreshes and values["refi_cycles"] < least:
            raise ConfigurationError(
                f"refi_cycles is {values['refi_cycles']}: expected at least {least}, in which a "
                "refresh and a request to a closed row fit"
            )
        address_bits(self.mapping, self.widths)


def _stated(part: Part, stated: BankedDescription) -> Part:
    """Return ``part`` of a preset with what is stated in the place of its own."""
    own = {key: value for key in vars(part) if (value := getattr(stated, key)) is not None}
    return replace(part, **own)
