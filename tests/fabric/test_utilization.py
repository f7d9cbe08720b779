"""Shares of what the hardware could do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabric import Hardware, Program, Trace, hardware_scope, simulate
from fabric.display.terminal import plain_text
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
    assert pytest.approx(2 * 8 * 8 * 2 / peak) == report.off_chip_bandwidth_utilization


@pytest.mark.parametrize(("given", "shown"), [({"rows": 3}, ["rows=3"]), ({}, [])])
def test_summary_lists_parameters(given: dict[str, int], shown: list[str], tmp_path: Path) -> None:
    report = simulate(_copied(), parameters=given, trace="events", log_dir=tmp_path)
    lines = plain_text(Trace(Path(str(report.log_dir))).summary().sheet(), 200).splitlines()
    assert shown == lines[1 : 1 + len(shown)]
    assert lines[1 + len(shown)].startswith("completed in timing mode")
