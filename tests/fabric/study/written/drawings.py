"""Everything that a picture has, as lines of text: what stands where, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from fabric.explore.study.written import painting
from fabric.explore.study.written.painting import painted

__all__ = ["told_picture"]


def told_picture(draw: Callable[[Figure], object], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what ``draw`` draws, in the style of all pictures; no file of it is made."""
    for canvas, printing in ((FigureCanvasAgg, "print_png"), (FigureCanvasSVG, "print_svg")):
        monkeypatch.setattr(canvas, printing, lambda *_, **__: None)
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda _: None)
    monkeypatch.setattr(painting, "_slanted", lambda _: False)
    told: list[str] = []

    def drawing(figure: Figure) -> None:
        draw(figure)
        told.extend(told_figure(figure))

    painted(drawing, formulas=False)
    return "".join(f"{line.rstrip()}\n" for line in told)


def numbers(values: object) -> str:
    """Return numbers, or rows of them, in four digits."""
    found = np.asarray(values, float)
    if found.ndim < 2:
        return " ".join(f"{each:.4g}" for each in found.ravel())
    return ", ".join(map(numbers, found))


def colours(values: object) -> str:
    """Return the colours that a group has."""
    found = np.atleast_2d(np.asarray(values, float))
    return " ".join(dict.fromkeys(to_hex(tuple(each), keep_alpha=True) for each in found)) or "none"


def told_axis(axis: Axis) -> Iterator[str]:
    """Yield how an axis is scaled, and what is written beside it."""
    least, most = sorted(axis.get_view_interval())
    title, name = axis.label, "x" if axis is axis.axes.xaxis else "y"
    yield (
        f"  {name}: {axis.get_scale()} {numbers((least, most))}, title "
        f"{title.get_text()!r} {title.get_fontsize()} {title.get_color()}"
    )
    axis.get_majorticklabels()  # places the ticks
    found: dict[str, list[str]] = {}
    for tick in axis.get_major_ticks():
        if least <= tick.get_loc() <= most:
            label = tick.label2 if tick.label2.get_visible() else tick.label1
            looks = (
                f"texts {tick.label1.get_visible()}, {tick.label2.get_visible()}, slanted by "
                f"{label.get_rotation():g}, {label.get_color()}; marks "
                f"{tick.tick1line.get_markersize():g} {tick.tick1line.get_color()}; grid "
                f"{tick.gridline.get_visible()} {tick.gridline.get_color()} "
                f"{tick.gridline.get_linewidth():g}"
            )
            told = f"{tick.get_loc():.4g} {label.get_text()!r}"
            found.setdefault(looks, []).append(told)
    yield from (f"    {', '.join(told)}: {looks}" for looks, told in found.items())
    yield f"    between: {numbers(axis.get_minorticklocs())}"


def told_collection(group: Collection) -> Iterator[str]:
    """Yield where a group of points, a band or some lines stand, and how they look."""
    kind = type(group).__name__
    yield (
        f"  {kind} {group.get_label()}: colours {colours(group.get_facecolor())} / "
        f"{colours(group.get_edgecolor())}, width {numbers(group.get_linewidth())}, "
        f"alpha {group.get_alpha()}, order {group.get_zorder():g}, image {group.get_rasterized()}"
    )
    if kind == "PathCollection":
        corners = len(np.asarray(group.get_paths()[0].vertices))
        yield f"    {corners} corners, sizes {numbers(group.get_sizes())}"  # type: ignore[attr-defined]
        yield f"    {numbers(group.get_offsets())}"
    else:
        yield from (f"    {numbers(path.vertices)}" for path in group.get_paths())


def told_axes(axes: Axes) -> Iterator[str]:
    """Yield everything that stands in a panel."""
    place = axes.get_subplotspec()
    assert place is not None
    yield (
        f"panel {numbers(place.get_geometry())}, grid below {axes.get_axisbelow()}, axes shown "
        f"{axes.axison}"
    )
    edges = [each for each in axes.spines.values() if each.get_visible()]
    yield f"  edges {' '.join(f'{e.spine_type} {colours(e.get_edgecolor())}' for e in edges)}"
    for axis in (axes.xaxis, axes.yaxis):
        yield from told_axis(axis)
    for group in axes.collections:
        yield from told_collection(group)
    for line in axes.lines:
        yield (
            f"  line {line.get_label()}: {to_hex(line.get_color())} {line.get_linewidth():g} "
            f"{line.get_linestyle()} {line.get_drawstyle()} {line.get_marker()} "
            f"{line.get_markersize():g} alpha {line.get_alpha()} order {line.get_zorder():g}"
        )
        yield f"    {numbers(line.get_xydata())}"
    for text in axes.texts:
        box = text.get_bbox_patch()
        behind = ""
        if box is not None:
            form = box.get_boxstyle()
            behind = f" on {type(form).__name__} {form.pad} {colours(box.get_facecolor())}"  # type: ignore[attr-defined]
        yield (
            f"  text {text.get_text()!r} {numbers(text.xy)} + {numbers(text.get_position())} "  # type: ignore[attr-defined]
            f"{text.get_fontsize():g} {text.get_color()} {text.get_verticalalignment()}{behind}"
        )


def told_figure(figure: Figure) -> Iterator[str]:
    """Yield everything that a figure has."""
    size, layout = figure.get_size_inches(), type(figure.get_layout_engine()).__name__
    yield f"{numbers(size)} inches, {figure.dpi:g}, {layout}"
    for legend in figure.legends:
        texts = [each.get_text() for each in legend.get_texts()]
        yield (
            f"legend {texts} in {legend._ncols} at {legend._outside_loc}, "  # type: ignore[attr-defined]
            f"frame {legend.get_frame_on()}, {legend.get_texts()[0].get_fontsize():g}"
        )
    for axes in figure.axes:
        yield from told_axes(axes)
