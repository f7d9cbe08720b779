"""The paper's ratios and shared regions on both memories, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric import Findings
from paper.drawing import COLOURS, bars, found, named, published
from paper.memories import BANKED, FLAT, View
from paper.memory_ratios import RATIOS
from paper.workloads import REGIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_ratios", "draw_regions"]

_MEMORIES: Final = {"flat": (FLAT, COLOURS["static"]), "banked": (BANKED, COLOURS["dynamic"])}


def draw_ratios(findings: Findings, figure: Figure) -> None:
    """Draw every ratio that is none of per cent; of a range the largest."""
    figure.set_size_inches(9, 5.5)
    shown = [each for each in RATIOS if each.printed.unit != "%"]
    axes = figure.subplots()
    series = {
        name: (colour, [max(each.on(findings, keys)) for each in shown])
        for name, (keys, colour) in _MEMORIES.items()
    }
    bars(axes, [f"{each.figure}: {each.what}"[:60] for each in shown], series, ".2f", 90)
    theirs = [(at, each.printed.ends[-1]) for at, each in enumerate(shown) if each.published]
    published(axes, theirs)
    axes.tick_params(axis="x", labelrotation=90, labelsize=7)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.margins(y=0.15)
    named(axes, "", "", "ratio")
    axes.legend()


def draw_regions(findings: Findings, figure: Figure) -> None:
    """Draw cycles over the regions."""
    figure.set_size_inches(9, 4)
    panels = figure.subplots(1, len(REGIONS), sharey=True)
    for axes, (tiling, regions) in zip(panels, REGIONS.items(), strict=True):
        for name, (keys, colour) in _MEMORIES.items():
            view = View(findings, keys, {"tile_f": 48, "tiling": tiling})
            cycles = [found(view, "cycles", regions=each) / 1e6 for each in regions]
            axes.plot(range(len(regions)), cycles, "o-", color=colour, label=name)
        axes.set_xticks(range(len(regions)), map(str, regions))
        named(axes, f"{tiling} tiles", "regions", "million cycles")
        axes.set_ylim(bottom=0)
    panels[0].legend()
