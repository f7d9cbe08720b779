"""Parts that pictures of the paper's figures share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from fabric import Findings

# The colour-blind safe palette of Okabe and Ito.
COLOURS: Final = {
    "static": "#0072b2",
    "dynamic": "#d55e00",
    "coarse": "#56b4e9",
    "interleaved": "#0072b2",
    "other": "#009e73",
}


_STEPS: Final = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
"""Ticks as multiples of powers of ten. The first of these with at least three ticks is used."""


def found(findings: Findings, metric: str, /, **setting: object) -> float:
    """Return a metric of the only point with these settings; NaN if it is missing."""
    value = findings.value(metric, **setting) if findings.matching(**setting) else None
    return float("nan") if value is None else value


def published(axes: Axes, points: Iterable[tuple[float, float]], label: str = "published") -> None:
    """Draw the authors' values as circles, at x and y."""
    x, y = zip(*points, strict=True)
    axes.plot(x, y, "o", color="black", markerfacecolor="none", markersize=6, label=label)


def bars(
    axes: Axes,
    groups: Sequence[str],
    series: Mapping[str, tuple[str, Sequence[float]]],
    form: str = "",
    turn_degrees: int = 0,
) -> None:
    """Draw groups of bars beside each other.

    ``series`` has a colour and the height in each group, by label. ``form`` is the format of the
    number above each bar, or empty for no number. The numbers are turned by ``turn_degrees``.
    """
    width = 0.8 / len(series)
    for at, (label, (colour, heights)) in enumerate(series.items()):
        left = np.arange(len(groups)) + (at - (len(series) - 1) / 2) * width
        drawn = axes.bar(left, heights, width, label=label, color=colour)
        if form:
            texts = [format(each, form) for each in heights]
            axes.bar_label(drawn, texts, fontsize=7, padding=5, rotation=turn_degrees)
    axes.set_xticks(np.arange(len(groups)), groups)


def named(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, with plain numbers at the ticks."""
    if not np.isfinite(axes.dataLim.extents).all():
        return  # nothing completed
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        for steps in _STEPS:
            decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
            ticks = [step * 10.0**decade for decade in decades for step in steps]
            shown = [each for each in ticks if low <= each <= high]
            if len(shown) >= 3:
                break
        axis.set_ticks(shown, [f"{each:,g}" for each in shown])
        axis.set_ticks([], minor=True)
