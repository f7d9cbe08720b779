"""The models of off-chip memory that ``[hbm] model`` in a hardware file may name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal, Never, NoReturn, TypeAlias

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import refuse
from fabric.graph.hardware.description import FlatDescription, OffChipDescription
from fabric.graph.hardware.dram import (
    PRESETS,
    Count,
    Cycles,
    DramDescription,
    PresetName,
    Widths,
    address_bits,
)
from fabric.messages.errors import ConfigurationError

SENT_REQUESTS: Final = 4
"""Requests that the arbiter has sent and that wait in two queues, with two requests in each.

``reads_in_flight`` does not count them."""

BytesInCycle: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


@dataclass(frozen=True, kw_only=True)
class FixedDescription(OffChipDescription):
    """A memory without contention: the time of a burst depends on its bytes only.

    Attributes:
        request_bytes: moved by one request.
        latency_cycles: of every burst, in addition to the cycles of its bytes.
        bytes_per_cycle: of whole requests, between the memory and one client.
    """

    model: ClassVar[str] = "fixed"

    request_bytes: BytesInCycle = 64
    latency_cycles: Annotated[int, Bounds(0, 2**31 - 1)] = 100
    bytes_per_cycle: BytesInCycle = 64

    @property
    @override
    def peak_bytes_per_cycle(self) -> int:
        return self.bytes_per_cycle

    @override
    def peak_for(self, clients: int) -> Fraction:
        return Fraction(clients * self.bytes_per_cycle)

    def burst_cycles(self, requests: int) -> int:
        """Return the cycles from the start of a burst until the client sees it complete."""
        return self.latency_cycles - (-requests * self.request_bytes // self.bytes_per_cycle)


@dataclass(frozen=True, kw_only=True)
class PortDescription(OffChipDescription):
    """Readers that announce their requests, an arbiter, and one port to a memory.

    A reader sends one request a cycle, and receives answers in the order of the arbiter. Only
    units that announce their reads have several bursts in flight. As in the modelled hardware, a
    burst is complete with the answer that has the last byte of the previous burst, or the first
    answer. The last of several requests is omitted if no burst begins after its first byte.

    Attributes:
        tag_bytes: added to each burst in the memory.
        reads_in_flight: of all readers together.
        answers: buffered for one reader; at least ``reads_in_flight`` + 4.
    """

    joins_rows: ClassVar[bool] = True

    request_bytes: Count = 512
    tag_bytes: Annotated[int, Bounds(0, 2**20)] = 0
    reads_in_flight: Count = 64
    answers: Count = 128

    @override
    def _faults(self) -> Iterator[str]:
        # Answers in flight to a stalled reader must not block answers to other readers.
        least = self.reads_in_flight + SENT_REQUESTS
        if self.answers < least:
            why = f"reads_in_flight + {SENT_REQUESTS}"
            yield f"answers is {self.answers}: expected at least {least}, {why}"


@dataclass(frozen=True, kw_only=True)
class ArbitratedDescription(PortDescription):
    """An arbiter in front of a memory without banks.

    Attributes:
        interval_cycles: between the starts of two requests.
        latency_cycles: from the start of a read to its answer.
    """

    model: ClassVar[str] = "arbitrated"

    interval_cycles: Count = 2
    latency_cycles: Count = 30

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        return Fraction(self.request_bytes, self.interval_cycles)


@dataclass(frozen=True, kw_only=True)
class ArbitratedBanksDescription(PortDescription):
    """An arbiter in front of one channel with banks, which takes one command a cycle.

    A request is one burst. The lowest bits of an address are the column of a row. Above them are
    the pseudo channel, the bank group, the bank and the row. All clients begin in row 0 of bank 0.
    Cycles have the names of JEDEC, as in ``fabric.graph.hardware.dram``. The data bus sets the
    interval between columns of one pseudo channel.

    Attributes:
        pseudo_channels: each with its data bus.
        bank_groups: in a pseudo channel.
        banks: in a bank group.
        rows: in a bank; the address after the last row is in row 0 again.
        row_bytes: addresses in one row.
        window_requests: capacity of the window of reads, and of the window of writes.
        write_high_requests: the channel turns to writing if this many writes or no reads wait.
        write_low_requests: the channel turns back to reading below this number.
    """

    model: ClassVar[str] = "arbitrated banks"

    pseudo_channels: Count = 2
    bank_groups: Count = 4
    banks: Count = 2
    rows: Count = 2**14
    row_bytes: Count = 4096
    window_requests: Count = 33
    write_high_requests: Count = 26
    write_low_requests: Count = 7
    burst_cycles: Count = 4
    cl_cycles: Cycles = 7
    cwl_cycles: Cycles = 2
    rcd_read_cycles: Cycles = 7
    rcd_write_cycles: Cycles = 7
    rp_cycles: Cycles = 7
    ras_cycles: Cycles = 17
    rc_cycles: Cycles = 19
    wr_cycles: Cycles = 8
    rtp_cycles: Cycles = 3
    ccd_l_cycles: Cycles = 2
    rrd_s_cycles: Cycles = 2
    rrd_l_cycles: Cycles = 3
    wtr_s_cycles: Cycles = 3
    wtr_l_cycles: Cycles = 4
    faw_cycles: Cycles = 15

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        apart = max(Fraction(self.burst_cycles, self.pseudo_channels), Fraction(1))
        return self.request_bytes / apart


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
"""The least values of keys, as sums of other keys."""


@dataclass(frozen=True, kw_only=True)
class BankedDescription(OffChipDescription, DramDescription[None]):
    """HBM with channels, pseudo channels, bank groups, banks and rows.

    Its clock is the fabric's clock. None in a field of ``DramDescription`` selects the preset's
    value; ``dram`` has all values.

    Attributes:
        preset: the organization and the timing of a channel.
        channels: served in parallel, each with a command slot for rows and a slot for columns.
        request_bytes: moved by one request, in one or more bursts to one row.
        requests_per_bundle: the most requests that a client hands over in one cycle.
        mapping: the fields of an address, by name or as a list from the lowest bit, as described
            in ``fabric.graph.hardware.dram``.
        scheduler: ``first ready`` serves the request with the earliest possible command (FR-FCFS),
            ``first come`` the oldest request of the window.
        refreshes: whether rows are refreshed.
        read_window_bursts, write_window_bursts: capacity of a channel's windows, from which the
            scheduler chooses; other requests are queued behind a window.
        write_high_percent, write_low_percent: a channel turns to writing if its write window is
            fuller than the high mark, or if no read waits. It turns back below the low mark.
        prefetch_requests: the most requests that are fetched for the next tiles of a linear load,
            beyond the tile that it has requested.
    """

    model: ClassVar[str] = "banked"

    preset: PresetName = "HBM2 2000 Mbps"
    channels: Annotated[int, Bounds(1, 2**16)] = 32
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

    @property
    def dram(self) -> DramDescription[Never]:
        """The organization and timing of a channel, with every value stated."""
        preset = PRESETS[self.preset]
        stated = {key: value for key in vars(preset) if (value := getattr(self, key)) is not None}
        return replace(preset, **stated)

    @property
    def widths(self) -> Widths:
        """The bits of each address field except the row; a column is a request in a row."""
        dram = self.dram
        counts = {
            "channel": self.channels,
            "pseudo_channel": dram.pseudo_channels,
            "bank_group": dram.bank_groups,
            "bank": dram.banks,
            "column": dram.row_bytes // self.request_bytes,
        }
        return {field: count.bit_length() - 1 for field, count in counts.items()}

    @property
    @override
    def peak_bytes_per_cycle(self) -> Fraction:
        dram = self.dram
        # A channel has a bus for each pseudo channel, and one slot for column commands.
        apart = Fraction(max(dram.burst_cycles, dram.ccd_s_cycles), dram.pseudo_channels)
        return self.channels * dram.burst_bytes / max(apart, Fraction(1))

    @override
    def _faults(self) -> Iterator[str]:
        values = {**vars(self), **vars(self.dram)}
        for key in _POWERS:
            if values[key] & (values[key] - 1):
                yield f"{key} is {values[key]}: expected a power of two"
        for key, others in _AT_LEAST.items():
            least = sum(values[other] for other in others)
            if values[key] < least:
                yield f"{key} is {values[key]}: expected at least {least}, {' + '.join(others)}"
        bursts = self.request_bytes // values["burst_bytes"]
        for key in ("read_window_bursts", "write_window_bursts"):
            if values[key] < bursts:
                why = "the bursts of a request"
                yield f"{key} is {values[key]}: expected at least {bursts}, {why}"
        columns = (bursts - 1) * max(values["ccd_l_cycles"], values["burst_cycles"])
        opened = max(values["rcd_read_cycles"], values["rcd_write_cycles"]) + columns
        closed = values["rfc_cycles"] + max(1, values["rp_cycles"])
        least = closed + max(values["ras_cycles"], opened) + 2
        if self.refreshes and values["refi_cycles"] < least:
            why = "in which a refresh and a request to a closed row fit"
            yield f"refi_cycles is {values['refi_cycles']}: expected at least {least}, {why}"
        try:
            address_bits(self.mapping, self.widths)
        except ConfigurationError as error:
            yield error.message


_OWN: Final = (
    FlatDescription,
    BankedDescription,
    FixedDescription,
    ArbitratedDescription,
    ArbitratedBanksDescription,
)

MODELS: Final[dict[str, type[OffChipDescription]]] = {kind.model: kind for kind in _OWN}
"""The description of each model; the first one is the default."""


def add_model(description: type[OffChipDescription]) -> None:
    """Let hardware files select ``description`` by its ``model``."""
    if not issubclass(description, OffChipDescription):
        _refuse(description, "is not an OffChipDescription", "a subclass of it")
    name = getattr(description, "model", None)
    if not isinstance(name, str) or not name:
        _refuse(description, f"has the model {name!r}", "a name for [hbm] model")
    if MODELS.get(name) in _OWN:
        _refuse(description, f"has the model {name!r}, one of the fabric's own", "another name")
    open_fields = [field.name for field in fields(description) if field.default is MISSING]
    if open_fields:
        _refuse(description, f"has no default for {', '.join(open_fields)}", "a default for each")
    MODELS[name] = description


def _refuse(description: type[OffChipDescription], found: str, expected: str) -> NoReturn:
    refuse(
        f"register_memory: {description.__name__} {found}: expected {expected}", ConfigurationError
    )
