"""The picture of a front: every pair of what is minimised, all runs, and the runs nothing beats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from fabric.study.front import values_of
from fabric.study.outcome import Outcome
from fabric.study.written.painting import (
    FRONT,
    OTHERS,
    RASTER_POINTS,
    metric_axis,
    shared_legend,
)
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fabric.study.result import StudyResult

__all__ = ["draw_front", "front_caption"]

_NAMED: Final = 12
"""So many points of a front are told apart by their numbers."""

_APART: Final = 36.0
"""Pixels between points that both have a number."""

_PANEL_INCHES: Final = 3.6
"""Of each of several pairs."""


def front_caption(result: StudyResult) -> str:
    """Return what to see in the picture."""
    proved = sum(each.status == "pruned" for each in result.outcomes)
    named = (
        " Numbers are those of points, where there is room." if len(result.front) <= _NAMED else ""
    )
    crosses = (
        f" Crosses stand at the lower bounds of what was proved to be dominated and did not run, "
        f"{counted(proved, 'point')}."
        if any(_bounds(each, result.study.minimize) for each in result.outcomes)
        else ""
    )
    return f"Less is better on all axes.{named}{crosses}"


def draw_front(result: StudyResult, figure: Figure) -> None:
    """Draw one panel for each pair of what is minimised: two metrics or more."""
    names = result.study.minimize
    pairs = list(combinations(names, 2))
    if len(pairs) == 1:
        first = figure.subplots()
        _panel(result, first, *pairs[0])
    else:
        size = len(names) - 1
        side = max(7.2, _PANEL_INCHES * size)
        figure.set_size_inches(side, 0.8 * side)
        panels = figure.subplots(size, size, squeeze=False, sharex="col", sharey="row")
        for row in range(size):
            for column in range(size):
                if column > row:
                    panels[row][column].remove()
                    continue
                _panel(result, panels[row][column], names[column], names[row + 1])
                panels[row][column].label_outer()
        first = panels[0][0]
    shared_legend(figure, first)


def _panel(result: StudyResult, axes: Axes, across: str, up: str) -> None:
    front = set(result.front)
    kept = {each.index for each in result.kept()}
    runs = {
        each.index: found
        for each in result.outcomes
        if (found := values_of(each, (across, up))) is not None
    }
    proved = [found for each in result.outcomes if (found := _bounds(each, (across, up)))]
    _dots(axes, proved, "proved dominated, at its bounds", marker="x", s=16, c=OTHERS)
    broken = [found for index, found in runs.items() if index not in kept]
    _dots(
        axes, broken, "breaks a condition", marker="s", s=14, facecolors="none", edgecolors=OTHERS
    )
    dominated = [found for index, found in runs.items() if index in kept - front]
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
    if len(on_front) <= _NAMED:
        _name(axes, on_front)


def _name(axes: Axes, points: Mapping[int, Sequence[float]]) -> None:
    """Write the numbers of points beside them, where they do not stand on each other."""
    axes.autoscale_view()
    named: list[Sequence[float]] = []
    for index, (x, y) in points.items():
        place = axes.transData.transform((x, y)).tolist()
        if all(math.dist(place, other) > _APART for other in named):
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
    """Draw a group of points, as one image where they are many; nothing where there are none."""
    if places:
        settings = {"linewidths": 0.8, "rasterized": len(places) > RASTER_POINTS} | settings
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, label=name, **settings)


def _bounds(outcome: Outcome, names: Sequence[str]) -> tuple[float, ...] | None:
    """Return the bounds of a point that was proved to be dominated."""
    if outcome.status != "pruned" or any(name not in outcome.bounds for name in names):
        return None
    return tuple(outcome.bounds[name] for name in names)
