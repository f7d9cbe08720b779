"""The picture of figures 19 and 20: what layers cost, tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fabric import Findings
from paper.drawing import COLOURS, found, named
from paper.workloads import Layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CAPTION", "by_tile"]

CAPTION: Final = (
    "With 4096 FLOPs per cycle for static tiles and 6400 for the dynamic one, as the authors ran "
    "them. Operations are those of the authors' scripts, padding included."
)
_METRICS: Final = {
    "million cycles": ("cycles", 1e6),
    "off-chip traffic (GB)": ("off_chip_traffic_artifact_bytes", 1e9),
    "TFLOP": ("extra.flops_artifact", 1e12),
}
"""What the columns show, in which unit."""


def by_tile(layers: Sequence[Layer]) -> Callable[[Findings, Figure], None]:
    """Return what draws layers, one row each."""

    def draw(findings: Findings, figure: Figure) -> None:
        figure.set_size_inches(10, 2.8 * len(layers))
        panels = figure.subplots(len(layers), len(_METRICS))
        for row, layer in zip(panels, layers, strict=True):
            points: list[dict[str, object]] = [
                {"tiling": "static", "tile_n": each} for each in layer.tiles
            ]
            points.append({"tiling": "dynamic"})
            labels = [*map(str, layer.tiles), "dynamic"]
            colours = [COLOURS["static"]] * len(layer.tiles) + [COLOURS["dynamic"]]
            for axes, (label, (metric, unit)) in zip(row, _METRICS.items(), strict=True):
                heights = [
                    found(findings, metric, model=layer.model, **each) / unit for each in points
                ]
                drawn = axes.bar(range(len(points)), heights, color=colours)
                axes.bar_label(drawn, [f"{each:.3g}" for each in heights], fontsize=7)
                axes.set_xticks(range(len(points)), labels, rotation=45)
                named(axes, layer.title, "rows of a tile", label)

    return draw
