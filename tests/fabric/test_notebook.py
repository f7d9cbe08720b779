from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import nbformat
import numpy as np
import pytest
from rich.console import Console
from rich.pretty import pprint

from fabric import Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.notebooks import TOUR, executed, outputs, stored
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
    def test_tour_shows_what_is_stored_in_it(self) -> None:
        tour: Any = nbformat.read(TOUR, as_version=4)
        nbformat.validate(tour)
        before = outputs(tour)

        assert any(before)
        assert before == outputs(stored(tour))
        assert "/ipykernel_" not in TOUR.read_text(encoding="utf-8")
