"""The picture of figures 9 and 10: cycles against on-chip memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric import Findings
from paper.drawing import COLOURS, found, logarithmic, named, published
from paper.published import Published
from paper.tiling import MEMORY, PUBLISHED_FLOPS, Design, front
from paper.workloads import Layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CAPTION", "Dynamic", "draw_layer", "tradeoff"]

CAPTION: Final = (
    "As the paper compares: static tiles with 4096 FLOPs per cycle, the dynamic one with 6400; of "
    "Qwen the memory of all experts for static tiles, of those with tokens for the dynamic one. "
    "The line joins the static tiles that no other one beats; a circle is what is published."
)


@dataclass(frozen=True)
class Dynamic:
    """A star in the picture: the dynamic tile.

    Attributes:
        label: what it is.
        counted: whose memory counts, see ``MEMORY``.
        flops_per_cycle: of its compute units.
        filled: whether the star is.
        colour: of the star, a name of ``COLOURS``.
    """

    label: str
    counted: str
    flops_per_cycle: int
    filled: bool = True
    colour: str = "dynamic"


def tradeoff(
    layers: Sequence[Layer], values: Iterable[Published]
) -> Callable[[Findings, Figure], None]:
    """Return what draws layers as the paper compares them."""
    cycles = [each for each in values if each.metric == "cycles"]
    star = Dynamic("dynamic tile", "active experts", PUBLISHED_FLOPS)

    def draw(findings: Findings, figure: Figure) -> None:
        figure.set_size_inches(9, 4.2)
        panels = figure.subplots(1, len(layers))
        for axes, layer in zip(panels, layers, strict=True):
            draw_layer(axes, findings, layer, {"static tiles": "all experts"}, [star])
            points = []
            for each in cycles:
                if each.setting["model"] == layer.model:
                    static = each.setting["tiling"] == "static"
                    metric = MEMORY["all experts" if static else star.counted]
                    on_chip_bytes = found(findings, metric, **each.setting)
                    points.append((on_chip_bytes / 1e6, each.value / 1e6))
            if points:
                published(axes, points)
        panels[0].legend()

    return draw


def draw_layer(
    axes: Axes,
    findings: Findings,
    layer: Layer,
    statics: dict[str, str],
    dynamics: Sequence[Dynamic],
) -> None:
    """Draw the designs of a layer.

    Args:
        axes: where.
        findings: have the designs.
        layer: whose.
        statics: whose memory counts, by what the static tiles are called then.
        dynamics: the stars.
    """
    named(axes, layer.title, "on-chip memory (MB)", "million cycles")
    for (label, counted), style in zip(statics.items(), ("o-", "s:"), strict=False):
        designs = [_design(findings, layer, counted, tile_n=each) for each in layer.tiles]
        line = sorted((each.on_chip_bytes, each.cycles) for each in front(designs))
        axes.plot(*zip(*line, strict=True), style[1:], color=COLOURS["static"], linewidth=1)
        points = [(each.on_chip_bytes, each.cycles) for each in designs]
        for tile_n, at in zip(layer.tiles, points, strict=True):
            axes.annotate(str(tile_n), at, (4, 4), textcoords="offset points", fontsize=8)
        axes.plot(*zip(*points, strict=True), style[0], color=COLOURS["static"], label=label)
    for star in dynamics:
        design = _design(findings, layer, star.counted, flops_per_cycle=star.flops_per_cycle)
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


def _design(
    findings: Findings,
    layer: Layer,
    counted: str,
    tile_n: int | None = None,
    flops_per_cycle: int = 4096,
) -> Design:
    """Return a design in millions of cycles and bytes; not numbers where its run is missing."""
    setting: dict[str, object] = {"model": layer.model, "batch": layer.batch}
    setting |= {"tiling": "dynamic" if tile_n is None else "static"}
    setting |= {"flops_per_cycle": flops_per_cycle} | ({} if tile_n is None else {"tile_n": tile_n})
    cycles = found(findings, "cycles", **setting) / 1e6
    return Design(cycles, found(findings, MEMORY[counted], **setting) / 1e6)
