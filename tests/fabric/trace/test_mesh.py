from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from fabric import Hardware, Program, hardware_scope
from fabric.analysis.trace.pages.graph import mesh
from fabric.analysis.trace.pages.page import write_page
from fabric.graph.hardware.latency import Mesh
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.trace.recording import record

META = {"hardware": {"network": {"columns": 3, "rows": 2}}}


def _picture(section: str) -> ET.Element:
    found = re.search("<svg.*</svg>", section)
    assert found is not None
    return ET.fromstring(found[0])


def _paths(section: str, kind: str) -> dict[str, str]:
    return {
        path.findtext("title") or "": path.attrib["d"]
        for path in _picture(section).iter("path")
        if path.attrib["class"] == kind
    }


def test_mesh_of_hostile_rows_is_left_out() -> None:
    rows = [
        ("<b>", "1", "50.0", "<script>"),
        ("0,0 -> 9,9", "1", "nan", ""),
        ("0,0 -> 9,9", "1", "inf", ""),
        ("0,0 -> 9,9", "1"),
        ("0,0 -> 2,2", "1", "10.0", "far"),
    ]
    section = mesh(rows, {"hardware": {"network": {"columns": 10**9, "rows": "x"}}})
    assert "<script>" not in section
    assert _paths(section, "link") == {}
    assert _picture(section).attrib["viewBox"] == "0 0 30 30"
    assert mesh([("0,0 -> 1,0", "1", "no", "")], META) == mesh([], {}) == ""


def test_mesh_on_the_page_has_the_shares_of_the_report(tmp_path: Path) -> None:
    pages = []
    for width in (8, None):
        hardware = Hardware(network=Mesh(columns=4, rows=2, link_bytes_per_cycle=width))
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
            shares = [f"{100 * (each.share(report.cycles or 0) or 0):.1f}" for each in limited]
            assert [row[2] for row in trace.links] == shares
            assert [row[0] for row in trace.links] == [each.name for each in limited]
    assert ["Links of the network" in page for page in pages] == [True, False]
