"""How pictures of studies are made: their style, their axes, the same bytes for the same points."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fabric.study.out.words import label, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "FRONT",
    "OTHERS",
    "PUBLISHED",
    "RASTER_POINTS",
    "is_wide",
    "metric_axis",
    "painted",
    "shared_legend",
]

# Okabe and Ito, "Color universal design": told apart whatever colours somebody sees.
FRONT: Final = "#0072b2"
PUBLISHED: Final = "#d55e00"
OTHERS: Final = "#8a96a3"
_CYCLE: Final = (FRONT, PUBLISHED, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

RASTER_POINTS: Final = 2000
"""More points than this are one image in an SVG."""

_DPI: Final = 144
_STYLE: Final[dict[str, object]] = {
    "figure.figsize": (7.2, 4.5),
    "figure.dpi": _DPI,
    "figure.constrained_layout.use": True,
    "savefig.dpi": _DPI,
    "svg.fonttype": "path",
    "svg.hashsalt": "step-fabric",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#7d7d7d",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.8,
    "xtick.color": "#7d7d7d",
    "ytick.color": "#7d7d7d",
    "xtick.labelcolor": "#1c1c1c",
    "ytick.labelcolor": "#1c1c1c",
    "text.color": "#1c1c1c",
    "axes.labelcolor": "#1c1c1c",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.markersize": 5,
}
_WIDE: Final = 8.0
"""Values of which the largest is so many times the smallest are shown by their logarithms."""


def painted(draw: Callable[[Figure], object]) -> tuple[str, bytes]:
    """Return what ``draw`` draws as SVG and as PNG.

    Raises:
        Exception: whatever ``draw`` raises.
    """
    from cycler import cycler
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # What somebody's matplotlibrc says does not count.
    with style.context(["default", {**_STYLE, "axes.prop_cycle": cycler(color=_CYCLE)}]):
        figure = Figure()
        FigureCanvasAgg(figure)
        draw(figure)
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    # What editors and git strip otherwise.
    text = "\n".join(line.rstrip() for line in svg.getvalue().splitlines())
    return text + "\n", png.getvalue()


def is_wide(values: Sequence[float]) -> bool:
    """Say whether values span so much that their logarithms are shown."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _WIDE


def metric_axis(axis: Axis, metric: str, values: Sequence[float]) -> None:
    """Label an axis with a metric and its unit, and scale it to the metric's values."""
    from matplotlib import ticker

    axis.set_label_text(str(label(metric)))
    horizontal = axis is axis.axes.xaxis
    if is_wide(values):
        if horizontal:
            axis.axes.set_xscale("log")
        else:
            axis.axes.set_yscale("log")
        decades = math.log10(max(values) / min(values))
        subs = (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.3 else (1.0, 2.0, 4.0)
        axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=20))
        axis.set_minor_formatter(ticker.NullFormatter())
    else:
        axis.set_major_locator(ticker.MaxNLocator(4 if horizontal else 6))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(round(value, 12))))


def shared_legend(figure: Figure, axes: Axes) -> None:
    """Put one legend for all panels above them."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names))
