"""The published design points: how to run each, and what must come out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Bound",
    "Point",
    "attention_points",
    "closed_form_points",
    "moe_points",
    "swiglu_points",
]

_MODELS = {"Mixtral-8x7B": "mixtral-8x7b", "Qwen3-30B-A3B": "qwen3-30b-a3b"}


@dataclass(frozen=True)
class Bound:
    """What a field of the report has to be.

    Attributes:
        source: who says so.
        field: of the report, or of its ``extra``.
        value: the number there.
        slack: by how much the report may differ.
        seconds: what the original took for it, where that is known.
    """

    source: str
    field: str
    value: int
    slack: int = 0
    seconds: int | None = None


@dataclass(frozen=True)
class Point:
    """One run and its bounds.

    Attributes:
        label: short.
        program: file name below ``programs``.
        parameters: ``NAME=VALUE``.
        hardware: file name below ``programs/hardware``.
        bounds: none about cycles where no cycles are published.
    """

    label: str
    program: str
    parameters: tuple[str, ...]
    bounds: tuple[Bound, ...]
    hardware: str = "paper.toml"


def swiglu_points(data: Path) -> Iterator[Point]:
    """The layer of figure 8 in all published tilings."""
    for row in _rows(data, "swiglu"):
        rows, cols = row["tile_batch"], row["tile_inter"]
        yield Point(
            f"SwiGLU {rows}x256x{cols}",
            "swiglu.py",
            (f"tile_batch={rows}", f"tile_inter={cols}"),
            (
                Bound("swiglu.csv", "cycles", _int(row["cycles"]), 1),
                Bound(
                    "swiglu.csv",
                    "off_chip_traffic_artifact_bytes",
                    _int(row["off_chip_traffic_bytes"]),
                ),
            ),
            "hdl_validation.toml",
        )


def attention_points(data: Path) -> Iterator[Point]:
    """Figures 14 and 21: every trace with every strategy."""
    columns = {
        "coarse": "static_coarse_cycles",
        "interleaved": "static_interleave_cycles",
        "dynamic": "dynamic_cycles",
    }
    for row in _rows(data, "attention"):
        for strategy, column in columns.items():
            yield Point(
                f"attention b{row['batch']} {row['start']}-{row['end']} {strategy}",
                "attention.py",
                (f"strategy={strategy}", f"kv={data / 'traces/kv_lengths' / row['trace']}"),
                (Bound("attention.csv", "cycles", _int(row[column]), 1),),
            )


def moe_points(data: Path) -> Iterator[Point]:
    """The settings of ``reference_cycles.csv`` with the authors' numbers for the same ones."""
    published = _published_moe(data)
    names = ("model", "batch", "tiling", "tile_n", "tile_f", "regions", "flops_per_cycle")
    for row in _rows(data, "reference_cycles"):
        setting = tuple(row[name] for name in names)
        known = published.get(setting, ()) if row["channel_depth"] == "2" else ()
        parameters = [f"{name}={row[name]}" for name in (*names, "channel_depth") if row[name]]
        routing = data / "traces/expert_routing" / row["routing"]
        tile = row["tile_n"] or "dynamic"
        yield Point(
            f"{row['model'].split('-')[0]} b{row['batch']} tile {tile}, {row['regions']} regions, "
            f"{row['flops_per_cycle']} FLOPs/cycle, depth {row['channel_depth']}",
            "moe.py",
            (*parameters, f"routing={routing}"),
            (Bound("reference_cycles.csv", "cycles", _int(row["cycles"])), *known),
        )


def closed_form_points(data: Path) -> Iterator[Point]:
    """The rows of ``moe_closed_forms.csv``: bytes and operations, no cycles."""
    for row in _rows(data, "moe_closed_forms"):
        model, tiling = _MODELS[row["model"]], row["tiling"]
        routing = data / "traces/expert_routing" / row["trace"]
        # Only at the depth the authors had to choose do all of them run to their end.
        parameters = [f"model={model}", f"batch={row['batch']}", f"tiling={tiling}"]
        parameters += [f"tile_f={row['tile_F']}", "channel_depth=1024", f"routing={routing}"]
        if tiling == "static":
            parameters.append(f"tile_n={row['tile_N']}")
        columns = {
            "off_chip_traffic_artifact_bytes": "off_chip_traffic_bytes",
            "on_chip_requirement_artifact_bytes": "on_chip_bytes_all_experts",
            "on_chip_requirement_artifact_active_bytes": "on_chip_bytes_active_experts_only",
            "flops_artifact": "flops_script",
        }
        yield Point(
            f"{model.split('-')[0]} b{row['batch']} tile {row['tile_N']}",
            "moe.py",
            tuple(parameters),
            tuple(
                Bound("moe_closed_forms.csv", field, _int(row[column]))
                for field, column in columns.items()
            ),
        )


def _published_moe(data: Path) -> dict[tuple[str, ...], list[Bound]]:
    """The authors' own numbers, which scatter, by model, batch, tiling, sizes and bandwidth."""
    found: dict[tuple[str, ...], list[Bound]] = {}
    tables = (("moe_tiling", "op_flops_per_cycle"), ("moe_time_multiplexing", "unit_flops"))
    for table, bandwidth in tables:
        for row in _rows(data, table):
            dynamic = row["tiling"] == "dynamic"
            setting = (
                _MODELS[row["model"]],
                row["batch"],
                row["tiling"],
                "" if dynamic else row["tile_N"],
                row["tile_F"],
                row["n_par_region"],
                str(_int(row[bandwidth])),
            )
            cycles = _int(row["cycles"])
            # Where the accounting is not said, it is that of the active experts.
            everything = row.get("on_chip_accounting", "").startswith("all experts")
            on_chip = "on_chip_requirement_artifact" + ("" if everything else "_active") + "_bytes"
            fields = {
                "off_chip_traffic_artifact_bytes": _int(row["off_chip_traffic_bytes"]),
                on_chip: _int(row["on_chip_requirement_bytes"]),
                "flops_artifact": _int(row["flops"]),
            }
            found.setdefault(setting, []).extend(
                (
                    Bound(
                        f"{table}.csv",
                        "cycles",
                        cycles,
                        cycles // 50,
                        _int(row["authors_wall_seconds"]),
                    ),
                    # 0 means that it was not computed.
                    *(
                        Bound(f"{table}.csv", name, value)
                        for name, value in fields.items()
                        if value
                    ),
                )
            )
    return found


def _rows(data: Path, name: str) -> list[dict[str, str]]:
    with (data / "published" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _int(text: str) -> int:
    return round(float(text))
