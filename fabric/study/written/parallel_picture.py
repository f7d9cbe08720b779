"""The picture of all runs in parallel coordinates: a line from its parameters to its metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric.study.outcome import Outcome, metric
from fabric.study.written.painting import FRONT, OTHERS, is_wide, locator
from fabric.study.written.rows import metrics_shown
from fabric.study.written.words import axis_values, label, number_text, varying
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fabric.study.result import StudyResult

__all__ = ["draw_parallel"]

_AXIS_INCHES: Final = 1.7
_APART: Final = 0.06
"""So far from the ends of an axis stand the values between them."""

_VALUES: Final = 12
"""So many values of a parameter are written beside its axis."""


@dataclass(frozen=True)
class _Coordinate:
    """One of the parallel axes.

    Attributes:
        title: above it.
        heights: from 0 to 1, by run.
        ticks: heights and what stands at them.
    """

    title: str
    heights: dict[int, float]
    ticks: list[tuple[float, str]]


def draw_parallel(result: StudyResult, figure: Figure) -> None:
    """Draw a line for each run that has all metrics; those of the front above the others."""
    from matplotlib.collections import LineCollection

    metrics = metrics_shown(result)
    names = varying(result.study.space.values)
    runs = [
        each
        for each in result.outcomes
        if all(metric(each, name) is not None for name in metrics)
        and all(name in each.setting for name in names)
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


def _parameter(result: StudyResult, runs: Sequence[Outcome], name: str) -> _Coordinate:
    """Return a parameter's values, side by side in their order."""
    values = result.study.space.values[name]
    keys = {(type(each), each): place for place, each in enumerate(values)}
    most = len(values) - 1
    heights = {run.index: keys[type(run.setting[name]), run.setting[name]] / most for run in runs}
    step = -(-len(values) // _VALUES)
    ticks = [(place / most, text) for place, text in enumerate(axis_values(values))]
    return _Coordinate(_broken(visible(name), "._"), heights, ticks[::step])


def _metric(runs: Sequence[Outcome], name: str) -> _Coordinate:
    """Return a metric's values from its least to its most, by their logarithms where far apart."""
    values = {run.index: metric(run, name) or 0.0 for run in runs}
    least, most = min(values.values(), default=0.0), max(values.values(), default=0.0)
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
    apart = [each for each in between if _APART < height(each) < 1 - _APART]
    ticks = [(height(value), number_text(value)) for value in (*ends, *map(float, apart))]
    heights = {index: height(value) for index, value in values.items()}
    return _Coordinate(_broken(str(label(name)), " "), heights, ticks)


def _broken(title: str, at: str) -> str:
    """Return a long title in two lines."""
    middle = len(title) // 2
    places = [place + 1 for place, letter in enumerate(title) if letter in at]
    if len(title) <= 12 or not places:
        return title
    best = min(places, key=lambda place: abs(place - middle))
    return f"{title[:best].rstrip()}\n{title[best:]}"
