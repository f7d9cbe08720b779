"""Strips in a study's page: where each input of a design stands, and what it is called."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from fabric import Study, grid
from fabric.explore.study.outcome import metric
from fabric.explore.study.written.markup import Markup
from fabric.explore.study.written.page import page_html, strips
from fabric.explore.study.written.pictures import Pictures
from tests.fabric.study.written.made import HOSTILE, design, over_inputs


def test_every_input_has_its_mark() -> None:
    """All strips of a column have one scale; a mark says which input it is and what it has."""
    result = over_inputs()
    study = result.study
    ((title, cells), *_) = strips(result, [8, 0])

    assert title == "cycles with each input, 70,312 to 1,290,000 by their logarithms"
    places: dict[int, float] = {}
    for index, cell in zip((8, 0), cells, strict=True):
        svg = ET.fromstring(cell)
        marks = svg.findall("path")
        runs = [each for each in result.runs if study.design_of(each.index) == index]
        assert len(marks) == len(runs) == 6
        for mark, run in zip(marks, runs, strict=True):
            told = mark.findtext("title") or ""
            cycles = metric(run, "cycles")
            assert told.startswith(study.input_name(run.index))
            assert told.endswith(f": {cycles:,}")
            assert ("held out" in told) is study.is_held_out(run.index)
            found = re.match(r"M([\d.]+) ", mark.get("d") or "")
            assert found is not None
            places[int(cycles or 0)] = float(found[1])
    assert list(places) != sorted(places)
    assert [places[each] for each in sorted(places)] == sorted(places.values())
    assert min(places.values()) >= 0
    assert max(places.values()) <= 160


def test_the_page_has_them() -> None:
    """In the table of the front, and the inputs held out in one of their own."""
    page = page_html(over_inputs(), Pictures((), ()), "")
    assert page.count('<svg class="inputs"') == 10
    assert "On 2 inputs held out" in page
    assert "<td>routing, an input</td>" in page
    assert "spared <b>" not in page
    assert "That spared 3 runs." in page


def test_without_inputs_there_are_none() -> None:
    """A design that is one run has no strip, and its page says nothing of inputs."""
    assert strips(design(), [0]) == []
    page = page_html(design(), Pictures((), ()), "")
    assert 'class="inputs"' not in page
    assert "held out" not in page


def _balances(*values: int) -> list[tuple[str, list[Markup]]]:
    """Return the strips of a design whose metric is so much on each of its inputs."""
    result = over_inputs()
    study = Study(
        program=result.study.program,
        space=grid(tile_n=(1,)),
        over=grid({HOSTILE: (1, 2)}),
        minimize=("mean:extra.balance",),
    )
    runs = tuple(
        replace(result.runs[0], index=n, setting=study.runs[n], numbers={"extra.balance": each})
        for n, each in enumerate(values)
    )
    return strips(replace(result, study=study, runs=runs), [0])


@pytest.mark.parametrize("value", [0, -3])
def test_numbers_that_have_no_logarithm(value: int) -> None:
    """They stand where they are; an input may be called anything."""
    ((title, (cell,)),) = _balances(value, 4)
    assert title == f"balance with each input, {value} to 4"
    least, most, middle = ET.fromstring(cell)
    assert [each.tag for each in (least, most, middle)] == ["path", "path", "circle"]
    # 160 wide, with a margin of 4: the median is halfway.
    assert [least.get("d"), most.get("d")] == ["M4.0 2V11", "M156.0 2V11"]
    assert (middle.get("cx"), middle.get("cy"), middle.get("r")) == ("80.0", "6.5", "2.5")


def test_what_is_the_same_with_every_input_has_none() -> None:
    """A strip would show nothing where no design's metric differs from input to input."""
    assert _balances(4, 4) == []
