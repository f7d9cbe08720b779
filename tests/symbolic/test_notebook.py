"""What notebooks and rich show of streams, programs and reports."""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import numpy as np
from rich.console import Console
from rich.pretty import pprint

from fabric import Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.symbolic.programs import wired


def small() -> Program:
    """A load and a store."""
    with Program("small <1>") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name="x")())
    return program


def rich_text(value: object) -> str:
    """What rich prints of ``value``."""
    console = Console(file=io.StringIO(), width=200)
    pprint(value, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_stream() -> None:
    """Name, shape and element."""
    with Program("p"):
        stream = LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name="x<y")()

    assert "Stream(name='x<y.0', shape='[1, 2, 1]', value='1x32 bfloat16')\n" == rich_text(stream)
    assert "<code>x&lt;y.0</code> [1, 2, 1] of 1x32 bfloat16" == stream._repr_html_()


def test_program() -> None:
    """Its graph; nothing while it is not complete."""
    program = small()
    drawn = program._repr_svg_()

    assert drawn is not None
    assert "small <1>" in {text.text for text in ET.fromstring(drawn).iter() if text.text}
    assert "Program(name='small <1>', operators=2, symbols=0)\n" == rich_text(program)
    with Program("open") as incomplete:
        LinearOffChipLoad(np.zeros((2, 32)), (1, 32))()
    assert incomplete._repr_svg_() is None


def test_drawing_leaves_a_program_as_it_was() -> None:
    """A program that was shown runs all the same."""
    program = wired("simplified_moe")
    program._repr_svg_()

    assert simulate(program).cycles == simulate(wired("simplified_moe")).cycles


def test_report() -> None:
    """What ``run`` prints, with what was expected beside what was measured."""
    report = simulate(small())
    html = report._repr_html_()
    assert html is not None

    assert html.startswith("<pre>")
    assert "small &lt;1&gt;" in html
    for line in (
        "                             expected measured",
        "off-chip loads, bytes             128      128",
        "off-chip stores, bytes            128      128",
        "FLOPs                               0        0",
        "channels with these elements        1        1",
    ):
        assert line in html
    assert rich_text(report) == (
        f"Report(name='small <1>', status='completed', cycles={report.cycles}, verified=None)\n"
    )
