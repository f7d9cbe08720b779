"""The pictures of figures 9, 10, 19 and 20: cycles or off-chip traffic over on-chip bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fabric import Findings
from paper import published as of_authors
from paper.drawing import COLOURS, found, logarithmic, named, published
from paper.published import Published
from paper.tiling import MEMORY, PUBLISHED_FLOPS, Design, front
from paper.workloads import Layer

CAPTION: Final = (
    "As in the paper, static tiles have 4096 FLOPs per cycle, and the dynamic tile 6400. For Qwen, "
    "the memory of static tiles counts all experts, that of the dynamic tile experts with tokens. "
    "The line joins the static tiles that no other one beats. A circle is a printed value."
)


@dataclass(frozen=True)
class Measured:
    """The metric that is drawn over on-chip bytes.

    Attributes:
        label: the label of its axis.
        unit: the value of the metric that the axis shows as 1.
    """

    metric: str
    label: str
    unit: float


CYCLES: Final = Measured("cycles", "million cycles", 1e6)
TRAFFIC: Final = Measured(of_authors.TRAFFIC, "off-chip traffic (GB)", 1e9)


@dataclass(frozen=True)
class Dynamic:
    """A star in the picture, for the dynamic tile.

    Attributes:
        label: the label in the legend.
        counted: the experts whose memory is counted (see ``MEMORY``).
        filled: whether the star is filled.
        colour: a name of ``COLOURS``.
    """

    label: str
    counted: str
    flops_per_cycle: int
    filled: bool = True
    colour: str = "dynamic"


AS_PUBLISHED: Final = Dynamic("dynamic tile", "active experts", PUBLISHED_FLOPS)


@dataclass(frozen=True)
class Annotation:
    """An arrow from the dynamic tile to a static one, with their ratio.

    Attributes:
        tile_n: rows of the static tile.
        what: the compared metric, on-chip bytes (a horizontal arrow) or off-chip traffic (a
            vertical arrow).
    """

    layer: Layer
    tile_n: int
    what: Literal["bytes", "traffic"]


def tradeoff(
    layers: Sequence[Layer],
    values: Iterable[Published],
    measured: Measured = CYCLES,
    annotations: Sequence[Annotation] = (),
) -> Callable[[Findings, Figure], None]:
    """Return a function that draws layers as the paper compares them, with printed ``values``."""
    theirs = _places(values, measured)

    def draw(findings: Findings, figure: Figure) -> None:
        figure.set_size_inches(9, 4.2)
        panels = figure.subplots(1, len(layers))
        for axes, layer in zip(panels, layers, strict=True):
            statics = {"static tiles": "all experts"}
            draw_layer(axes, findings, layer, statics, [AS_PUBLISHED], measured)
            if points := theirs.get(layer.model):
                published(axes, points, "printed")
            for each in annotations:
                if each.layer == layer:
                    _annotate(axes, findings, each, measured)
        panels[0].legend()

    return draw


def _places(
    values: Iterable[Published], measured: Measured
) -> dict[str | int, list[tuple[float, float]]]:
    """Return the on-chip bytes and the metric of each printed point, by model."""
    of_point: dict[tuple[tuple[str, str | int], ...], dict[str, int]] = {}
    for each in values:
        of_point.setdefault(tuple(each.setting.items()), {})[each.metric] = each.value
    places: dict[str | int, list[tuple[float, float]]] = {}
    for items, metrics in of_point.items():
        setting = dict(items)
        counted = "all experts" if setting["tiling"] == "static" else AS_PUBLISHED.counted
        on_chip_bytes = metrics[MEMORY[counted]]
        place = on_chip_bytes / 1e6, metrics[measured.metric] / measured.unit
        places.setdefault(setting["model"], []).append(place)
    return places


def draw_layer(
    axes: Axes,
    findings: Findings,
    layer: Layer,
    statics: dict[str, str],
    dynamics: Sequence[Dynamic],
    measured: Measured = CYCLES,
) -> None:
    """Draw the designs of a layer.

    ``statics`` has the experts whose memory is counted (see ``MEMORY``), by the label of the tiles.
    """
    named(axes, layer.title, "on-chip memory (MB)", measured.label)
    for (label, counted), style in zip(statics.items(), ("o-", "s:"), strict=False):
        designs = [_design(findings, layer, measured, counted, each) for each in layer.tiles]
        line = sorted((each.on_chip_bytes, each.cycles) for each in front(designs))
        axes.plot(*zip(*line, strict=True), style[1:], color=COLOURS["static"], linewidth=1)
        points = [(each.on_chip_bytes, each.cycles) for each in designs]
        for tile_n, at in zip(layer.tiles, points, strict=True):
            axes.annotate(str(tile_n), at, (4, 4), textcoords="offset points", fontsize=8)
        axes.plot(*zip(*points, strict=True), style[0], color=COLOURS["static"], label=label)
    for star in dynamics:
        design = _dynamic(findings, layer, measured, star)
        axes.plot(
            design.on_chip_bytes,
            design.cycles,
            "*",
            markersize=13 if star.filled else 18,
            color=COLOURS[star.colour],
            markerfacecolor=COLOURS[star.colour] if star.filled else "none",
            label=star.label,
        )
    logarithmic(axes)


def _annotate(axes: Axes, findings: Findings, wanted: Annotation, measured: Measured) -> None:
    ours = _dynamic(findings, wanted.layer, measured, AS_PUBLISHED)
    static = _design(findings, wanted.layer, measured, "all experts", wanted.tile_n)
    is_horizontal = wanted.what == "bytes"
    begin = (ours.on_chip_bytes if is_horizontal else static.on_chip_bytes, ours.cycles)
    end = (static.on_chip_bytes, ours.cycles if is_horizontal else static.cycles)
    ratio = end[0] / begin[0] if is_horizontal else end[1] / begin[1]
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "<->", "color": COLOURS["other"]})
    axes.annotate(
        f"{ratio:.3g}x",
        # The text is at the middle of the longer of two overlapping arrows.
        (begin[0] ** 0.4 * end[0] ** 0.6, (begin[1] * end[1]) ** 0.5),
        (0, 3) if is_horizontal else (-4, 0),
        textcoords="offset points",
        color=COLOURS["other"],
        ha="center" if is_horizontal else "right",
    )


def _dynamic(findings: Findings, layer: Layer, measured: Measured, star: Dynamic) -> Design:
    return _design(findings, layer, measured, star.counted, flops_per_cycle=star.flops_per_cycle)


def _design(
    findings: Findings,
    layer: Layer,
    measured: Measured,
    counted: str,
    tile_n: int | None = None,
    flops_per_cycle: int = 4096,
) -> Design:
    """Return a design in the units of the picture, with the metric as ``cycles``.

    Its numbers are NaN if the run is missing.
    """
    setting: dict[str, object] = {"model": layer.model, "batch": layer.batch}
    setting |= {"tiling": "dynamic" if tile_n is None else "static"}
    setting |= {"flops_per_cycle": flops_per_cycle} | ({} if tile_n is None else {"tile_n": tile_n})
    value = found(findings, measured.metric, **setting) / measured.unit
    return Design(value, found(findings, MEMORY[counted], **setting) / 1e6)
