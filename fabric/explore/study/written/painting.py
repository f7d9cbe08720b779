"""Render matplotlib figures reproducibly, with the style and axes of studies."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fabric.explore.study.written.words import label, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.ticker import Locator

# Okabe and Ito, "Color universal design": distinguishable in every type of colour vision.
FRONT: Final = "#0072b2"
PUBLISHED: Final = "#d55e00"
OTHERS: Final = "#8a96a3"
_CYCLE: Final = (FRONT, PUBLISHED, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

RASTER_POINTS: Final = 2000
"""Number of points above which an SVG has them as one image."""

_DPI: Final = 144
_STYLE: Final[dict[str, object]] = {
    "figure.figsize": (7.2, 4.5),
    "figure.dpi": _DPI,
    "figure.constrained_layout.use": True,
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
_DARK: Final = (
    "@media screen and (prefers-color-scheme:dark){svg{filter:invert(.9) hue-rotate(180deg)}}"
)
"""A picture on dark paper: light and dark are exchanged, hues stay."""

_SLANT_DEGREES: Final = 30
_LABEL_GAP_PIXELS: Final = 6

_WIDE: Final = 8.0
"""An axis is logarithmic if the largest value is at least this multiple of the smallest."""

_DECADES_IN_FOURS: Final = 1.3
_DECADES_IN_THREES: Final = 3
"""The most decades with labels at 1, 2 and 4, or at 1 and 3, of each decade."""


def render(draw: Callable[[Figure], object], *, formulas: bool) -> tuple[str, bytes]:
    """Return a drawing as SVG and PNG; with ``formulas``, texts between dollars are formulas."""
    from cycler import cycler
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # With the defaults first, a user's matplotlibrc has no effect.
    own = {**_STYLE, "axes.prop_cycle": cycler(color=_CYCLE), "text.parse_math": formulas}
    with style.context(["default", own]), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure()
        canvas = FigureCanvasAgg(figure)
        draw(figure)
        figure.draw_without_rendering()
        if _slanted(figure):
            figure.draw_without_rendering()
        # The layout is final now, and takes longer to compute than to draw.
        figure.set_layout_engine("none")
        svg, png = io.StringIO(), io.BytesIO()
        canvas.print_png(png, metadata={"Software": None})  # type: ignore[no-untyped-call]
        plain = FigureCanvasSVG(figure)
        plain.print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    themed = svg.getvalue().replace("*{stroke-linejoin", f"{_DARK}*{{stroke-linejoin", 1)
    # Trailing spaces would be stripped by editors and git.
    text = "\n".join(line.rstrip() for line in themed.splitlines())
    return text + "\n", png.getvalue()


def shown_labels(axes: Axes) -> list[Text]:
    """Return the tick labels that are drawn below ``axes``."""
    least, most = sorted(axes.get_xlim())
    return [
        tick.label1
        for tick in axes.xaxis.get_major_ticks()
        if least <= tick.get_loc() <= most and tick.label1.get_visible()
    ]


def _slanted(figure: Figure) -> bool:
    slanted = False
    for axes in figure.axes:
        labels = shown_labels(axes)
        boxes = sorted(tuple(each.get_window_extent().extents) for each in labels)
        if any(right[0] < left[2] + _LABEL_GAP_PIXELS for left, right in pairwise(boxes)):
            slanted = True
            _slant(axes, labels, 1.2 * float(labels[0].get_fontsize()) * figure.dpi / 72)
    return slanted


def _slant(axes: Axes, labels: Sequence[Text], height: float) -> None:
    """Slant ``labels``, or turn them upright and hide those that overlap; ``height`` in pixels."""
    places = [axes.transData.transform((each.get_position()[0], 0))[0] for each in labels]
    room = height / math.sin(math.radians(_SLANT_DEGREES))
    fits = all(right - left >= room for left, right in pairwise(places))
    axes.tick_params(axis="x", rotation=_SLANT_DEGREES if fits else 90)
    vertical, shown = "baseline" if fits else "center", -math.inf
    for place, text in zip(places, labels, strict=True):
        text.set(
            horizontalalignment="right", verticalalignment=vertical, rotation_mode="anchor",
            visible=place >= shown + height,
        )  # fmt: skip
        shown = place if text.get_visible() else shown


def is_wide(values: Sequence[float]) -> bool:
    """Return whether values are shown on a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _WIDE


def metric_axis(axis: Axis, metric: str, values: Sequence[float]) -> None:
    axis.set_label_text(str(label(metric)))
    scale(axis, values)


def scale(axis: Axis, values: Sequence[float]) -> None:
    """Scale an axis, logarithmically if it ``is_wide``, with round numbers as ticks."""
    from matplotlib import ticker

    horizontal = axis is axis.axes.xaxis
    if is_wide(values):
        if horizontal:
            axis.axes.set_xscale("log")
        else:
            axis.axes.set_yscale("log")
        axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_locator(locator(values, few=horizontal))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(round(value, 12))))


def locator(values: Sequence[float], *, few: bool) -> Locator:
    """Return a locator of round values; ``few`` leaves room for long numbers."""
    from matplotlib import ticker

    if not is_wide(values):
        return ticker.MaxNLocator(4 if few else 6, steps=[1, 2, 2.5, 5, 10])
    decades = math.log10(max(values) / min(values))
    if decades <= _DECADES_IN_FOURS:
        return ticker.LogLocator(subs=(1.0, 2.0, 4.0), numticks=20)
    if decades <= _DECADES_IN_THREES - few:
        return ticker.LogLocator(subs=(1.0, 3.0), numticks=20)
    return ticker.LogLocator(subs=(1.0,), numticks=4 if few else 8)


def shared_legend(figure: Figure, axes: Axes, names_in_a_row: int = 4) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=names_in_a_row)
