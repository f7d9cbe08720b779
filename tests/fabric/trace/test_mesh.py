from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fabric import Hardware, Program, hardware_scope
from fabric.analysis.trace.pages.links import links_section
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.reading.integrity import Mesh, links_in
from fabric.graph.hardware import latency
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.trace.recording import record

LINK = {
    "name": "0,0 -> 1,0", "source": [0, 0], "target": [1, 0], "bytes": 1,
    "share": 0.5, "channels": ["<script>"], "users": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "links",
    [
        None,
        [["0,0 -> 1,0", "1", "50.0", ""]],
        [LINK | {"share": 7}],
        [LINK | {"target": [2, 2]}],
        [LINK | {"source": [1024, 0]}],
    ],
)
def test_links_that_no_run_writes_are_left_out(links: object) -> None:
    assert links_in({"links": links}) == []


def test_mesh_has_a_line_and_a_row_for_each_link() -> None:
    inside = LINK | {"name": "into 1,1", "source": [1, 1], "target": [1, 1], "share": 0.93}
    section = links_section(links_in({"links": [LINK, inside]}), Mesh(columns=3, rows=2))
    titles = re.findall(r"<title>(busy .*?)</title>", section)

    assert titles == ["busy 50 to 60 %", "busy 90 to 100 %"]
    assert "&lt;script&gt;, 2 more" in section


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
            assert [link.share for link in trace.links] == shares
            assert [link.name for link in trace.links] == [each.name for each in limited]
            assert (trace.mesh.columns, trace.mesh.rows) == (4, 2)
    assert ["Links of the network" in page for page in pages] == [True, False]
