from __future__ import annotations

import io
import itertools
import math
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fabric import Study, grid, zipped
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written import pictures
from fabric.explore.study.written.answer import best_table
from fabric.explore.study.written.painting import render, shown_labels
from fabric.explore.study.written.pictures import draw_effects, draw_front, draw_parallel, drawn
from tests.fabric.study.written import made

DRAWN = {
    "design": ["front", "parallel"],
    "one_metric": ["parallel"],
    "three_metrics": ["front", "effects", "parallel"],
    "paper": ["bars", "wrong"],
    "nothing": [],
    "over": ["front", "parallel"],
}


@pytest.fixture
def figure() -> Figure:
    found = Figure()
    FigureCanvasAgg(found)
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_study_has_the_pictures_of_its_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "render", lambda _, **__: ("", b""))
    assert [each.name for each in drawn(made.RESULTS[name]())[0]] == DRAWN[name]


@pytest.mark.parametrize(("count", "most"), [(4, 4), (30, 30), (120, 40)])
def test_tick_labels_do_not_overlap(count: int, most: int) -> None:
    figures: list[Figure] = []

    def draw(figure: Figure) -> None:
        figure.subplots().set_xlim(0, count)
        figure.axes[0].set_xticks(range(count), [f"{each:,}" for each in range(1000, 1000 + count)])
        figures.append(figure)

    render(draw, formulas=False)
    (axes,) = figures[0].axes
    labels = shown_labels(axes)
    angle = labels[0].get_rotation()
    labels[0].set_rotation(0)
    box = labels[0].get_window_extent()
    # A rotated text of height h takes h / sin(angle) of the axis.
    needed = box.height / math.sin(math.radians(angle)) if angle else box.width
    places = [axes.transData.transform((each.get_position()[0], 0))[0] for each in labels]

    assert most / 3 < len(labels) <= most
    assert all(right - left >= needed - 1 for left, right in itertools.pairwise(places))


def test_picture_follows_the_theme() -> None:
    picture = drawn(made.three_metrics())[0][0]
    assert "@media screen and (prefers-color-scheme:dark){svg{filter:invert(" in picture.svg
    ET.fromstring(picture.svg)


def test_picture_of_the_front_has_its_points(figure: Figure) -> None:
    result = made.design()
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


def test_picture_of_effects_has_medians_and_extremes(figure: Figure) -> None:
    result = made.three_metrics()
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
    assert labels == ["0.5", "1", "1.5", "2", "10"]
    assert figure.axes[0].get_xscale() == "linear"


def test_parallel_picture_has_a_line_for_each_run(figure: Figure) -> None:
    result = made.three_metrics()
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


def test_run_without_a_parameter_has_a_line_and_an_empty_cell(figure: Figure) -> None:
    space = zipped(tiling=["static", "static"], tile_n=[8, 16]) + grid(tiling=["dynamic"])
    study = Study(program=Path("programs/moe.py"), space=space, minimize=made.BOTH)
    numbers = [dict(zip(made.BOTH, each, strict=True)) for each in ((9, 1), (8, 2), (7, 3))]
    found = StudyResult(study, tuple(made.completed(n, study, **x) for n, x in enumerate(numbers)))
    draw_parallel(found, figure)
    _, front = figure.axes[0].collections
    heights = [segment[1][1] for segment in front.get_segments()]  # type: ignore[attr-defined]
    assert heights == [0, 0.5, 1]
    assert "not set" in [each.get_text() for each in figure.axes[0].texts]
    table = best_table(found)
    assert table.columns[:3] == ("point", "tiling", "tile_n")
    cells = [("dynamic", None), ("static", "16"), ("static", "8")]
    assert [row[1:3] for row in table.rows] == cells


def test_own_picture_that_fails_is_reported() -> None:
    _, (trouble,) = drawn(made.paper())
    pattern = r"picture wrong: .*made\.py:\d+: ZeroDivisionError: on purpose"
    assert re.fullmatch(pattern, trouble)


def test_pictures_with_hostile_names_are_well_formed() -> None:
    drawings, troubles = drawn(made.hostile())
    assert not troubles
    assert len(drawings) == 3
    for picture in drawings:
        assert "/" not in picture.name
        assert "<script" not in picture.svg
        ET.parse(io.StringIO(picture.svg))


def test_names_of_four_bars_in_a_narrow_picture_are_all_shown() -> None:
    figures: list[Figure] = []

    def draw(figure: Figure) -> None:
        for axes in figure.subplots(1, 4):
            axes.set_xticks(range(4), ["grid", "karate-club", "les-miserables", "power-law"])
            axes.tick_params(axis="x", rotation=30)
        figures.append(figure)

    render(draw, formulas=False)

    assert [4] * 4 == [len(shown_labels(axes)) for axes in figures[0].axes]
