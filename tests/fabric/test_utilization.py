"""Shares of what the hardware could do."""

from __future__ import annotations

import numpy as np
import pytest

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.extend import FlatDescription
from operators import LinearOffChipLoad, LinearOffChipStore


def _copied(**hbm: int) -> Program:
    with (
        hardware_scope(Hardware(hbm=FlatDescription(**hbm))),
        Program("copied", mode="timing") as program,
    ):
        loaded = LinearOffChipLoad(np.ones((8, 8), np.float32), tile=(4, 4))()
        LinearOffChipStore("out")(loaded)
    return program


@pytest.mark.parametrize(("channels", "request_bytes", "interval"), [(3, 32, 2), (8, 64, 1)])
def test_bandwidth_share_is_of_the_peak(channels: int, request_bytes: int, interval: int) -> None:
    report = simulate(
        _copied(channels=channels, request_bytes=request_bytes, initiation_interval_cycles=interval)
    )

    assert report.cycles is not None
    peak = report.cycles * channels * request_bytes / interval
    share = 2 * 8 * 8 * 2 / peak
    assert pytest.approx(share) == report.off_chip_bandwidth_utilization
    assert f"{100 * share:.1f}  % of {channels * request_bytes / interval:g} B/cycle\n" in str(
        report
    )
