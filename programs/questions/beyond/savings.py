"""Studies of the ratio between the static and the dynamic form of a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fabric import Findings, Picture, Space, Study, zipped

PROGRAMS: Final = Path(__file__).parents[2]

Values: TypeAlias = Mapping[str, object]
"""Parameters that name a point."""

Parameters: TypeAlias = Mapping[str, str | int | float]

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""The colour-blind safe palette of Okabe and Ito."""

COUNTED: Final = {
    "cycles": "cycles",
    "off_chip_traffic_bytes": "off-chip traffic",
    "hbm_bytes_moved": "bytes moved by the HBM",
    "flops": "FLOPs",
    "on_chip_requirement_bytes": "on-chip requirement",
}

CAPTION: Final = (
    "Above 1, the static form takes more. Without a bar, both forms take the same. FLOPs on "
    "padding count."
)


def saving_study(
    question: str,
    program: str,
    title: str,
    groups: Mapping[str, Parameters],
    static: Mapping[str, Parameters],
    dynamic: Parameters,
    caption: str = "",
) -> Study:
    """Return a study of the costs of a program's static forms over its dynamic form.

    Args:
        question: the question of the study.
        program: a file in ``programs``.
        title: the title of the picture.
        groups: the parameters of each group of bars, by the label of the group.
        static: the parameters of each static form, by the title of its panel.
        dynamic: the parameters of the dynamic form.
        caption: more sentences below the picture.
    """
    return Study(
        program=PROGRAMS / program,
        question=question,
        space=points(groups.values()) * points([dynamic, *static.values()]),
        pictures=(
            Picture(
                "savings", title, savings(groups, static, dynamic), f"{CAPTION} {caption}".strip()
            ),
        ),
    )


def by(
    parameter: str, values: Sequence[str | float], name: str = "{}", **fixed: str | float
) -> dict[str, Parameters]:
    """Return the parameters of a group for each value of ``parameter``, by the group's label."""
    return {name.format(value): {parameter: value, **fixed} for value in values}


def points(settings: Iterable[Parameters]) -> Space:
    settings = list(settings)
    return zipped({name: [setting[name] for setting in settings] for name in settings[0]})


def ratio(findings: Findings, metric: str, more: Values, less: Values) -> float:
    """Return a metric of one point over the same metric of another; NaN if one is missing."""
    above, below = (findings.value(metric, **dict(each)) for each in (more, less))
    return math.nan if above is None or not below else above / below


def savings(
    groups: Mapping[str, Values], static: Mapping[str, Values], dynamic: Values
) -> Callable[[Findings, Figure], None]:
    """Return a function that draws, in a panel per static form, its costs over the dynamic form."""

    def draw(findings: Findings, figure: Figure) -> None:
        panels = figure.subplots(1, len(static), sharey=True, squeeze=False)[0]
        for axes, (title, form) in zip(panels, static.items(), strict=True):
            _bars(
                axes,
                findings,
                [({**each, **form}, {**each, **dynamic}) for each in groups.values()],
            )
            axes.set_xticks(range(len(groups)), groups, rotation=20, ha="right")
            if len(static) > 1:
                axes.set_title(title)
        panels[0].set_ylabel("static / dynamic")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return draw


def lines(
    axes: Axes, places: Sequence[float], series: Mapping[str, Sequence[float]], x: str, y: str
) -> None:
    """Draw a line for each series over a logarithmic axis."""
    for at, (label, heights) in enumerate(series.items()):
        axes.plot(places, heights, marker="o", label=label, color=COLOURS[at % len(COLOURS)])
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def times(axes: Axes) -> None:
    """Make the axis of heights logarithmic, with a line at 1 and plain numbers."""
    axes.axhline(1, color="#9a9a9a", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"{height:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, findings: Findings, pairs: Sequence[tuple[Values, Values]]) -> None:
    width = 0.8 / len(COUNTED)
    for at, (metric, label) in enumerate(COUNTED.items()):
        left = [group + (at - (len(COUNTED) - 1) / 2) * width for group in range(len(pairs))]
        above = [ratio(findings, metric, *pair) - 1 for pair in pairs]
        axes.bar(left, above, width, bottom=1, label=label, color=COLOURS[at])
    times(axes)
