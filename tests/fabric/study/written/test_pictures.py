"""Pictures of studies: what is drawn where, and the same bytes each time."""

from __future__ import annotations

import io
import re
import struct
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fabric.explore.study.written import pictures
from fabric.explore.study.written.pictures import (
    _broken,
    draw_effects,
    draw_front,
    draw_parallel,
    drawn,
)
from tests.fabric.study.written.made import (
    RESULTS,
    design,
    hostile,
    one_metric,
    paper,
    three_metrics,
)

DRAWN = {
    "design": ["front", "effects", "parallel"],
    "one_metric": ["effects", "parallel"],
    "three_metrics": ["front", "effects", "parallel"],
    "paper": ["bars", "wrong"],
    "nothing": [],
    "over": ["front", "effects", "parallel"],
}


@pytest.fixture
def figure() -> Figure:
    """Return an empty figure."""
    found = Figure()
    FigureCanvasAgg(found)
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_which(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study has the pictures that say something of it; its own come first."""
    monkeypatch.setattr(pictures, "painted", lambda _, **__: ("", b""))
    assert [each.name for each in drawn(RESULTS[name]()).made] == DRAWN[name]


def test_files() -> None:
    """SVG and PNG are what they are called, as large as each other, and have no date."""
    for picture in drawn(design()).made:
        root = ET.fromstring(picture.svg)
        points = [float((root.get(name) or "").removesuffix("pt")) for name in ("width", "height")]
        assert picture.png.startswith(b"\x89PNG")
        pixels = struct.unpack(">II", picture.png[16:24])
        assert pixels == pytest.approx([each * 2 for each in points], abs=2)
        assert not re.search(r"<dc:date>|<metadata>\s*\S+\d{4}-\d\d", picture.svg)
        assert b"tEXt" not in picture.png or b"Software" not in picture.png


def test_again() -> None:
    """The same points are the same bytes, whatever somebody's matplotlibrc says."""
    first = drawn(design()).made
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "none", "svg.hashsalt": "other"}):
        again = drawn(design()).made
    assert first == again
    assert mpl.rcParams["svg.fonttype"] == mpl.rcParamsDefault["svg.fonttype"]


def test_front(figure: Figure) -> None:
    """Each run stands at its metrics, the front apart; what did not run at its bounds."""
    result = design()
    draw_front(result, figure)
    axes = figure.axes[0]
    found = {
        str(group.get_label()): sorted(map(tuple, np.asarray(group.get_offsets()).tolist()))
        for group in axes.collections
    }
    names = ("cycles", "on_chip_requirement_bytes")
    front = set(result.front)
    runs = [each for each in result.outcomes if each.status == "completed"]

    assert found["front"] == sorted(
        tuple(float(each.numbers[name]) for name in names) for each in runs if each.index in front
    )
    assert len(found["front"]) + len(found["dominated"]) == len(runs)
    assert found["proved dominated, at its bounds"] == sorted(
        tuple(float(each.bounds[name]) for name in names)
        for each in result.outcomes
        if each.status == "pruned"
    )
    assert axes.get_xlabel() == "cycles"
    assert axes.get_ylabel() == "on-chip requirement (bytes)"
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_front_of_three(figure: Figure) -> None:
    """Three metrics are three panels: every pair once."""
    draw_front(three_metrics(), figure)
    figure.canvas.draw()
    assert len(figure.axes) == 3
    assert all(len(axes.collections) == 2 for axes in figure.axes)


def test_effects(figure: Figure) -> None:
    """The line joins medians, the band goes from the least to the most, by brute force."""
    result = three_metrics()
    draw_effects(result, figure)
    assert len(figure.axes) == 4 * 3
    axes = figure.axes[3]  # cycles over scale
    line = np.asarray(axes.lines[0].get_xydata())
    band = np.asarray(axes.collections[1].get_paths()[0].vertices)
    for x, y in line.tolist():
        cycles = sorted(
            each.numbers["cycles"] for each in result.outcomes if each.setting["scale"] == x
        )
        middle = len(cycles) // 2
        assert y == (cycles[middle - 1] + cycles[middle]) / 2
        at = band[band[:, 0] == x, 1]
        assert (at.min(), at.max()) == (cycles[0], cycles[-1])
    assert axes.get_xscale() == "log"
    labels = [each.get_text() for each in figure.axes[11].get_xticklabels()]
    assert labels == ["0.5", "1.0", "1.5", "2.0", "10.0"]
    assert figure.axes[0].get_xscale() == "linear"


def test_parallel(figure: Figure) -> None:
    """A line a run, from its parameters to its metrics; the front above the others."""
    result = three_metrics()
    draw_parallel(result, figure)
    others, front = figure.axes[0].collections
    assert len(others.get_segments()) + len(front.get_segments()) == len(result.outcomes)  # type: ignore[attr-defined]
    assert len(front.get_segments()) == len(result.front)  # type: ignore[attr-defined]
    heights = front.get_segments()[0][:, 1]  # type: ignore[attr-defined]
    first = result.outcomes[result.front[0]]
    tilings = result.study.space.values["tiling"]
    assert heights[0] == tilings.index(first.setting["tiling"]) / 2
    cycles = [each.numbers["cycles"] for each in result.outcomes]
    assert heights[4] == pytest.approx(
        (first.numbers["cycles"] - min(cycles)) / (max(cycles) - min(cycles))
    )


def test_own_that_fails() -> None:
    """A study's own picture that raises is told with the line; the others are drawn."""
    found = drawn(paper())
    assert len(found.troubles) == 1
    assert re.fullmatch(
        r"picture wrong: ZeroDivisionError: on purpose, raised at .*made\.py:\d+",
        found.troubles[0],
    )


def test_names_that_are_markup() -> None:
    """Whatever names and titles have in them is drawn as it is, and leads to no other folder."""
    found = drawn(hostile())
    assert not found.troubles
    assert len(found.made) == 4
    for picture in found.made:
        assert "/" not in picture.name
        assert "<script" not in picture.svg
        ET.parse(io.StringIO(picture.svg))


def test_single_runs(figure: Figure) -> None:
    """One value of everything is drawn, too."""
    result = three_metrics(points=[7])
    for draw in (draw_front, draw_effects, draw_parallel):
        draw(result, figure)
        figure.canvas.draw()
        figure.clear()
    draw_effects(one_metric(), figure)
    figure.canvas.draw()


@given(st.text("abc ._", max_size=30), st.sampled_from(["._", " "]))
def test_long_titles_have_two_lines(title: str, at: str) -> None:
    """A long one is broken behind a letter of ``at``, where its halves are most alike."""
    broken = _broken(title, at)
    first, *more = broken.split("\n")

    assert broken.replace("\n", "").replace(" ", "") == title.replace(" ", "")
    if len(title) <= 12 or not set(title) & set(at):
        assert (first, more) == (title, [])
        return
    (second,) = more
    place = len(title) - len(second)
    assert title[place - 1] in at
    assert first == title[:place].rstrip()
    off = [abs(n + 1 - len(title) // 2) for n, letter in enumerate(title) if letter in at]
    assert abs(place - len(title) // 2) == min(off)
