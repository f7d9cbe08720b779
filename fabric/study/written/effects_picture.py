"""The picture of what each parameter does: a metric over its values, median and spread."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from fabric.study.outcome import Outcome, metric
from fabric.study.written.painting import (
    FRONT,
    OTHERS,
    RASTER_POINTS,
    is_wide,
    metric_axis,
    shared_legend,
)
from fabric.study.written.words import axis_values, varying
from fabric.telling.wording import counted, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fabric.study.result import StudyResult
    from fabric.study.space import Scalar

__all__ = ["draw_effects", "effects_caption"]

_PANEL_INCHES: Final = (3.1, 2.6)
_ABREAST: Final = 4
"""So many parameters stand beside each other."""

_LETTERS: Final = 9
"""Labels longer than this are slanted."""


def effects_caption(result: StudyResult) -> str:
    """Return what to see in the picture."""
    completed = sum(each.status == "completed" for each in result.outcomes)
    rest = len(result.study.space) - completed
    without = ""
    if rest:
        lacks = "has no run and is" if rest == 1 else "have no run and are"
        if result.study.has_inputs:
            lacks = "did not run on all inputs and " + ("is" if rest == 1 else "are")
        every = len(result.study.space)
        without = f" {rest:,} of {counted(every, 'point')} {lacks} not in it."
    if any(each.status == "pruned" for each in result.outcomes):
        without += (
            " Points that were proved to be dominated are left out: medians are of the better."
        )
    what = "a point over its inputs" if result.study.has_inputs else "a run"
    return (
        f"Each dot is {what}; the line joins the medians over all other parameters, the band goes "
        f"from the least to the most.{without}"
    )


def draw_effects(result: StudyResult, figure: Figure) -> None:
    """Draw a panel for each parameter that varies and each metric that is minimised."""
    names = varying(result.study.space.values)
    metrics = result.study.objectives
    blocks = [names[at : at + _ABREAST] for at in range(0, len(names), _ABREAST)]
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
            place = places[_key(each.setting[axis])]
            by_place.setdefault(place, []).append(_number(each, name))
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
    metric_axis(axes.yaxis, name, [_number(each, name) for each in runs])


def _places(axes: Axes, values: tuple[Scalar, ...]) -> dict[object, float]:
    """Return where the values of a parameter stand, and label the axis with them.

    Numbers stand where they are, far apart ones by their logarithms; everything else side by side.
    """
    numbers = [each for each in values if isinstance(each, int | float) and each is not True]
    if len(numbers) < len(values) or any(isinstance(each, bool) for each in values):
        numbers = []
    if is_wide(numbers):
        axes.set_xscale("log")
    places = [float(each) for each in numbers] or [float(place) for place in range(len(values))]
    texts = axis_values(values)
    axes.set_xticks(places, texts)
    axes.minorticks_off()
    axes.margins(x=0.1)
    if max(map(len, texts)) > _LETTERS:
        axes.tick_params(axis="x", rotation=30)
    return dict(zip(map(_key, values), places, strict=True))


def _key(value: Scalar) -> object:
    return type(value), value


def _number(outcome: Outcome, name: str) -> float:
    return metric(outcome, name) or 0.0
