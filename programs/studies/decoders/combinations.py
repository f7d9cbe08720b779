"""The three optimisations of the paper, each on or off, on a layer of a decoder."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from decoders.factorial import effects
from decoders.matching import PAPER
from decoders.points import ASSUMED, DECODERS, Decoder, Parameters
from fabric import Findings, Space, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METRICS", "OPTIONS", "combinations", "draw_effects", "measured", "space"]

OPTIONS: Final = ("dynamic tiles", "dynamic parallelisation", "shared regions")
METRICS: Final = {
    "cycles": "cycles",
    PAPER: "on-chip bytes",
    "allocated_flops_per_cycle": "compute",
}

_TILE: Final = 16
"""Rows of a static tile: Mixtral's nearest to the dynamic ones in memory, Qwen's second."""

_SHARED: Final = {"qwen3-30b-a3b": 32, "mixtral-8x7b": 4}
"""Regions where experts share them; Mixtral's, all of them busy, in pairs."""


def combinations(decoder: Decoder) -> dict[tuple[bool, ...], Parameters]:
    """Return the layout of every combination of ``OPTIONS``."""
    found: dict[tuple[bool, ...], Parameters] = {}
    for options in itertools.product((False, True), repeat=len(OPTIONS)):
        tiles, parallelisation, shared = options
        layout = decoder.unshared if tiles else decoder.static(_TILE)
        found[options] = layout | {
            "parallelisation": "dynamic" if parallelisation else "interleaved",
            "regions": _SHARED[decoder.model] if shared else decoder.experts,
        }
    return found


def space() -> Space:
    """Return all combinations for all models."""
    points = [
        grid({name: (value,) for name, value in (decoder.named | ASSUMED | layout).items()})
        for decoder in DECODERS
        for layout in combinations(decoder).values()
    ]
    first, *others = points
    for each in others:
        first += each
    return first


def measured(findings: Findings, decoder: Decoder) -> dict[str, dict[tuple[int, ...], float]]:
    """Return the effects on each metric; none where a run did not complete."""
    found = {}
    for metric in METRICS:
        values = {
            options: findings.value(metric, **decoder.named, **layout)
            for options, layout in combinations(decoder).items()
        }
        known = {options: value for options, value in values.items() if value is not None}
        if len(known) == len(values):
            found[metric] = effects(known)
    return found


def draw_effects(findings: Findings, figure: Figure) -> None:
    """Draw effects and interactions, a panel for each model and metric."""
    panels = figure.subplots(len(DECODERS), len(METRICS), sharex="col", sharey=True, squeeze=False)
    for row, decoder in zip(panels, DECODERS, strict=True):
        found = measured(findings, decoder)
        for axes, (metric, title) in zip(row, METRICS.items(), strict=True):
            axes.set_title(f"{decoder.title}: {title}", fontsize="medium")
            axes.axvline(1, color="0.6", linewidth=0.8)
            of_metric = found.get(metric, {})
            names = ["\nand ".join(OPTIONS[each] for each in group) for group in of_metric]
            axes.barh(range(len(names)), [factor - 1 for factor in of_metric.values()], left=1)
            axes.set_yticks(range(len(names)), names, fontsize="small")
            if row is panels[0] and axes is row[0]:
                axes.invert_yaxis()
    for axes in panels[-1]:
        axes.set_xlabel("factor")
    figure.set_layout_engine("constrained")
