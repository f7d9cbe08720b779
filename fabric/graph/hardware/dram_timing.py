"""The timing of a DRAM channel, in cycles of its clock, and the presets of the field.

Presets are those of Ramulator 2.1 (CMU-SAFARI, 2026), its authors' reading of JEDEC's standards:
JESD235 for HBM2, JESD238 for HBM3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PRESETS", "DramOrganization", "DramPreset", "DramTiming"]


@dataclass(frozen=True, kw_only=True)
class DramTiming:
    """Cycles between commands of one channel; JEDEC's names, in small letters.

    Attributes:
        burst_cycles: the data bus of a pseudo channel carries a burst (BL).
        cl_cycles: from a read command to its data.
        cwl_cycles: from a write command to its data.
        rcd_read_cycles: from the activation of a row to a read of it.
        rcd_write_cycles: to a write to it.
        rp_cycles: from a precharge to the activation of another row of the bank.
        ras_cycles: from an activation to the precharge of the bank.
        rc_cycles: between two activations in one bank.
        wr_cycles: from the end of written data to the precharge of the bank.
        rtp_cycles: from a read to the precharge of the bank.
        ccd_s_cycles, ccd_l_cycles: between two reads, or two writes, of one pseudo channel; the
            longer one in one bank group.
        rrd_s_cycles, rrd_l_cycles: between two activations of one pseudo channel, likewise.
        wtr_s_cycles, wtr_l_cycles: from the end of written data to a read, likewise.
        faw_cycles: in which a pseudo channel activates four rows at most.
        rfc_cycles: a refresh of all banks takes.
        refi_cycles: between two refreshes.
    """

    burst_cycles: int
    cl_cycles: int
    cwl_cycles: int
    rcd_read_cycles: int
    rcd_write_cycles: int
    rp_cycles: int
    ras_cycles: int
    rc_cycles: int
    wr_cycles: int
    rtp_cycles: int
    ccd_s_cycles: int
    ccd_l_cycles: int
    rrd_s_cycles: int
    rrd_l_cycles: int
    wtr_s_cycles: int
    wtr_l_cycles: int
    faw_cycles: int
    rfc_cycles: int
    refi_cycles: int


@dataclass(frozen=True, kw_only=True)
class DramOrganization:
    """What a channel is made of.

    Attributes:
        pseudo_channels: with a data bus each; they share the command slots of the channel.
        bank_groups: of a pseudo channel.
        banks: of a bank group.
        row_bytes: of a bank, in a pseudo channel.
        burst_bytes: moved by one read or write command.
    """

    pseudo_channels: int
    bank_groups: int
    banks: int
    row_bytes: int
    burst_bytes: int


@dataclass(frozen=True)
class DramPreset:
    """What a name stands for.

    Attributes:
        organization: of a channel.
        timing: of its commands.
    """

    organization: DramOrganization
    timing: DramTiming


_HBM2: Final = DramOrganization(
    pseudo_channels=2, bank_groups=4, banks=4, row_bytes=1024, burst_bytes=32
)

PRESETS: Final = {
    "HBM2 1600 Mbps": DramPreset(
        _HBM2,
        # 800 MHz: a cycle is 1.25 nanoseconds.
        DramTiming(
            burst_cycles=2,
            cl_cycles=10,
            cwl_cycles=4,
            rcd_read_cycles=10,
            rcd_write_cycles=8,
            rp_cycles=10,
            ras_cycles=24,
            rc_cycles=34,
            wr_cycles=12,
            rtp_cycles=4,
            ccd_s_cycles=2,
            ccd_l_cycles=4,
            rrd_s_cycles=4,
            rrd_l_cycles=4,
            wtr_s_cycles=5,
            wtr_l_cycles=6,
            faw_cycles=12,
            rfc_cycles=280,
            refi_cycles=3120,
        ),
    ),
    "HBM2 2000 Mbps": DramPreset(
        _HBM2,
        # 1 GHz: a cycle is a nanosecond.
        DramTiming(
            burst_cycles=2,
            cl_cycles=14,
            cwl_cycles=5,
            rcd_read_cycles=14,
            rcd_write_cycles=12,
            rp_cycles=14,
            ras_cycles=34,
            rc_cycles=48,
            wr_cycles=16,
            rtp_cycles=5,
            ccd_s_cycles=2,
            ccd_l_cycles=4,
            rrd_s_cycles=4,
            rrd_l_cycles=4,
            wtr_s_cycles=6,
            wtr_l_cycles=8,
            faw_cycles=15,
            rfc_cycles=350,
            refi_cycles=3900,
        ),
    ),
    "HBM2 2400 Mbps": DramPreset(
        _HBM2,
        # 1.2 GHz: a cycle is 0.833 nanoseconds.
        DramTiming(
            burst_cycles=2,
            cl_cycles=17,
            cwl_cycles=6,
            rcd_read_cycles=17,
            rcd_write_cycles=14,
            rp_cycles=17,
            ras_cycles=40,
            rc_cycles=57,
            wr_cycles=19,
            rtp_cycles=6,
            ccd_s_cycles=2,
            ccd_l_cycles=4,
            rrd_s_cycles=5,
            rrd_l_cycles=5,
            wtr_s_cycles=8,
            wtr_l_cycles=10,
            faw_cycles=19,
            rfc_cycles=421,
            refi_cycles=4682,
        ),
    ),
    "HBM3 6400 Mbps": DramPreset(
        # Two stack identifiers, which are bank groups of their own here: 4 groups in each.
        DramOrganization(pseudo_channels=2, bank_groups=8, banks=4, row_bytes=1024, burst_bytes=32),
        # 1.6 GHz: a cycle is 0.625 nanoseconds.
        DramTiming(
            burst_cycles=2,
            cl_cycles=20,
            cwl_cycles=10,
            rcd_read_cycles=31,
            rcd_write_cycles=15,
            rp_cycles=26,
            ras_cycles=45,
            rc_cycles=72,
            wr_cycles=33,
            rtp_cycles=9,
            ccd_s_cycles=2,
            ccd_l_cycles=4,
            rrd_s_cycles=4,
            rrd_l_cycles=5,
            wtr_s_cycles=7,
            wtr_l_cycles=10,
            faw_cycles=24,
            rfc_cycles=560,
            refi_cycles=6240,
        ),
    ),
}
"""By what ``[hbm] preset`` says."""
