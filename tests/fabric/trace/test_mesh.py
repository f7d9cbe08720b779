"""The mesh on the page of a run: which links are drawn, how busy, and what a hostile trace does."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from fabric import Hardware, Program, hardware_scope
from fabric.analysis.trace.pages.graph import mesh
from fabric.analysis.trace.pages.page import write_page
from fabric.timing.network import Mesh
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.trace.recording import record

META = {"hardware": {"network": {"columns": 3, "rows": 2}}}


def _picture(section: str) -> ET.Element:
    found = re.search("<svg.*</svg>", section)
    assert found is not None
    return ET.fromstring(found[0])


def _paths(section: str, kind: str) -> dict[str, str]:
    """Return the paths of a kind, by what is told of them."""
    return {
        path.findtext("title") or "": path.attrib["d"]
        for path in _picture(section).iter("path")
        if path.attrib["class"] == kind
    }


def test_a_link_has_the_shade_of_its_share() -> None:
    """A line from a site to its neighbour, beside the one back; a square by its busier way."""
    section = mesh(
        [
            ("0,0 -> 1,0", "80", "100.0", "a -> b.0"),
            ("1,0 -> 0,0", "4", "5.0", "c -> d.0"),
            ("2,1 -> 2,0", "64", "79.9", "c -> d.0"),
            ("into 1,0", "80", "40.0", "a -> b.0"),
            ("out of 1,0", "4", "5.0", "c -> d.0"),
        ],
        META,
    )
    assert _picture(section).attrib["viewBox"] == "0 0 30 20"
    assert _paths(section, "link") == {
        "busy 0 to 10 %": "M15 4.1h-10",
        "busy 70 to 80 %": "M25.9 15v-10",
        "busy 90 to 100 %": "M5 5.9h10",
    }
    assert _paths(section, "busy") == {"busy 40 to 50 %": "M12.2 2.2h5.6v5.6h-5.6z"}
    (sites,) = _paths(section, "site").values()
    assert sites.count("M") == 6
    explained = re.findall(r'opacity:([\d.]+)"></span>(\d+ to \d+ %)', section)
    assert explained == [
        ("0.2", "10 to 20 %"), ("0.4", "30 to 40 %"), ("0.6", "50 to 60 %"),
        ("0.8", "70 to 80 %"), ("1.0", "90 to 100 %"),
    ]  # fmt: skip
    busiest = re.findall('<tr><td class="">(.*?)</td>', section)
    assert busiest == ["0,0 -&gt; 1,0", "2,1 -&gt; 2,0", "into 1,0", "1,0 -&gt; 0,0", "out of 1,0"]


def test_sizes_of_a_mesh() -> None:
    """The ten busiest links are rows; 40 pixels a site, at most 760; 1,024 columns at most."""
    rows = [(f"{at},0 -> {at + 1},0", f"{at}", f"{10 * at}", "c") for at in range(12)]
    section = mesh([*rows, ("into 1,0", "1", "199.9", ""), ("into 2,0", "1", "200", "")], META)
    assert re.findall('<tr><td class="">(.*?)</td>', section) == [
        "into 1,0", *(f"{at},0 -&gt; {at + 1},0" for at in range(11, 2, -1)),
    ]  # fmt: skip
    assert '<p class="quiet">3 more links carried something.</p>' in section
    assert '<th class="">busiest links</th><th class="n">bytes</th>' in section
    picture = _picture(section)
    assert {"viewBox": "0 0 130 20", "style": "max-width:520px", "role": "img"}.items() <= (
        picture.attrib.items()
    )
    drawn = [each.attrib["style"] for each in picture if each.attrib.get("class") == "link"]
    assert drawn == [
        f"opacity:{(level + 1) / 10};stroke-width:{0.4 + 0.12 * level:.2f}" for level in range(10)
    ]
    assert _paths(section, "busy") == {"busy 90 to 100 %": "M12.2 2.2h5.6v5.6h-5.6z"}
    assert "carried something" not in mesh(rows[:10], META)
    one = mesh(rows[:11], {"hardware": {"network": {"columns": 1_024, "rows": 1_025}}})
    assert '<p class="quiet">1 more link carried something.</p>' in one
    assert 'viewBox="0 0 10240 10" style="max-width:760px"' in one
    down = _paths(mesh([("1,2 -> 1,3", "1", "1", ""), ("2,0 -> 2,0", "1", "1", "")], {}), "link")
    assert down == {"busy 0 to 10 %": "M14.1 25v10"}


def test_what_is_no_link_is_left_out() -> None:
    """A trace may come from anywhere: no row breaks the page, and no text is HTML."""
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


def test_the_page_shows_what_the_report_says(tmp_path: Path) -> None:
    """Links with a limit of a run, in percent of what they could carry; none without a limit."""
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
