"""The three optimisations of the paper, each on or off, on a layer of a decoder."""

from __future__ import annotations

import itertools
from typing import Final

from matplotlib.figure import Figure
from paper.workloads import listed

from decoders.factorial import effects
from decoders.matching import PAPER
from decoders.points import ASSUMED, DECODERS, Decoder, Parameters
from fabric import Findings, Space

OPTIONS: Final = ("dynamic tiles", "dynamic parallelisation", "shared regions")
METRICS: Final = {
    "cycles": "cycles",
    PAPER: "on-chip bytes",
    "allocated_flops_per_cycle": "compute",
}

_GROUPS: Final = [
    group
    for size in range(1, len(OPTIONS) + 1)
    for group in itertools.combinations(range(len(OPTIONS)), size)
]

_TILE: Final = 16
"""Rows of a static tile. For Mixtral, this tile's memory is the nearest to that of dynamic tiles.
For Qwen, it is the second nearest."""

_SHARED: Final = {"qwen3-30b-a3b": 32, "mixtral-8x7b": 4}
"""The number of regions that share experts. Two of Mixtral's eight experts share a region."""


def combinations(decoder: Decoder) -> dict[tuple[bool, ...], Parameters]:
    layouts: dict[tuple[bool, ...], Parameters] = {}
    for options in itertools.product((False, True), repeat=len(OPTIONS)):
        tiles, parallelisation, shared = options
        layout = decoder.unshared if tiles else decoder.static(_TILE)
        layouts[options] = layout | {
            "parallelisation": "dynamic" if parallelisation else "interleaved",
            "regions": _SHARED[decoder.model] if shared else decoder.experts,
        }
    return layouts


def space() -> Space:
    return listed(
        decoder.named | ASSUMED | layout
        for decoder in DECODERS
        for layout in combinations(decoder).values()
    )


def measured(findings: Findings, decoder: Decoder) -> dict[str, dict[tuple[int, ...], float]]:
    of_metrics = {}
    for metric in METRICS:
        values = {
            options: findings.value(metric, **decoder.named, **layout)
            for options, layout in combinations(decoder).items()
        }
        known = {options: value for options, value in values.items() if value is not None}
        if len(known) == len(values):
            of_metrics[metric] = effects(known)
    return of_metrics


def draw_effects(findings: Findings, figure: Figure) -> None:
    names = ["\nand ".join(OPTIONS[each] for each in group) for group in _GROUPS]
    panels = figure.subplots(len(DECODERS), len(METRICS), sharex="col", sharey=True, squeeze=False)
    for row, decoder in zip(panels, DECODERS, strict=True):
        of_metrics = measured(findings, decoder)
        for axes, (metric, title) in zip(row, METRICS.items(), strict=True):
            axes.set_title(f"{decoder.title}: {title}", fontsize="medium")
            axes.axvline(1, color="0.6", linewidth=0.8)
            for place, (group, factor) in enumerate(of_metrics.get(metric, {}).items()):
                axes.barh(-place, factor - 1, left=1, color="C0" if len(group) == 1 else "C1")
                axes.annotate(f" {factor:.3f}", (max(factor, 1), -place), va="center")
            axes.use_sticky_edges = False
            axes.margins(x=0.25)
            axes.set_yticks([-each for each in range(len(names))], names, fontsize="small")
    for axes in panels[-1]:
        axes.set_xlabel("factor")
