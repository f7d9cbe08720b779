"""Pictures of studies: what is drawn where, and the same bytes each time."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fabric import Picture, Study, grid, zipped
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written import pictures
from fabric.explore.study.written.painting import is_wide, locator, painted, shown_labels
from fabric.explore.study.written.pictures import (
    _broken,
    draw_effects,
    draw_front,
    draw_parallel,
    drawn,
)
from tests.fabric.study.written.drawings import told_picture
from tests.fabric.study.written.made import (
    RESULTS,
    completed,
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


@pytest.mark.parametrize("scale", [1, 10**6])
def test_tick_labels_do_not_overlap(scale: int) -> None:
    """Large numbers below narrow panels are slanted, and short ones are not."""
    result = three_metrics()
    large = [
        replace(
            each,
            numbers=each.numbers
            and {name: (value or 0) * scale for name, value in each.numbers.items()},
        )
        for each in result.outcomes
    ]
    figures: list[Figure] = []

    def draw(figure: Figure) -> None:
        figures.append(figure)
        draw_front(replace(result, outcomes=tuple(large)), figure)

    painted(draw, formulas=False)
    slanted = []
    for axes in figures[0].axes:
        labels = shown_labels(axes)
        slanted += [each.get_rotation() for each in labels]
        boxes = [each.get_window_extent() for each in labels if not each.get_rotation()]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert any(slanted) == (scale > 1)


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
    assert labels == ["0.5", "1", "1.5", "2", "10"]
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


def test_parallel_of_none(figure: Figure) -> None:
    """Where no run has all metrics there is no line, and nothing is said of what they came to."""
    result = three_metrics()
    without = [
        replace(each, numbers=each.numbers | {"extra.energy": None}) for each in result.outcomes
    ]
    draw_parallel(replace(result, outcomes=tuple(without)), figure)
    axes = figure.axes[0]

    assert [0, 0] == [len(each.get_segments()) for each in axes.collections]  # type: ignore[attr-defined]
    assert 4 + 3 == len(axes.get_xticks())
    assert {0, 1, 2, 3} == {int(each.xy[0]) for each in axes.texts}  # type: ignore[attr-defined]


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


KINDS = ("cycles", "on_chip_requirement_bytes", "off_chip_traffic_bytes")


def of_kinds(*minimize: str) -> StudyResult:
    """Return a study in which each parameter is of another kind."""
    study = Study(
        name="kinds",
        program=Path("programs/moe.py"),
        space=zipped(
            near=(1, 2, 7, 3, 4, 5, 6),
            far=(8, 2, 1, 4, 3, 5, 6),
            flag=(True, False, True, True, False, True, False),
            long=("123456789", "12345678", "1234567890", "a", "b", "c", "d"),
            mixed=(1, True, 2, 3, 4, 5, None),
        ),
        minimize=minimize or KINDS,
    )
    metrics = zip(
        (100, 150, 120, 300, 799, 250, 400),
        (5, 5, 5, 5, 5, 5, 5),
        (10_000, 80, 70_000, 79, 500, 600, 700),
        strict=True,
    )
    runs = [
        completed(n, study, **dict(zip(KINDS, each, strict=True))) for n, each in enumerate(metrics)
    ]
    return StudyResult(study, tuple(runs))


def with_broken() -> StudyResult:
    """Return the study in which points end in every way, with runs that break the condition."""
    result = design()
    return replace(
        result, study=replace(result.study, where=("off_chip_traffic_bytes <= 2000000",))
    )


def of_many_values() -> StudyResult:
    """Return a study with a parameter of 12 values and one of 13, of which some have not run."""
    study = Study(
        name="many",
        program=Path("programs/moe.py"),
        space=zipped(
            zipped=range(13), a_dozen_of_names=[f"names/{min(n, 11)}.npz" for n in range(13)]
        ),
    )
    values = (1000, 1060, 1100, 1500, 1950, 2000)
    runs = [completed(n, study, cycles=each) for n, each in enumerate(values)]
    return StudyResult(study, (*runs, replace(completed(6, study), status="lost")))


@pytest.mark.parametrize(
    ("name", "draw", "result"),
    [
        ("front", draw_front, with_broken),
        ("fronts", draw_front, of_kinds),
        ("effects", draw_effects, lambda: of_kinds("cycles", "off_chip_traffic_bytes")),
        ("parallel", draw_parallel, with_broken),
        ("parallel_kinds", draw_parallel, of_kinds),
        ("parallel_many", draw_parallel, of_many_values),
    ],
)
def test_everything_drawn(
    name: str,
    draw: Callable[[StudyResult, Figure], None],
    result: Callable[[], StudyResult],
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every mark, text, axis and colour stands where it stood, in the style of all pictures."""
    told = told_picture(lambda figure: draw(result(), figure), monkeypatch)
    golden(f"picture_{name}.txt", told)


@pytest.mark.parametrize(
    ("draw", "result", "size"),
    [
        (draw_effects, one_metric, (6.0, 3.3)),
        (draw_parallel, one_metric, (5.0, 4.5)),
        (draw_front, lambda: of_kinds(*KINDS, "compute_utilization"), (10.8, 8.64)),
    ],
)
def test_sizes(
    draw: Callable[[StudyResult, Figure], None],
    result: Callable[[], StudyResult],
    size: tuple[float, float],
    figure: Figure,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A picture of little has room for its texts; one of four metrics has three rows."""
    monkeypatch.setattr(pictures, "_pair_panel", lambda *_: None)
    draw(result(), figure)
    assert figure.get_size_inches().tolist() == pytest.approx(size)


def a_line(count: int) -> StudyResult:
    """Return a study of which as many points are on the front, each beside the next."""
    study = Study(program=Path("x.py"), space=grid(a=range(count)), minimize=KINDS[:2])
    runs = [
        completed(n, study, cycles=100 + n, on_chip_requirement_bytes=200 - n) for n in range(count)
    ]
    return StudyResult(study, tuple(runs))


@pytest.mark.parametrize(("count", "named"), [(12, True), (13, False)])
def test_numbers_of_points(count: int, *, named: bool, figure: Figure) -> None:
    """Up to twelve points of a front have their numbers, and the caption says so."""
    draw_front(a_line(count), figure)
    assert bool(figure.axes[0].texts) is named
    told = " Numbers are those of points, where there is room." if named else ""
    assert pictures.front_caption(a_line(count)) == f"Less is better on all axes.{told}"


@pytest.mark.parametrize(("count", "image"), [(2000, False), (2001, True)])
def test_many_points_are_an_image(count: int, *, image: bool, figure: Figure) -> None:
    """An SVG of more than two thousand points would be large."""
    study = Study(program=Path("x.py"), space=grid(a=(1, 2)))
    result = StudyResult(study, (completed(0, study, cycles=1),) * count)
    pictures._dots(figure.subplots(), [(1.0, 1.0)] * count, "front")
    assert figure.axes[0].collections[0].get_rasterized() is image
    figure.clear()
    draw_effects(result, figure)
    assert figure.axes[0].collections[0].get_rasterized() is image


def test_captions() -> None:
    """What a picture leaves out is said, in the singular and the plural."""
    crosses = (
        " Crosses stand at the lower bounds of what was proved to be dominated and did not run, "
    )
    assert pictures.front_caption(design()) == (
        "Less is better on all axes. Numbers are those of points, where there is room."
        f"{crosses}3 points."
    )
    dots = (
        "the line joins the medians over all other parameters, the band goes from the least to "
        "the most."
    )
    proved = " Points that were proved to be dominated are left out: medians are of the better."
    assert pictures.effects_caption(design()) == (
        f"Each dot is a run; {dots} 8 of 24 points have no run and are not in it.{proved}"
    )
    assert pictures.effects_caption(one_metric()) == (
        f"Each dot is a run; {dots} 1 of 5 points has no run and is not in it."
    )
    assert pictures.effects_caption(three_metrics()) == f"Each dot is a run; {dots}"
    over = RESULTS["over"]()
    assert pictures.effects_caption(over) == (
        f"Each dot is a point over its inputs; {dots} 2 of 10 points did not run on all inputs and "
        f"are not in it.{proved}"
    )
    but_one = replace(over, outcomes=tuple(e for e in over.outcomes if e.index != 7))
    others = replace(over.outcomes[3], index=7)
    with_it = replace(but_one, outcomes=(*but_one.outcomes, others))
    assert pictures.effects_caption(with_it) == (
        f"Each dot is a point over its inputs; {dots} 1 of 10 points did not run on all inputs and "
        f"is not in it.{proved}"
    )


@pytest.mark.parametrize(
    ("values", "few", "expected"),
    [
        ((0, 7), False, [0, 2, 4, 6, 8]),
        ((0, 7), True, [0, 2, 4, 6, 8]),
        ((0, 11), False, [0, 2, 4, 6, 8, 10, 12]),
        ((0, 11), True, [0, 5, 10, 15]),
        ((1, 7.9), False, [0, 2, 4, 6, 8]),
        ((1, 8), False, [1, 2, 4]),
        ((1, 19), True, [1, 2, 4, 10, 20]),
        ((1, 100), True, [1, 3, 10, 30, 100]),
        ((1, 101), True, [1, 10, 100]),
        ((1, 1000), False, [1, 3, 10, 30, 100, 300, 1000]),
        ((1, 1001), False, [1, 10, 100, 1000]),
        ((1, 10**9), True, [1, 10**3, 10**6, 10**9]),
        ((1, 10**9), False, [1, 10**2, 10**4, 10**6, 10**8]),
    ],
)
def test_round_values(values: tuple[float, float], *, few: bool, expected: list[float]) -> None:
    """Values beside an axis are round, and fewer where they stand beside each other."""
    found = locator(values, few=few).tick_values(*values)
    least, most = min(expected), max(expected)
    assert [each for each in found if least <= each <= most] == pytest.approx(expected)


def test_far_apart() -> None:
    """Eight times as much is; what has no logarithm never is."""
    assert is_wide([1, 8])
    assert not is_wide([1, 7.99])
    assert not is_wide([0, 8])
    assert not is_wide([])


def test_captions_and_titles_of_all() -> None:
    """Titles say whether points are runs; own pictures of one name are told of, once drawn."""
    found = list(pictures._of_all(RESULTS["over"]()))
    assert [(each.title, each.caption) for each in found[2:]] == [
        (
            "All points",
            "Each line is a point, from its parameters to what it came to; the front in blue.",
        )
    ]
    found = list(pictures._of_all(of_many_values()))
    assert [(each.name, each.title) for each in found] == [
        ("effects", "What each parameter does"),
        ("parallel", "All runs"),
    ]
    assert found[1].caption == "Each line is a run, from its parameters to what it came to."


def test_own_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas are drawn in a study's own pictures alone; of two of one name the first is kept."""
    asked: list[bool] = []

    def paint(_: object, *, formulas: bool) -> tuple[str, bytes]:
        asked.append(formulas)
        return "<svg/>", b""

    monkeypatch.setattr(pictures, "painted", paint)
    result = design()
    own = (Picture("b", "B", lambda *_: None), Picture("front", "F", lambda *_: None, "mine"))
    found = drawn(replace(result, study=replace(result.study, pictures=own)))
    assert [(each.name, each.title, each.caption) for each in found.made[:2]] == [
        ("b", "B", ""),
        ("front", "F", "mine"),
    ]
    assert [each.name for each in found.made] == ["b", "front", "effects", "parallel"]
    assert found.troubles == ("picture front: there is one already of that name",)
    assert asked == [True, True, False, False]


def test_numbers_where_there_is_room(figure: Figure) -> None:
    """A point is named where it is more than 36 pixels from all that are named before it."""
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), autoscale_on=False)
    width, height = figure.get_size_inches() * figure.dpi
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    points = {1: (10, 10), 2: (46, 10), 3: (46.5, 10), 4: (10, 80), 5: (46, 45), 6: (46, 48)}
    pictures._name(axes, points)
    assert [each.get_text() for each in axes.texts] == ["1", "3", "4", "6"]
