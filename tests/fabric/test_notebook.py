"""What notebooks and rich show of programs, streams, reports and traces."""

from __future__ import annotations

import ast
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nbformat
import numpy as np
import pytest
from rich.console import Console
from rich.pretty import pprint

from fabric import Program, simulate
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.telling.causes import Cause
from fabric.messages.telling.sheet import Part, Rows, Title, line
from fabric.notebook import showing
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.deadlock.cases import CASES
from tests.fabric.test_render import EVERYTHING, unit
from tests.fabric.trace.browsing import browsing
from tests.notebooks import TOUR, executed, outputs, page, stored
from tests.profiles import spread
from tests.symbolic.programs import wired


def small(name: str = "x") -> Program:
    """A load and a store."""
    with Program("small <1>") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name=name)())
    return program


def rich_text(value: object) -> str:
    """What rich prints of ``value``."""
    console = Console(file=io.StringIO(), width=200)
    pprint(value, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Texts(HTMLParser):
    """The texts of HTML, and that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.opened: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        """Remember it."""
        self.opened.append(tag)
        self.names.add(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        """Nothing is in it."""
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        """It closes what was opened last."""
        assert tag == self.opened.pop()

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.texts.append(data)


def read(html: str | None) -> Texts:
    """Parse what a notebook shows."""
    assert html is not None
    parser = Texts()
    parser.feed(html)
    parser.close()
    assert not parser.opened
    return parser


def cells(html: str | None) -> list[list[str]]:
    """Return the texts of each row of all tables."""
    assert html is not None
    return [
        re.findall(r"<t[dh][^>]*>(?:<span.*?</span>)?([^<]*)</t", row)
        for row in re.findall(r"<tr>.*?</tr>", html)
    ]


class TestShown:
    def test_stream(self) -> None:
        """Name, shape, element, and who produces it."""
        with Program("p"):
            stream = LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name="x<y")()
        assert "Stream(name='x<y.0', shape='[1, 2, 1]', value='1x32 bfloat16')\n" == rich_text(
            stream
        )
        texts = read(stream._repr_html_()).texts
        assert ["x<y.0", "[1, 2, 1]", "1x32 bfloat16"] == [texts[k] for k in (2, 4, 6)]
        assert texts[8].startswith("x<y: LinearOffChipLoad at test_notebook.py:")

    def test_program(self) -> None:
        """Its graph, its operators and channels; without a graph while it is not complete."""
        program = small()
        drawn = program._repr_svg_()
        assert drawn is not None
        shown = read(program._repr_html_())

        assert "small <1>" in {text.text for text in ET.fromstring(drawn).iter() if text.text}
        assert "Program(name='small <1>', operators=2, symbols=0)\n" == rich_text(program)
        assert {"svg", "details", "table"} <= shown.names
        assert {"Operators", "Channels", "x.0 → linear_off_chip_store_1.0"} <= set(shown.texts)
        with Program("open") as incomplete:
            LinearOffChipLoad(np.zeros((2, 32)), (1, 32))()
        assert incomplete._repr_svg_() is None
        text = "".join(read(incomplete._repr_html_()).texts)
        assert "1 operator so far; " in text
        assert "is read by no operator" in text

    def test_showing_leaves_a_program_as_it_was(self) -> None:
        """A program that was shown runs all the same."""
        program = wired("simplified_moe")
        program._repr_html_()

        assert simulate(program).cycles == simulate(wired("simplified_moe")).cycles

    def test_report(self) -> None:
        """What ``run`` prints, with what was expected beside what was measured."""
        report = simulate(small())
        texts = read(report._repr_html_()).texts
        rows = [" ".join(texts[k : k + 3]) for k in range(len(texts))]

        assert "small <1>" in texts
        for row in (
            "off-chip loads, bytes 128 128",
            "off-chip stores, bytes 128 128",
            "FLOPs 0 0",
            f"off-chip traffic {report.off_chip_traffic_bytes:,} bytes",
        ):
            assert row in rows
        assert "Report(name='small <1>', status='completed'" in rich_text(report)

    def test_everything(self) -> None:
        """Prices, area, noise, what was expected, units and channels: each row in full."""
        busy = tuple(
            replace(unit(name, 11, elements, busy=busy, credit=30), operator="Load")
            for name, elements, busy in (
                ("load_1", 0, 250), ("load_2", 1_000, 100), ("load_3", 3, 0), ("sum", 9, 500),
            )
        )  # fmt: skip
        html = EVERYTHING._repr_html_()
        units = cells(replace(EVERYTHING, units=busy)._repr_html_())
        found = cells(html)

        assert "completed in timing mode, floats in float64" in read(html).texts
        for row in (
            ["y", "no error"],
            ["z", "63.3"],
            ["", "amount", "joules", "% of all"],
            ["static", "no clock", "no price", "0.0"],
            ["", "amount", "mm\N{SUPERSCRIPT TWO}, low to high"],
            ["links of the network", "no limit", "not stated"],
            ["FLOPs", "9", "9"],
            ["on-chip requirement, bytes", "\N{LESS-THAN OR EQUAL TO} 1,000", "90"],
            ["channel", "channels", "depth", "most used", "elements", "least to most"],
            ["a_0..1.0 -&gt; z.0", "2", "2", "2", "5", "5 to 7"],
            ["b.0 -&gt; z.0", "1", "2", "2", "1,000", ""],
        ):
            assert row in found
        head = ["unit", "units", "cycles", "busy, %", "least to most", "elements", "wired at"]
        at = units.index(head)
        assert units[at + 1 : at + 3] == [
            ["sum", "1", "", "50.0", "", "9", "small.py:11"],
            ["load_1..3", "3", "", "10.0", "0.0 to 25.0", "1,000", "small.py:11"],
        ]
        assert units[at + 3 : at + 8] == [
            ["unit", "cycles", "busy, %", "elements", "wired at"],
            ["sum", "", "50.0", "9", "small.py:11"],
            ["load_1", "", "25.0", "0", "small.py:11"],
            ["load_2", "", "10.0", "1,000", "small.py:11"],
            ["load_3", "", "0.0", "3", "small.py:11"],
        ]
        shown = replace(EVERYTHING, units=busy)._repr_html_() or ""
        assert f'width:3.6px;background:{Cause.FULL.colour}" title="full 3.0 %"' in shown

    def test_sheets(self) -> None:
        """Numbers stand right and titles with them; what is left out of a table is counted."""
        rows = [("a", 1_000, "x"), ("b", 2.5, "1"), ("c", 3, "")]
        parts: list[Part] = [Title("T", ", n<"), line(("e:", "bold red"), " w"), line()]
        assert showing.sheet([*parts, Rows(("k", "v", "o"), rows, 2)]) == (
            '<p><b>T</b><span class="quiet">, n&lt;</span></p>'
            '<p><span class="wrong">e:</span><span class=""> w</span></p>'
            '<div class="scroll"><table><thead><tr><th>k</th><th class="number">v</th><th>o</th>'
            '</tr></thead><tbody><tr><td>a</td><td class="number">1,000</td><td>x</td></tr>'
            '<tr><td>b</td><td class="number">2.5</td><td class="number">1</td></tr></tbody>'
            '</table></div><p class="quiet">and 1 more</p>'
        )
        assert "<thead>" not in showing.sheet([Rows(("", ""), [("a", 1)])])
        assert "more" not in showing.sheet([Rows(("k",), rows, 3)])

    def test_deadlock(self) -> None:
        """Why it does not move, as a picture and in words."""
        shown = read(simulate(CASES["pack_rows"].build())._repr_html_())

        assert {"svg", "pre"} <= shown.names
        assert "capacity deadlock at cycle 5" in shown.texts
        assert any("--depth a_join.1=8" in text for text in shown.texts)

    def test_trace(self, tmp_path: Path) -> None:
        """What was recorded, what bounds the run, and where units waited."""
        trace = simulate(wired("simplified_moe"), log_dir=tmp_path, trace="events").trace()
        texts = read(trace._repr_html_()).texts

        assert "Recorded: cycles 0 to 1,474, all units." in texts
        assert "completed, verified; 1,474 cycles" in texts
        assert {"Stalls", "matmul_1", "wired at"} <= set(texts)
        stalls, rows = trace.stalls(), cells(trace._repr_html_())
        titles = ["unit", "units", "cycles", "stalled", "least to most", "mostly", "wired at"]
        expected = [titles]
        for family in stalls.folded.families:
            least, median, most = family.spread
            ends = f"{least.stalled_cycles:,} to {most.stalled_cycles:,}"
            expected.append([
                family.name, str(len(family.units)), "", f"{median.stalled_cycles:,}",
                ends if len(family.units) > 1 else "", family.mostly,
                f"{Path(median.file).name}:{median.line}",
            ])  # fmt: skip
        expected.append(["unit", "cycles", "stalled", "mostly", "wired at"])
        expected += [
            [
                unit.name, "", f"{unit.stalled_cycles:,}", str(unit.mostly or ""),
                f"{Path(unit.file).name}:{unit.line}",
            ]
            for unit in stalls.units
        ]  # fmt: skip
        assert expected == rows
        busy = max(unit.busy_cycles for unit in stalls.units)
        width = f"width:{120 * busy / 1_474:.1f}px;background:{Cause.BUSY.colour}"
        assert width in (trace._repr_html_() or "")

    def test_part_of_a_trace(self, tmp_path: Path) -> None:
        """Which cycles and which units; a run that stopped is not right."""
        options = TraceOptions(window=(1, 3), nodes="a_*")
        stuck = CASES["pack_rows"].build()
        html = simulate(stuck, log_dir=tmp_path, trace=options).trace()._repr_html_()
        assert "Recorded: cycles 1 to 4, a_*." in read(html).texts
        assert '<p class="wrong">deadlock; 5 cycles</p>' in (html or "")

    def test_families(self) -> None:
        """Alike operators and channels are a row, with their number, and what they carry."""
        with Program("alike") as program:
            for number in range(3):
                tiles = LinearOffChipLoad(np.zeros((2 * number + 2, 32)), (1, 32))()
                LinearOffChipStore(f"y{number}", name=f"s_{number}")(tiles)
        first, *rows = cells(program._repr_html_())
        assert ["name", "operators", "operator", "unit", "makes", "wired at"] == first
        load, store, head, channel = rows
        assert ["linear_off_chip_load_1..3", "3", "LinearOffChipLoad", "memory"] == load[:4]
        assert "[1, i, 1] of 1x32 bfloat16" == load[4]
        assert ["s_0..2", "3", "LinearOffChipStore", "memory", ""] == store[:5]
        assert ["channel", "channels", "carries"] == head
        arrow = "linear_off_chip_load_1..3.0 \N{RIGHTWARDS ARROW} s_0..2.0"
        assert [arrow, "3", load[4]] == channel
        assert "6 operators, 3 channels, timing mode" in read(program._repr_html_()).texts

    def test_tables(self, tmp_path: Path) -> None:
        """The first rows of a query, and how many there are."""
        trace = simulate(wired("simplified_moe"), log_dir=tmp_path, trace="events").trace()
        texts = read(trace.query("SELECT 'a<b' AS x, NULL AS y FROM units")._repr_html_()).texts
        assert {"x", "y", "a<b", "20 of 28 rows"} <= set(texts)
        few = read(trace.query("SELECT name FROM units LIMIT 20")._repr_html_()).texts
        assert "matmul_1" in few
        assert not any(text.endswith("rows") for text in few)

    @pytest.mark.parametrize("name", ["<script>&amp;", "'\"", "</style><script>", "${x}"])
    def test_names(self, name: str, tmp_path: Path) -> None:
        """Names are data: they open no tag and close none."""
        program = small(name)
        report = simulate(program, log_dir=tmp_path, trace="events")
        trace = report.trace()

        for thing in (program, program.nodes[0].outputs[0], report, trace):
            shown = read(thing._repr_html_())
            assert any(name in text for text in shown.texts)
            assert "script" not in shown.names

    def test_long_tables(self) -> None:
        """Of very many rows some are written, and how many there are is said."""
        texts = read(showing.table(("name",), [(f"n{k}",) for k in range(1_000)])).texts

        assert 202 == len(texts)
        assert "200 of 1,000 rows" == texts[-1]
        assert "n199" == read(showing.table(("name",), [(f"n{k}",) for k in range(200)])).texts[-1]

    def test_bars(self) -> None:
        """A bar has the colours of the causes, and says how much each is."""
        html = showing.bar({Cause.BUSY: 0.25, Cause.EMPTY: 0.0, Cause.IDLE: 0.75})

        assert f'width:30.0px;background:{Cause.BUSY.colour}" title="busy 25.0 %"' in html
        assert Cause.EMPTY.colour not in html


ONCE = """
import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fabric import Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore


def small():
    with Program("small") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.zeros((2, 32)), (1, 32))())
    return program
"""


ANALYSES = """
import numpy as np

from fabric import Cost, Mesh, Program, lower_bounds, place, simulate, size
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU

with Program("nb", mode="functional") as program:
    tiles = LinearOffChipLoad(np.ones((8, 16)), tile=(2, 16))()
    LinearOffChipStore("y")(Map(SiLU())(tiles))
report = simulate(program, trace="events")
trace = report.trace()
"""

RESULTS_SHOWN = (
    "program",
    "report",
    "trace",
    "size(program)",
    "lower_bounds(program)",
    "place(program, Mesh(columns=2, rows=2))",
    "Cost.of(report)",
    "trace.summary()",
    "trace.stalls()",
    "trace.stalls().critical_path",
    "trace.at(20)",
    "trace.diff(trace)",
    "trace.what_if(work={'silu_1': 2})",
    "trace.query('SELECT name FROM units')",
)


class TestExecuted:
    def test_once(self) -> None:
        """Each thing is shown once, as HTML, inside of a kernel's loop and in several threads."""
        notebook = executed(
            ONCE,
            "small()",
            "simulate(small())",
            "small().nodes[0].outputs[0]",
            "await asyncio.sleep(0)\nsimulate(small())",
            "with ThreadPoolExecutor(4) as threads:\n"
            "    cycles = set(threads.map(lambda _: simulate(small()).cycles, range(8)))\n"
            "len(cycles)",
            "try:\n    simulate(small(), trace='evnts')\n"
            "except Exception as error:\n    told = str(error)\ntold",
        )
        first, *shown, threads, told = outputs(notebook)

        assert [] == first
        for output in shown:
            assert ["execute_result"] == [each["output_type"] for each in output]
            assert {"text/html"} <= output[0]["data"].keys() <= {"text/html", "image/svg+xml"}
        assert "LinearOffChipLoad at In[1]:12" in shown[2][0]["data"]["text/html"]
        assert ["1"] == [each["data"]["text/plain"] for each in threads]
        assert told[0]["data"]["text/plain"].strip("\"'").startswith("In[7]:2: simulate: trace is")

    def test_results_are_one_output_and_their_text_is_returned(self) -> None:
        """Each analysis is one output as a cell's last line; str() returns what print() prints."""
        every = ", ".join(RESULTS_SHOWN)
        notebook = executed(
            ANALYSES,
            *RESULTS_SHOWN,
            f"texts = [str(each) for each in ({every})]",
            *(f"print({each})" for each in RESULTS_SHOWN),
            "texts",
        )
        cells = [cell.outputs for cell in notebook.cells[1:]]
        count = len(RESULTS_SHOWN)
        shown, silent, printed = cells[:count], cells[count], cells[count + 1 : -1]

        for output in shown:
            assert ["execute_result"] == [each.output_type for each in output]
            assert {"text/html", "text/plain"} <= output[0].data.keys()
            assert " object at 0x" not in output[0].data["text/plain"]
        assert silent == []
        texts = ast.literal_eval(cells[-1][0].data["text/plain"])
        # A kernel may pass on a long text in several pieces.
        pieces = [["".join(each.text for each in output)] for output in printed]
        assert pieces == [[f"{text}\n"] for text in texts]
        assert not [text for text in texts if not text or " object at 0x" in text]

    def test_tour(self) -> None:
        """The tour shows what is stored in it."""
        tour: Any = nbformat.read(TOUR, as_version=4)
        nbformat.validate(tour)
        before = outputs(tour)

        assert any(before)
        assert before == outputs(stored(tour))
        assert "/ipykernel_" not in TOUR.read_text(encoding="utf-8")

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_page(self, theme: Any) -> None:
        """As a page of JupyterLab it has every picture once."""
        text = page(nbformat.read(TOUR, as_version=4), theme)

        assert 2 == len(re.findall(r"<svg [^>]*class=\"step-picture\"", text))
        assert f'data-jp-theme-light="{str(theme == "light").lower()}"' in text

    @pytest.mark.parametrize(("theme", "host"), spread([("light", "dark"), ("dark", "light")], 1))
    def test_in_a_browser(self, theme: Any, host: Any, tmp_path: Path) -> None:
        """Sections unfold; text and pictures have the notebook's theme, whatever the host's is."""
        file = tmp_path / "tour.html"
        file.write_text(page(nbformat.read(TOUR, as_version=4), theme), encoding="utf-8")
        with browsing() as browser:
            shown = browser.new_page(color_scheme=host)
            shown.goto(file.as_uri(), wait_until="domcontentloaded")
            operators = shown.locator("details", has_text="Operators").first
            assert not operators.locator("table").is_visible()
            operators.locator("summary").click()
            assert operators.locator("table").is_visible()
            assert ["LinearOffChipLoad", "Map", "LinearOffChipStore"] == (
                operators.locator("tbody tr td:nth-child(3)").all_inner_texts()
            )
            paint = "(each, name) => parseInt(getComputedStyle(each)[name].match(/\\d+/)[0])"
            paper = shown.locator(".step-picture > rect.paper").first.evaluate(paint, "fill")
            title = shown.locator(".step-picture > text.ink").first.evaluate(paint, "fill")
            text = shown.locator(".step-shown b").first.evaluate(paint, "color")

        light, dark = (paper, (title, text)) if theme == "light" else (min(title, text), (paper,))
        assert light > 200
        assert max(dark) < 100
