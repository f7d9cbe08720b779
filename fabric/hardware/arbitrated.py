"""Off-chip memories behind an arbiter: ``[hbm] model = "arbitrated"``, and with banks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.hardware.description import OffChipDescription

__all__ = ["ArbitratedBanksDescription", "ArbitratedDescription", "PortDescription"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**20)]
Cycles: TypeAlias = Annotated[int, Bounds(0, 2**20)]


@dataclass(frozen=True, kw_only=True)
class PortDescription(OffChipDescription):
    """Readers that ask for all they will need, an arbiter, and one port to a memory.

    A reader asks for its whole stream, one request a cycle, and is answered in the order in which
    the arbiter sent the requests of all. Only units that announce what they read have more than one
    burst asked for. What a client reads or writes is stored in the order in which it does. A burst
    that is read is there with the answer that reaches its first byte, and of a stream the last
    request is left out: so does the hardware that this is taken from.

    Attributes:
        request_bytes: moved by one request.
        tag_bytes: stored with each burst.
        reads_in_flight: of all readers together.
        answers: that wait for one reader before its requests lose their turn.
    """

    joins_rows: ClassVar[bool] = True

    request_bytes: Count = 512
    tag_bytes: Annotated[int, Bounds(0, 2**20)] = 0
    reads_in_flight: Count = 64
    answers: Count = 128


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

    A request is one burst. Addresses have the column of a row in their lowest bits, above it the
    pseudo channel, the bank group, the bank and the row; all clients begin in row 0 of bank 0.

    Attributes:
        pseudo_channels: with a data bus each.
        bank_groups: of a pseudo channel.
        banks: of a bank group.
        rows: of a bank; addresses begin again after the last one.
        row_bytes: of the addresses in one row.
        window_requests: reads among which the channel chooses, and as many writes.
        write_high_requests: so many that wait let it turn to writing; it does if no read waits.
        write_low_requests: fewer let it turn back.
        burst_cycles: a data bus carries a request.
        cl_cycles, cwl_cycles: from a read, or a write, to its data.
        rcd_read_cycles, rcd_write_cycles: from an activation to a read or a write.
        rp_cycles: from a precharge to an activation in the bank.
        ras_cycles: from an activation to a precharge of the bank.
        rc_cycles: between two activations in one bank.
        wr_cycles: from the end of written data to a precharge of the bank.
        rtp_cycles: from a read to a precharge of the bank.
        ccd_l_cycles: between two reads, or two writes, in one bank group; in one pseudo channel the
            data bus decides.
        rrd_s_cycles, rrd_l_cycles: between two activations in one pseudo channel; in one group.
        wtr_s_cycles, wtr_l_cycles: from the end of written data to a read, likewise.
        faw_cycles: in which a pseudo channel activates four rows at most.
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
