from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.messages.errors import ConfigurationError
from fabric.messages.place import Place
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.banked import BankedMemory

SHORT = st.integers(0, 12)
SOME = st.integers(1, 12)


@st.composite
def _tightest(draw: st.DrawFn) -> BankedDescription:
    ras, rp = draw(SHORT), draw(SHORT)
    keys: dict[str, Any] = {
        "channels": 1,
        "pseudo_channels": draw(st.sampled_from([1, 2])),
        "request_bytes": draw(st.sampled_from([32, 64, 256, 1024])),
        "scheduler": draw(st.sampled_from(["first ready", "first come"])),
        "ras_cycles": ras,
        "rp_cycles": rp,
        "rc_cycles": ras + rp + draw(SHORT),
        "ccd_s_cycles": 1,
        "wtr_s_cycles": 0,
        "rrd_s_cycles": 1,
    }
    keys |= {f"{key}_cycles": draw(SHORT) for key in ("cl", "cwl", "wr", "rtp", "rfc", "wtr_l")}
    keys["cl_cycles"] += keys["cwl_cycles"]
    keys |= {f"{key}_cycles": draw(SHORT) for key in ("rcd_read", "rcd_write")}
    keys |= {f"{key}_cycles": draw(SOME) for key in ("burst", "ccd_l", "rrd_l", "faw")}
    with pytest.raises(ConfigurationError, match="refi_cycles is 1: expected at least ") as raised:
        BankedDescription(**keys, refi_cycles=1)
    least = int(raised.value.message.partition("at least ")[2].partition(",")[0])
    return BankedDescription(**keys, refi_cycles=least)


@given(
    hbm=_tightest(),
    bursts=st.lists(
        st.tuples(st.integers(0, 2**16), st.integers(1, 4), st.booleans()), min_size=1, max_size=6
    ),
)
def test_requests_are_served_between_the_closest_refreshes(
    hbm: BankedDescription, bursts: list[tuple[int, int, bool]]
) -> None:
    units: list[Unit] = [
        MemoryUnit(f"client{number}", number, Place("program.py", 1), bytes_per_cycle=64)
        for number in range(len(bursts))
    ]
    memory = BankedMemory(hbm, units, [])
    row_bytes = hbm.request_bytes
    for unit, (address, rows, write) in zip(units, bursts, strict=True):
        memory.submit(unit, Burst(address * row_bytes, rows, row_bytes, 7 * row_bytes, write=write))
    timing = hbm.dram
    # A row is held open after its request; refreshes that are due by then come first.
    held = timing.rtp_cycles + timing.wr_cycles + timing.cwl_cycles + timing.burst_cycles
    cycles = 0
    requests = sum(rows for _, rows, _ in bursts)
    while memory.pending:
        cycles += timing.refi_cycles
        memory.advance(cycles)
        assert cycles < (10 + 4 * requests) * (timing.refi_cycles + held)
    assert requests * row_bytes == memory.bytes_moved
