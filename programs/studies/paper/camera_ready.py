"""The figures of the printed paper, read from its vectors (``data/published/camera_ready``).

Cycles and bytes read from the vectors lie within 0.15 of an integer. Some rows are left out: the
authors ran them again for print, and ``published.py`` has the values of their earlier runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paper.published import (
    ACTIVE_EXPERTS,
    ALL_EXPERTS,
    TRAFFIC,
    Published,
    Setting,
    in_units,
    tiles_of,
)
from paper.tables import routing, rows
from paper.tiling import EQUAL_FLOPS, PUBLISHED_FLOPS
from paper.workloads import MIXTRAL_64, MIXTRAL_1024, QWEN_64, QWEN_1024, TRACE_15

_LAYERS: Final = {
    "Mixtral-8x7B b64": MIXTRAL_64,
    "Qwen3-30B-A3B b64": QWEN_64,
    "Mixtral-8x7B b1024": MIXTRAL_1024,
    "Qwen3-30B-A3B b1024": QWEN_1024,
}


def swiglu() -> Iterator[Published]:
    """Figure 8: the authors' simulator."""
    yield from _of_figure_8("step")


def hdl() -> Iterator[Published]:
    """Figure 8: the authors' hardware description, seven of its fifteen points."""
    yield from _of_figure_8("hdl")


def _of_figure_8(source: str) -> Iterator[Published]:
    table = _table(8)
    for row in rows(table):
        yield Published(table, tiles_of(row), "cycles", int(row[f"{source}_cycles"]))
        traffic_bytes = in_units(row[f"{source}_traffic_MB"], 1e6)
        yield Published(table, tiles_of(row), TRAFFIC, traffic_bytes)


def tiling(batch: int) -> Iterator[Published]:
    """Figures 9 and 19, or 10 and 20: cycles, bytes on chip and traffic of every tile."""
    figures = (9, 19) if batch == 64 else (10, 20)
    seen = set()
    for table in map(_table, figures):
        for row in rows(table):
            name, _, tiles = row["series"].rpartition(" ")
            layer = _LAYERS[name]
            static = tiles == "static"
            setting: Setting = {
                "model": layer.model,
                "batch": layer.batch,
                "tiling": tiles,
                "tile_f": 64,
                "flops_per_cycle": EQUAL_FLOPS if static else PUBLISHED_FLOPS,
                "routing": routing(layer.trace),
                "regions": layer.regions,
            }
            if static:
                setting["tile_n"] = int(row["x"])
            metric = {
                "cycles": "cycles",
                "off-chip bytes": TRAFFIC,
                "on-chip bytes": ALL_EXPERTS if static else ACTIVE_EXPERTS,
            }[row["y_unit"]]
            key = (*setting.items(), metric)
            if key not in seen:  # both figures have the on-chip bytes
                seen.add(key)
                yield Published(table, setting, metric, int(row["y_rounded"]))


def multiplexing() -> Iterator[Published]:
    """Figures 12 and 13: cycles, bytes on chip and compute of Qwen's layer in fewer regions."""
    for row in rows(_table(12)):
        if row["y_unit"] == "cycles":
            tiles = row["series"].partition(" ")[0]
            setting = _shared(tiles, int(row["x"]))
            yield Published(_table(12), setting, "cycles", int(row["y_rounded"]))
    for row in rows(_table(13)):
        setting = _shared("static", int(row["x"]))
        if row["series"] == "on-chip memory":
            size = in_units(row["y"], 1e3)
            yield Published(_table(13), setting, ACTIVE_EXPERTS, size)
        elif row["series"] == "allocated compute":
            compute = int(row["y_rounded"])
            yield Published(_table(13), setting, "allocated_flops_per_cycle", compute)


def _shared(tiles: str, regions: int) -> Setting:
    setting: Setting = {
        "model": QWEN_64.model,
        "batch": QWEN_64.batch,
        "tiling": tiles,
        "tile_f": 48,
        "flops_per_cycle": 1024,
        "routing": routing(QWEN_64.trace),
        "regions": regions,
    }
    return setting | ({"tile_n": 32} if tiles == "static" else {})


def blocks() -> Iterator[Published]:
    """Figure 15: attention of the first requests of one trace."""
    for row in rows(_table(15)):
        setting: Setting = {
            "strategy": row["series"].removeprefix("static "),
            "kv": TRACE_15.path,
            "requests": int(row["x"]),
        }
        yield Published(_table(15), setting, "cycles", int(row["y_rounded"]))


def bars(figure: int) -> dict[tuple[str, str], list[float]]:
    """Return the bars of figure 14, 17 or 21, by series and label on the axis."""
    heights: dict[tuple[str, str], list[float]] = {}
    for row in rows(_table(figure)):
        label = row["y_unit"] if figure == 14 else row["x"]
        heights.setdefault((row["series"], label), []).append(float(row["y"]))
    return heights


def _table(figure: int) -> str:
    return f"camera_ready/fig{figure:02}.csv"
