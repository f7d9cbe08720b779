"""The authors' numbers, as values of metrics of points.

These tables are from earlier runs, which the authors published with their artifacts, and from their
equations. ``camera_ready.py`` has the printed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric import KnownValue
from paper.tables import cache_lengths, routing, rows

Setting: TypeAlias = dict[str, str | int]

_MODELS: Final = {"Mixtral-8x7B": "mixtral-8x7b", "Qwen3-30B-A3B": "qwen3-30b-a3b"}
_SOURCES: Final = {
    "attention.csv": "earlier runs",
    "moe_closed_forms.csv": "the authors' equations",
    "moe_tiling.csv": "earlier runs",
    "moe_time_multiplexing.csv": "earlier runs",
    "swiglu.csv": "earlier runs",
    "swiglu_hdl.csv": "an earlier run of the hardware",
}
TRAFFIC: Final = "off_chip_traffic_artifact_bytes"
ALL_EXPERTS: Final = "on_chip_requirement_artifact_bytes"
ACTIVE_EXPERTS: Final = "extra.on_chip_requirement_artifact_active_bytes"
_FLOPS: Final = "extra.flops_artifact"


@dataclass(frozen=True)
class Published:
    """A number of a table.

    Attributes:
        setting: the parameters of the point.
        seconds: the time of the authors' simulator for the point; None if unknown.
    """

    table: str
    setting: Setting
    metric: str
    value: int
    seconds: int | None = None


def known(*tables: Iterable[Published]) -> tuple[KnownValue, ...]:
    """Return the numbers of tables as known values of a study."""
    return tuple(
        KnownValue(each.setting, each.metric, each.value, _source(each.table))
        for table in tables
        for each in table
    )


def newest(*tables: Iterable[Published]) -> list[Published]:
    """Return each number once, from the last of the tables that have it."""
    last = {
        (tuple(sorted(each.setting.items())), each.metric): each
        for table in tables
        for each in table
    }
    return list(last.values())


def _source(table: str) -> str:
    """Return the source of a table's numbers, such as ``figure 9, printed``."""
    if table in _SOURCES:
        return f"{_SOURCES[table]}, {table}"
    return f"figure {int(table.removesuffix('.csv')[-2:])}, printed"


def swiglu() -> Iterator[Published]:
    """Figure 8: the authors' simulator."""
    for row in rows("swiglu.csv"):
        for metric, column in {"cycles": "cycles", TRAFFIC: "off_chip_traffic_bytes"}.items():
            yield Published("swiglu.csv", tiles_of(row), metric, in_units(row[column]))


def hdl() -> Iterator[Published]:
    """Figure 8: the points of the hardware description that are public."""
    for row in rows("swiglu_hdl.csv"):
        yield Published("swiglu_hdl.csv", tiles_of(row), "cycles", in_units(row["cycles"]))
        traffic_bytes = in_units(row["off_chip_traffic_MB"], 1e6)
        yield Published("swiglu_hdl.csv", tiles_of(row), TRAFFIC, traffic_bytes)


def attention() -> Iterator[Published]:
    """Figures 14, 15 and 21: every trace with every strategy."""
    columns = {
        "coarse": "static_coarse_cycles",
        "interleaved": "static_interleave_cycles",
        "dynamic": "dynamic_cycles",
    }
    for row in rows("attention.csv"):
        for strategy, column in columns.items():
            setting: Setting = {"strategy": strategy, "kv": cache_lengths(row["trace"])}
            yield Published("attention.csv", setting, "cycles", in_units(row[column]))


def tiling(batch: int) -> Iterator[Published]:
    """Figures 9 and 10 (batches 64 and 1024): the values of the paper's first version."""
    for row in rows("moe_tiling.csv"):
        if row["batch"] == str(batch):
            yield from _layer("moe_tiling.csv", row, "op_flops_per_cycle")


def multiplexing() -> Iterator[Published]:
    """Figures 12 and 13."""
    for row in rows("moe_time_multiplexing.csv"):
        yield from _layer("moe_time_multiplexing.csv", row, "unit_flops")
        # For the dynamic layer with a region per expert, the authors leave out one operator.
        yield Published(
            "moe_time_multiplexing.csv",
            _setting(row, "unit_flops"),
            "allocated_flops_per_cycle",
            in_units(row["allocated_flops"]),
        )


def closed_forms(batch: int) -> Iterator[Published]:
    """Results of the equations in the authors' scripts for every tile size, without cycles."""
    columns = {
        TRAFFIC: "off_chip_traffic_bytes",
        ALL_EXPERTS: "on_chip_bytes_all_experts",
        ACTIVE_EXPERTS: "on_chip_bytes_active_experts_only",
        _FLOPS: "flops_script",
    }
    for row in rows("moe_closed_forms.csv"):
        if row["batch"] == str(batch):
            setting = _setting(row, "op_flops_per_cycle_script")
            for metric, column in columns.items():
                yield Published("moe_closed_forms.csv", setting, metric, in_units(row[column]))


def _layer(table: str, row: dict[str, str], bandwidth: str) -> Iterator[Published]:
    setting = _setting(row, bandwidth)
    seconds = in_units(row["authors_wall_seconds"])
    yield Published(table, setting, "cycles", in_units(row["cycles"]), seconds)
    # Rows without an accounting count the active experts.
    everything = row.get("on_chip_accounting", "").startswith("all experts")
    columns = {
        TRAFFIC: "off_chip_traffic_bytes",
        ALL_EXPERTS if everything else ACTIVE_EXPERTS: "on_chip_requirement_bytes",
        _FLOPS: "flops",
    }
    for metric, column in columns.items():
        # 0 means that the number was not computed.
        if value := in_units(row[column]):
            yield Published(table, setting, metric, value)


def _setting(row: dict[str, str], bandwidth: str) -> Setting:
    setting: Setting = {
        "model": _MODELS[row["model"]],
        "batch": int(row["batch"]),
        "tiling": row["tiling"],
        "tile_f": int(row["tile_F"]),
        "flops_per_cycle": in_units(row[bandwidth]),
        "routing": routing(row["trace"]),
    }
    if row["tiling"] == "static":
        setting["tile_n"] = int(row["tile_N"])
    if "n_par_region" in row:
        setting["regions"] = int(row["n_par_region"])
    return setting


def tiles_of(row: dict[str, str]) -> Setting:
    return {name: int(row[name]) for name in ("tile_batch", "tile_inter")}


def in_units(text: str, unit: float = 1) -> int:
    """Return a number of a table times ``unit``, as an integer."""
    return round(float(text) * unit)
