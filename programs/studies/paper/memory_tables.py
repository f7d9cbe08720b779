"""Rows of tables: the cost of a memory with banks for the paper's workloads, and its causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from fabric import Findings
from paper.claims import number
from paper.memories import BANKED, FLAT, LAYERS, VARIATIONS, VARIED, Keys, Variation, View
from paper.tiling import EQUAL_FLOPS, PUBLISHED_FLOPS
from paper.workloads import REGIONS, TRACE_15, Layer, cache_traces

Setting: TypeAlias = Mapping[str, object]

BESIDE: Final = ("flat", "banked", "banked/flat", "bus used (%)", "row hits (%)", "lost to")
"""Columns of a design on both memories: cycles, and what the one with banks counts."""

_LOST: Final = {
    "window": "full windows",
    "conflict": "rows and commands",
    "refresh": "refresh",
    "turnaround": "turnaround",
    "idle": "no requests",
}
"""The causes of cycles of data buses without data, by counter."""

_BUS: Final = "hbm.{}_bus_cycles"
_LEAST_PERCENT: Final = 5
"""Causes below this share are left out."""


def by_workload(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield the paper's workloads, of layers the fastest static tile and the dynamic one."""
    for layer in LAYERS:
        view: dict[str, object] = {"model": layer.model, "batch": layer.batch, "tile_f": 64}
        static: dict[str, object] = {"tiling": "static", "tile_n": _fastest(findings, layer)}
        dynamic: dict[str, object] = {"tiling": "dynamic", "flops_per_cycle": EQUAL_FLOPS}
        yield layer.title, f"static, {static['tile_n']} rows", *_beside(findings, view | static)
        yield layer.title, "dynamic", *_beside(findings, view | dynamic)
    for tiling in ("static", "dynamic"):
        shared = {"tile_f": 48, "tiling": tiling, "regions": 32}
        yield "Qwen3-30B-A3B, batch 64, 32 regions", tiling, *_beside(findings, shared)
    high: dict[str, object] = {"kv": cache_traces(64, "high")[-1].path, "requests": 64}
    for strategy in ("interleaved", "dynamic"):
        setting = high | {"strategy": strategy}
        yield "attention, 64 requests, high variation", strategy, *_beside(findings, setting)
    for strategy in ("coarse", "dynamic"):
        setting = {"kv": TRACE_15.path, "requests": 16, "strategy": strategy}
        yield "attention, 16 requests", strategy, *_beside(findings, setting)


def by_regions(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield Qwen's layer of figures 12 and 13 with decreasing numbers of regions."""
    for tiling, regions in REGIONS.items():
        for each in regions:
            setting = {"tile_f": 48, "tiling": tiling, "regions": each}
            yield tiling, each, *_beside(findings, setting)


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
                cells = _beside(findings, setting, each.hardware)
                yield layer.title, each.title, setting["tiling"], *cells


def row_hits_percent(view: View, setting: Setting) -> float:
    """Return the percentage of requests that find their row open."""
    hits, misses, conflicts = (
        number(view, f"hbm.row_{each}", **setting) for each in ("hits", "misses", "conflicts")
    )
    return 100 * hits / (hits + misses + conflicts)


def lost(view: View, setting: Setting) -> tuple[float, str]:
    """Return the percentage of bus cycles with data, and the causes of the remaining cycles.

    The largest cause comes first; causes below five percent are left out.
    """
    cycles = {each: number(view, _BUS.format(each), **setting) for each in ("data", *_LOST)}
    percent = {each: 100 * count / sum(cycles.values()) for each, count in cycles.items()}
    data = percent.pop("data")
    most = sorted(percent, key=lambda each: -percent[each])
    told = [f"{_LOST[each]} {percent[each]:.0f} %" for each in most]
    kept = [text for text, each in zip(told, most, strict=True) if percent[each] >= _LEAST_PERCENT]
    return data, ", ".join(kept)


def _beside(findings: Findings, setting: Setting, hardware: Keys = BANKED) -> tuple[object, ...]:
    flat = number(View(findings, FLAT), "cycles", **setting)
    view = View(findings, hardware)
    banked = number(view, "cycles", **setting)
    data, rest = lost(view, setting)
    hits = row_hits_percent(view, setting)
    return int(flat), int(banked), f"{banked / flat:.2f}", f"{data:.0f}", f"{hits:.0f}", rest


def _fastest(findings: Findings, layer: Layer) -> int:
    """Return the rows of the static tile with the fewest cycles on the flat memory."""
    view = View(findings, FLAT, {"model": layer.model, "batch": layer.batch, "tile_f": 64})
    return min(layer.tiles, key=lambda each: number(view, "cycles", tiling="static", tile_n=each))
