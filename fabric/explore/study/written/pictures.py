"""Pictures of a study: front, effects of parameters, parallel coordinates, and its own."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from fabric.explore.study.outcome import Outcome, metric, values_of
from fabric.explore.study.result import computed
from fabric.explore.study.space import keyed
from fabric.explore.study.study import Picture
from fabric.explore.study.written.painting import (
    FRONT,
    OTHERS,
    RASTER_POINTS,
    is_wide,
    locator,
    metric_axis,
    render,
    shared_legend,
)
from fabric.explore.study.written.words import (
    axis_values,
    label,
    number_text,
    texts_by_key,
    varying,
)
from fabric.messages.text import counted, file_name, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fabric.explore.study.result import StudyResult
    from fabric.explore.study.space import Scalar

_MOST_NAMED: Final = 12
_NAME_GAP_PIXELS: Final = 36.0
_PAIR_INCHES: Final = 3.6
_PANEL_INCHES: Final = (3.1, 2.6)
_PANELS_IN_A_ROW: Final = 4
_AXIS_INCHES: Final = 1.7
_TICK_GAP: Final = 0.06
_MOST_TICKS: Final = 12


def front_caption(result: StudyResult) -> str:
    pruned = sum(each.status == "pruned" for each in result.outcomes)
    named = " Points are numbered if there is room." if len(result.front) <= _MOST_NAMED else ""
    crosses = (
        f" Crosses are the lower bounds of {counted(pruned, 'point')} proved to be dominated, "
        "without a run."
        if any(_bounds(each, result.study.minimize) for each in result.outcomes)
        else ""
    )
    return f"Less is better on all axes.{named}{crosses}"


def draw_front(result: StudyResult, figure: Figure) -> None:
    """Draw one panel for each pair of minimised metrics."""
    names = result.study.minimize
    pairs = list(combinations(names, 2))
    if len(pairs) == 1:
        first = figure.subplots()
        _pair_panel(result, first, *pairs[0])
    else:
        size = len(names) - 1
        side = max(7.2, _PAIR_INCHES * size)
        figure.set_size_inches(side, 0.8 * side)
        panels = figure.subplots(size, size, squeeze=False, sharex="col", sharey="row")
        for row in range(size):
            for column in range(size):
                if column > row:
                    panels[row][column].remove()
                    continue
                _pair_panel(result, panels[row][column], names[column], names[row + 1])
                panels[row][column].label_outer()
        first = panels[0][0]
    shared_legend(figure, first)


def _pair_panel(result: StudyResult, axes: Axes, across: str, up: str) -> None:
    front = set(result.front)
    kept = {each.index for each in result.kept()}
    runs = {
        each.index: values
        for each in result.outcomes
        if (values := values_of(each, (across, up))) is not None
    }
    proved = [bounds for each in result.outcomes if (bounds := _bounds(each, (across, up)))]
    _dots(axes, proved, "proved dominated, at its bounds", marker="x", s=16, c=OTHERS)
    broken = [values for index, values in runs.items() if index not in kept]
    _dots(
        axes, broken, "breaks a condition", marker="s", s=14, facecolors="none", edgecolors=OTHERS
    )
    dominated = [values for index, values in runs.items() if index in kept - front]
    _dots(axes, dominated, "dominated", s=16, c=OTHERS)
    on_front = {index: runs[index] for index in result.front if index in runs}
    _dots(axes, list(on_front.values()), "front", s=36, c=FRONT, edgecolors="white", zorder=3)
    if len(result.study.minimize) == 2:
        xs, ys = zip(*sorted(on_front.values()), strict=True)
        axes.step(xs, ys, where="post", color=FRONT, linewidth=1, alpha=0.6, zorder=1)
    shown = [*runs.values(), *proved]
    metric_axis(axes.xaxis, across, [each[0] for each in shown])
    metric_axis(axes.yaxis, up, [each[1] for each in shown])
    axes.margins(x=0.06, y=0.08)
    if len(on_front) <= _MOST_NAMED:
        _name(axes, on_front)


def _name(axes: Axes, points: Mapping[int, Sequence[float]]) -> None:
    axes.autoscale_view()
    named: list[Sequence[float]] = []
    for index, (x, y) in points.items():
        place = axes.transData.transform((x, y)).tolist()
        if all(math.dist(place, other) > _NAME_GAP_PIXELS for other in named):
            named.append(place)
            axes.annotate(
                str(index),
                (x, y),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=9,
                color=FRONT,
            )


# Any: what matplotlib takes.
def _dots(axes: Axes, places: Sequence[Sequence[float]], name: str, **settings: Any) -> None:
    if places:
        settings = {"linewidths": 0.8, "rasterized": len(places) > RASTER_POINTS} | settings
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, label=name, **settings)


def _bounds(outcome: Outcome, names: Sequence[str]) -> tuple[float, ...] | None:
    if outcome.status != "pruned" or any(name not in outcome.bounds for name in names):
        return None
    return tuple(outcome.bounds[name] for name in names)


def effects_caption(result: StudyResult) -> str:
    dot = "a point over its inputs" if result.study.has_inputs else "a run"
    return (
        f"Each dot is {dot}; the line joins the medians over all other parameters, the band "
        "extends from the least to the most."
    )


def draw_effects(result: StudyResult, figure: Figure) -> None:
    names = varying(result.study.space.values)
    metrics = result.study.objectives
    blocks = [names[at : at + _PANELS_IN_A_ROW] for at in range(0, len(names), _PANELS_IN_A_ROW)]
    rows = [(name, block) for block in blocks for name in metrics]
    width, height = _PANEL_INCHES
    across = len(blocks[0])
    figure.set_size_inches(max(6.0, width * across + 0.8), height * len(rows) + 0.7)
    panels = figure.subplots(len(rows), across, squeeze=False, sharey="row")
    for row, (name, block) in enumerate(rows):
        for column, axes in enumerate(panels[row]):
            if column >= len(block):
                axes.remove()
                continue
            _panel(result, axes, block[column], name)
            if column:
                axes.tick_params(labelleft=False)
                axes.set_ylabel("")
            if name != metrics[-1]:
                axes.tick_params(labelbottom=False)
                axes.set_xlabel("")
    shared_legend(figure, panels[0][0])


def _panel(result: StudyResult, axes: Axes, axis: str, name: str) -> None:
    values = result.study.space.values[axis]
    places = _places(axes, values)
    runs = [each for each in result.outcomes if metric(each, name) is not None]
    by_place: dict[float, list[float]] = {}
    for each in runs:
        if axis in each.setting:
            place = places[keyed(each.setting[axis])]
            by_place.setdefault(place, []).append(metric(each, name) or 0.0)
    xs = sorted(by_place)
    axes.scatter(
        [x for x in xs for _ in by_place[x]], [y for x in xs for y in by_place[x]],
        s=9, c=OTHERS, alpha=0.7, linewidths=0,
        label="point" if result.study.has_inputs else "run",
        rasterized=len(runs) > RASTER_POINTS,
    )  # fmt: skip
    axes.fill_between(
        xs, [min(by_place[x]) for x in xs], [max(by_place[x]) for x in xs],
        color=FRONT, alpha=0.12, linewidth=0, label="least to most",
    )  # fmt: skip
    axes.plot(xs, [median(by_place[x]) for x in xs], "o-", color=FRONT, label="median")
    axes.set_xlabel(visible(axis))
    metric_axis(axes.yaxis, name, [metric(each, name) or 0.0 for each in runs])


def _places(axes: Axes, values: tuple[Scalar, ...]) -> dict[object, float]:
    # Numbers are to scale, logarithmic if far apart; other values are equidistant.
    numbers = [
        each for each in values if isinstance(each, int | float) and not isinstance(each, bool)
    ]
    if len(numbers) < len(values):
        numbers = []
    if is_wide(numbers):
        axes.set_xscale("log")
    places = [float(each) for each in numbers] or [float(place) for place in range(len(values))]
    axes.set_xticks(places, axis_values(values))
    axes.minorticks_off()
    axes.margins(x=0.1)
    return dict(zip(map(keyed, values), places, strict=True))


@dataclass(frozen=True)
class _Coordinate:
    title: str  # heights are from 0 to 1
    heights: dict[int, float]
    ticks: list[tuple[float, str]]


def draw_parallel(result: StudyResult, figure: Figure) -> None:
    """Draw a line for each run that has all metrics, runs of the front on top."""
    from matplotlib.collections import LineCollection

    metrics = result.study.shown
    names = varying(result.study.space.values)
    runs = [
        each for each in result.outcomes if all(metric(each, name) is not None for name in metrics)
    ]
    coordinates = [_parameter(result, runs, name) for name in names]
    coordinates += [_metric(runs, name) for name in metrics]
    figure.set_size_inches(max(5.0, _AXIS_INCHES * len(coordinates)), 4.5)
    axes = figure.subplots()
    front = set(result.front)
    for chosen, colour, width, alpha in (
        (False, OTHERS, 0.8, 0.5),
        (True, FRONT, 1.6, 0.9),
    ):
        lines = [
            [(at, each.heights[run.index]) for at, each in enumerate(coordinates)]
            for run in runs
            if (run.index in front) is chosen
        ]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=alpha))
    for at, each in enumerate(coordinates):
        axes.axvline(at, color="#1c1c1c", linewidth=0.9)
        for height, text in each.ticks:
            axes.annotate(
                text, (at, height), xytext=(4, 0), textcoords="offset points", fontsize=8.5,
                va="center", bbox={"boxstyle": "square,pad=0.1", "fc": "#ffffffcc", "ec": "none"},
            )  # fmt: skip
    axes.set_xlim(-0.1, len(coordinates) - 0.4)
    axes.set_ylim(-0.04, 1.04)
    axes.set_xticks(range(len(coordinates)), [each.title for each in coordinates])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


_UNSET: Final = object()


def _parameter(result: StudyResult, runs: Sequence[Outcome], name: str) -> _Coordinate:
    values = result.study.space.values[name]
    texts = texts_by_key(values)
    if any(name not in run.setting for run in runs):
        texts[_UNSET] = "not set"
    places = {key: place / (len(texts) - 1) for place, key in enumerate(texts)}
    heights = {
        run.index: places[keyed(run.setting[name]) if name in run.setting else _UNSET]
        for run in runs
    }
    step = -(-len(texts) // _MOST_TICKS)
    ticks = [(places[key], text) for key, text in texts.items()]
    return _Coordinate(_broken(visible(name), "._"), heights, ticks[::step])


def _metric(runs: Sequence[Outcome], name: str) -> _Coordinate:
    title = _broken(str(label(name)), " ")
    values = {run.index: metric(run, name) or 0.0 for run in runs}
    if not values:
        return _Coordinate(title, {}, [])
    least, most = min(values.values()), max(values.values())
    wide = is_wide(list(values.values()))

    def height(value: float) -> float:
        if least == most:
            return 0.5
        if wide:
            return math.log(value / least) / math.log(most / least)
        return (value - least) / (most - least)

    ends = sorted({least, most})
    between = [
        each for each in locator(ends, few=False).tick_values(least, most) if least < each < most
    ]
    inner = [each for each in between if _TICK_GAP < height(each) < 1 - _TICK_GAP]
    ticks = [(height(value), number_text(value)) for value in (*ends, *map(float, inner))]
    heights = {index: height(value) for index, value in values.items()}
    return _Coordinate(title, heights, ticks)


def _broken(title: str, at: str) -> str:
    middle = len(title) // 2
    places = [place + 1 for place, character in enumerate(title) if character in at]
    if len(title) <= 12 or not places:
        return title
    best = min(places, key=lambda place: abs(place - middle))
    return f"{title[:best].rstrip()}\n{title[best:]}"


@dataclass(frozen=True)
class Drawn:
    """A picture with the name of its files, without a suffix.

    Attributes:
        png: empty if the picture was read from its SVG file.
    """

    name: str
    title: str
    caption: str
    svg: str
    png: bytes = b""

    @staticmethod
    def of(picture: Picture, svg: str, png: bytes = b"") -> Drawn:
        title, caption = visible(picture.title), visible(picture.caption)
        return Drawn(file_name(picture.name), title, caption, svg, png)


def drawn(result: StudyResult) -> tuple[list[Drawn], list[str]]:
    """Return the pictures, the study's own first, and a sentence for each failure."""
    if importlib.util.find_spec("matplotlib") is None:
        return [], ["there are no pictures: expected matplotlib, of the extra study"]
    by_name: dict[str, Drawn] = {}
    troubles = []
    own = result.study.pictures
    # Without a metric to minimise, the study's own pictures are enough.
    general = [] if own and not result.study.minimize else list(_general(result))
    for picture in (*own, *general):
        if file_name(picture.name) in by_name:
            troubles.append(f"picture {visible(picture.name)}: another picture has this name")
            continue
        draw = partial(_draw, result, picture, is_own=picture in own)
        images, trouble = computed(partial(render, draw, formulas=picture in own))
        if images is None:
            troubles.append(f"picture {visible(picture.name)}: {trouble}")
        else:
            by_name[file_name(picture.name)] = Drawn.of(picture, *images)
    return list(by_name.values()), troubles


def first_pictures(result: StudyResult, folder: Path) -> list[Drawn]:
    """Return the study's own pictures, or else its first general one, read from ``folder``.

    A missing file is left out; its failed write was reported.
    """
    pictures = result.study.pictures or [*_general(result)][:1]
    files = [folder / "pictures" / f"{file_name(each.name)}.svg" for each in pictures]
    return [
        Drawn.of(picture, file.read_text(encoding="utf-8"))
        for picture, file in zip(pictures, files, strict=True)
        if file.is_file()
    ]


def _general(result: StudyResult) -> Iterator[Picture]:
    study = result.study

    def picture(
        name: str, title: str, draw: Callable[[StudyResult, Figure], None], caption: str
    ) -> Picture:
        return Picture(name, title, lambda _, figure: draw(result, figure), caption)

    if all(metric(each, study.objectives[0]) is None for each in result.outcomes):
        return
    if len(study.minimize) > 1:
        yield picture("front", "The front", draw_front, front_caption(result))
    noun = "point" if study.has_inputs else "run"
    if not varying(study.space.values):
        return
    # Medians of a part of the grid would compare values of a parameter over different points.
    if sum(each.status == "completed" for each in result.outcomes) == len(study.space):
        caption = effects_caption(result)
        yield picture("effects", "What each parameter does", draw_effects, caption)
    caption = f"Each line is a {noun}, from its parameters to its metrics"
    caption += "; the front in blue." if result.front else "."
    yield picture("parallel", f"All {noun}s", draw_parallel, caption)


def _draw(result: StudyResult, picture: Picture, figure: Figure, *, is_own: bool) -> None:
    picture.draw(result, figure)
    if is_own:
        figure.suptitle(visible(picture.title), fontsize=11, parse_math=False)
