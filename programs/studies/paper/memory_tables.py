"""Rows of tables: the cost of a memory with banks for the paper's designs, and its causes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fabric import Findings
from paper.claims import number
from paper.comparisons import Setting
from paper.memories import BANKED, FLAT, VARIATIONS, VARIED, Keys, Variation, View
from paper.tiling import PUBLISHED_FLOPS
from paper.workloads import REGIONS

BESIDE: Final = ("flat", "banked", "banked/flat", "bus used (%)", "row hits (%)", "lost to")
"""Columns of a design on both memories: cycles, and the counters of the memory with banks."""

_LOST: Final = {
    "window": "full windows",
    "conflict": "rows and commands",
    "refresh": "refresh",
    "turnaround": "turnaround",
    "idle": "no requests",
}
"""The causes of bus cycles without data, by counter."""


def by_regions(findings: Findings) -> Iterator[tuple[object, ...]]:
    for tiling, regions in REGIONS.items():
        for each in regions:
            setting = {"tile_f": 48, "tiling": tiling, "regions": each}
            yield tiling, each, *beside(findings, setting)


def by_variation(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield layers with variations of the memory, or of its requests."""
    for layer in VARIED:
        for each in (Variation("nothing", layers=VARIED), *VARIATIONS):
            if layer not in each.layers:
                continue
            size: dict[str, object] = {"model": layer.model, "batch": layer.batch}
            size |= {"tile_f": each.tile_f}
            static = size | {"tiling": "static", "tile_n": layer.tiles[0]}
            dynamic = size | {"tiling": "dynamic", "flops_per_cycle": PUBLISHED_FLOPS}
            for setting in (static, dynamic):
                cells = beside(findings, setting, each.hardware)
                yield layer.title, each.title, setting["tiling"], *cells


def lost(view: View, setting: Setting) -> tuple[float, str]:
    """Return the percentage of bus cycles with data, and the causes of the remaining cycles.

    The largest cause is the first. Causes below five percent are left out.
    """
    cycles = {each: number(view, f"hbm.{each}_bus_cycles", **setting) for each in ("data", *_LOST)}
    percent = {each: 100 * count / sum(cycles.values()) for each, count in cycles.items()}
    data = percent.pop("data")
    most = sorted(percent, key=lambda each: -percent[each])
    causes = (f"{_LOST[each]} {percent[each]:.0f} %" for each in most if percent[each] >= 5)
    return data, ", ".join(causes)


def beside(findings: Findings, setting: Setting, hardware: Keys = BANKED) -> tuple[object, ...]:
    flat = number(View(findings, FLAT), "cycles", **setting)
    view = View(findings, hardware)
    banked = number(view, "cycles", **setting)
    data, rest = lost(view, setting)
    rows = [number(view, f"hbm.row_{each}", **setting) for each in ("hits", "misses", "conflicts")]
    hits = 100 * rows[0] / sum(rows)
    return int(flat), int(banked), f"{banked / flat:.2f}", f"{data:.0f}", f"{hits:.0f}", rest
