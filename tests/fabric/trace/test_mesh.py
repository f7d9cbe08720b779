from __future__ import annotations

from pathlib import Path

import numpy as np

from fabric import Hardware, Program, hardware_scope
from fabric.analysis.trace.pages.page import write_page
from fabric.graph.hardware import latency
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.trace.recording import record


def test_mesh_on_the_page_has_the_shares_of_the_report(tmp_path: Path) -> None:
    pages = []
    for width in (8, None):
        hardware = Hardware(network=latency.Mesh(columns=4, rows=2, link_bytes_per_cycle=width))
        with hardware_scope(hardware), Program("line") as wired:
            x = LinearOffChipLoad(np.ones((32, 64), np.float32), (16, 64))()
            LinearOffChipStore("y")(Map(SiLU())(x))
        report, trace = record(wired, tmp_path / str(width))
        assert report.network is not None
        write_page(trace, tmp_path / f"{width}.html")
        pages.append((tmp_path / f"{width}.html").read_text(encoding="utf-8"))
        if width is not None:
            limited = [each for each in report.network.links if each.bytes_per_cycle is not None]
            assert limited
            shares = [each.share(report.cycles or 0) for each in limited]
            assert [link.share for link in trace.end.links] == shares
            assert [link.name for link in trace.end.links] == [each.name for each in limited]
            assert (trace.head.hardware.network.columns, trace.head.hardware.network.rows) == (4, 2)
    assert ["Links of the network" in page for page in pages] == [True, False]
