"""Hypothesis strategies: banked memories, and bursts that share their rows."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import BankedDescription


class Demand(NamedTuple):
    gap_cycles: int
    burst: Burst


Script: TypeAlias = list[list[Demand]]

_NAMED = ("interleaved", "interleaved with hash", "row-bank-rank-column-channel")
_FIELDS = ("channel", "pseudo_channel", "bank_group", "bank", "column")


@st.composite
def descriptions(draw: st.DrawFn) -> BankedDescription:
    shape: dict[str, Any] = {
        "channels": draw(st.sampled_from([1, 1, 2, 4])),
        "mapping": draw(
            st.sampled_from(_NAMED) | st.permutations(_FIELDS).map(lambda each: (*each, "row"))
        ),
        "scheduler": draw(st.sampled_from(["first ready", "first ready", "first come"])),
        "refreshes": draw(st.booleans()),
        "requests_per_bundle": draw(st.integers(1, 4)),
        "read_window_bursts": draw(st.integers(4, 48)),
        "write_window_bursts": draw(st.integers(4, 48)),
    }
    low, high = sorted(draw(st.tuples(st.integers(0, 100), st.integers(0, 100))))
    shape |= {"write_low_percent": low, "write_high_percent": high}
    own = draw(st.booleans())
    shape["preset"] = draw(st.sampled_from(["HBM2 2000 Mbps", "HBM3 6400 Mbps"]))
    return BankedDescription(**shape, **(draw(_organized()) if own else {}))


@st.composite
def _organized(draw: st.DrawFn) -> dict[str, Any]:
    burst_bytes = draw(st.sampled_from([32, 64]))
    request_bytes = burst_bytes * draw(st.sampled_from([1, 2, 4]))
    cycles = {
        name: draw(st.integers(*bounds))
        for name, bounds in {
            "burst": (1, 4),
            "cl": (0, 20),
            "cwl": (0, 20),
            "rcd_read": (0, 20),
            "rcd_write": (0, 20),
            "rp": (1, 20),
            "ras": (0, 40),
            "wr": (0, 30),
            "rtp": (1, 12),
            "ccd_s": (1, 5),
            "rrd_s": (1, 8),
            "wtr_s": (0, 10),
            "faw": (8, 60),
            "rfc": (10, 200),
        }.items()
    }
    for name in ("ccd", "rrd", "wtr"):
        cycles[f"{name}_l"] = cycles[f"{name}_s"] + draw(st.integers(0, 4))
    # As in all real chips, written data is not later on the bus than read data would be.
    cycles["cwl"] = min(cycles["cwl"], cycles["cl"])
    cycles["rc"] = cycles["ras"] + cycles["rp"] + draw(st.integers(0, 8))
    # The longest request and a refresh end before the next refresh is due.
    cycles["refi"] = 400 + cycles["rfc"] + draw(st.integers(0, 400))
    return {
        "pseudo_channels": draw(st.sampled_from([1, 2])),
        "bank_groups": draw(st.sampled_from([1, 2, 4])),
        "banks": draw(st.sampled_from([1, 2, 4])),
        "row_bytes": request_bytes * draw(st.sampled_from([1, 4, 16])),
        "burst_bytes": burst_bytes,
        "request_bytes": request_bytes,
    } | {f"{name}_cycles": each for name, each in cycles.items()}


@st.composite
def _demand(draw: st.DrawFn) -> Demand:
    address = draw(st.integers(0, 31)) * 32 + draw(
        st.sampled_from([0, 0, 1 << 11, 1 << 14, 1 << 20])
    )
    rows, row_bytes = draw(st.tuples(st.integers(1, 4), st.integers(1, 300)))
    pitch = draw(st.sampled_from([row_bytes, 1 << 10, 1 << 13, 1 << 16]))
    burst = Burst(address, rows, row_bytes, pitch, draw(st.booleans()))
    return Demand(draw(st.sampled_from([0, 0, 0, 1, 7, 60, 900])), burst)


def scripts() -> st.SearchStrategy[Script]:
    return st.lists(st.lists(_demand(), max_size=6), min_size=1, max_size=6)
