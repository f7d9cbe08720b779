"""How many times as much one form of a program takes as another, of everything that is counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from fabric import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROGRAMS: Final = Path(__file__).parents[2]

Values: TypeAlias = Mapping[str, object]
"""What names a point."""

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Of Okabe and Ito: told apart by who does not see all colours."""

COUNTED: Final = {
    "cycles": "cycles",
    "off_chip_traffic_bytes": "off-chip traffic",
    "hbm_bytes_moved": "bytes moved by the HBM",
    "flops": "FLOPs",
    "on_chip_requirement_bytes": "on-chip requirement",
}

CAPTION: Final = (
    "Above 1, what is static takes more, where there is no bar, as much; padding is counted "
    "wherever it is worked on."
)


def ratio(findings: Findings, metric: str, more: Values, less: Values) -> float:
    """Return a metric of one point over that of another; not a number where either has none."""
    above, below = (findings.value(metric, **dict(each)) for each in (more, less))
    return math.nan if above is None or not below else above / below


def savings(
    groups: Mapping[str, Values], static: Mapping[str, Values], dynamic: Values
) -> Callable[[Findings, Figure], None]:
    """Return what draws a panel for each static form: its numbers over those of the dynamic one.

    Args:
        groups: what names the points of a group, by what stands below it.
        static: what names a static form, by what stands above its panel where there are several.
        dynamic: what names the dynamic form.
    """

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
        panels[0].set_ylabel("times as much as dynamic")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return draw


def lines(
    axes: Axes, places: Sequence[float], series: Mapping[str, Sequence[float]], x: str, y: str
) -> None:
    """Draw a line with marks for each series over a logarithmic axis."""
    for at, (label, heights) in enumerate(series.items()):
        axes.plot(places, heights, marker="o", label=label, color=COLOURS[at % len(COLOURS)])
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def times(axes: Axes) -> None:
    """Scale the heights by logarithms, with a line at 1 and plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.axhline(1, color="#9a9a9a", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"{height:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, findings: Findings, pairs: Sequence[tuple[Values, Values]]) -> None:
    """Draw a group of bars for each pair, one bar for everything that is counted."""
    width = 0.8 / len(COUNTED)
    for at, (metric, label) in enumerate(COUNTED.items()):
        left = [group + (at - (len(COUNTED) - 1) / 2) * width for group in range(len(pairs))]
        above = [ratio(findings, metric, *pair) - 1 for pair in pairs]
        axes.bar(left, above, width, bottom=1, label=label, color=COLOURS[at])
    times(axes)
