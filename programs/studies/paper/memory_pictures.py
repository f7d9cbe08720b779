"""The paper's ratios and shared regions on both memories, as pictures."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from fabric import Findings
from paper.comparisons import RATIOS
from paper.drawing import COLOURS, found, named, published
from paper.memories import BANKED, FLAT, View
from paper.workloads import REGIONS

_MEMORIES: Final = {"flat": (FLAT, COLOURS["static"]), "banked": (BANKED, COLOURS["dynamic"])}


def draw_ratios(findings: Findings, figure: Figure) -> None:
    """Draw every ratio except percentages, with the largest value of a range."""
    figure.set_size_inches(9, 7)
    axes = figure.subplots()
    shown = [each for each in RATIOS if each.printed.unit != "%"]
    for side, (name, (keys, colour)) in zip((-0.2, 0.2), _MEMORIES.items(), strict=True):
        ratios = [max(each.on(findings, keys)) for each in shown]
        at = [place + side for place in range(len(shown))]
        drawn = axes.barh(at, ratios, 0.4, color=colour, label=name)
        axes.bar_label(drawn, [f"{each:.2f}" for each in ratios], fontsize=7, padding=6)
    theirs = [(each.printed.ends[-1], at) for at, each in enumerate(shown) if each.published]
    published(axes, theirs)
    axes.set_yticks(range(len(shown)), [f"{each.figure}: {each.what}" for each in shown])
    axes.tick_params(axis="y", labelsize=7)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(x=0.1)
    named(axes, "", "ratio", "figure, and comparison")
    axes.legend(loc="lower right")


def draw_regions(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(9, 4)
    panels = figure.subplots(1, len(REGIONS), sharey=True)
    for axes, (tiling, regions) in zip(panels, REGIONS.items(), strict=True):
        for name, (keys, colour) in _MEMORIES.items():
            view = View(findings, keys, {"tile_f": 48, "tiling": tiling})
            cycles = [found(view, "cycles", regions=each) / 1e6 for each in regions]
            axes.plot(range(len(regions)), cycles, "o-", color=colour, label=name)
        axes.set_xticks(range(len(regions)), map(str, regions))
        named(axes, f"{tiling} tiles", "regions", "million cycles")
    panels[0].set_ylim(bottom=0)
    panels[0].legend()
