from __future__ import annotations

import ast
import io
import re
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
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.deadlock.cases import CASES
from tests.fabric.trace.browsing import browsing
from tests.notebooks import TOUR, executed, outputs, page, stored
from tests.profiles import spread
from tests.symbolic.programs import wired


def small(name: str = "x") -> Program:
    with Program("small <1>") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name=name)())
    return program


def rich_text(value: object) -> str:
    console = Console(file=io.StringIO(), width=200)
    pprint(value, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.opened: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.opened.append(tag)
        self.names.add(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.opened.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str | None) -> Texts:
    assert html is not None
    parser = Texts()
    parser.feed(html)
    parser.close()
    assert not parser.opened
    return parser


def cells(html: str | None) -> list[list[str]]:
    assert html is not None
    return [
        re.findall(r"<t[dh][^>]*>(?:<span.*?</span>)?([^<]*)</t", row)
        for row in re.findall(r"<tr>.*?</tr>", html)
    ]


class TestShown:
    def test_stream_shows_its_name_shape_and_producer(self) -> None:
        with Program("p"):
            stream = LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name="x<y")()
        assert "Stream(name='x<y.0', shape='[1, 2, 1]', value='1x32 bfloat16')\n" == rich_text(
            stream
        )
        texts = read(stream._repr_html_()).texts
        assert ["x<y.0", "[1, 2, 1]", "1x32 bfloat16"] == [texts[k] for k in (2, 4, 6)]
        assert texts[8].startswith("x<y: LinearOffChipLoad at test_notebook.py:")

    def test_program_shows_its_graph_and_tables(self) -> None:
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
        program = wired("simplified_moe")
        program._repr_html_()

        assert simulate(program).cycles == simulate(wired("simplified_moe")).cycles

    def test_report_shows_the_rows_of_run(self) -> None:
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

    def test_deadlock_shows_a_picture_and_the_remedy(self) -> None:
        shown = read(simulate(CASES["pack_rows"].build())._repr_html_())

        assert {"svg", "pre"} <= shown.names
        assert "capacity deadlock at cycle 5" in shown.texts
        assert any("--depth a_join.1=8" in text for text in shown.texts)

    def test_trace_shows_stalls(self, tmp_path: Path) -> None:
        trace = simulate(wired("simplified_moe"), log_dir=tmp_path, trace="events").trace()
        texts = read(trace._repr_html_()).texts

        assert "completed, verified in functional mode, 1,474 cycles" in texts
        assert trace.stalls().verdict in texts
        assert {"Each unit", "Critical path", "matmul_1", "wired at"} <= set(texts)


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
    def test_value_of_a_cell_is_shown_once(self) -> None:
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

    @pytest.mark.deep
    def test_results_are_one_output_and_their_text_is_returned(self) -> None:
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

    @pytest.mark.deep
    def test_tour_shows_what_is_stored_in_it(self) -> None:
        tour: Any = nbformat.read(TOUR, as_version=4)
        nbformat.validate(tour)
        before = outputs(tour)

        assert any(before)
        assert before == outputs(stored(tour))
        assert "/ipykernel_" not in TOUR.read_text(encoding="utf-8")

    @pytest.mark.parametrize(("theme", "host"), spread([("light", "dark"), ("dark", "light")], 1))
    def test_tour_in_a_browser_unfolds_and_follows_the_theme(
        self, theme: Any, host: Any, tmp_path: Path
    ) -> None:
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
            paper = shown.locator(".step-picture > .graph > polygon").first.evaluate(paint, "fill")
            title = shown.locator(".step-picture > .graph > text").first.evaluate(paint, "fill")
            text = shown.locator(".step-shown b").first.evaluate(paint, "color")

        light, dark = (paper, (title, text)) if theme == "light" else (min(title, text), (paper,))
        assert light > 200
        assert max(dark) < 100
