"""Metrics without a run: every published byte and FLOP, and figures that follow from them."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from tests.profiles import spread
from tests.symbolic.programs import PROGRAMS, data_metrics, wired

DATA = PROGRAMS / "data"
MODELS = {"Mixtral-8x7B": "mixtral-8x7b", "Qwen3-30B-A3B": "qwen3-30b-a3b"}


def rows(file: str) -> list[dict[str, str]]:
    with (DATA / "published" / file).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def layer(row: dict[str, str], **more: Any) -> Any:
    tiling = row["tiling"].split()[0]
    tile: dict[str, Any] = {} if tiling == "dynamic" else {"tile_n": row["tile_N"]}
    return wired(
        "moe",
        model=MODELS[row["model"]],
        batch=row["batch"],
        routing=DATA / "traces/expert_routing" / row["trace"],
        tiling=tiling,
        tile_f=row["tile_F"],
        **tile,
        **more,
    )


def name(row: dict[str, str]) -> str:
    tiling = row.get("tile_N") or row["tiling"]
    return "-".join(filter(None, (row["model"], row["batch"], tiling, row.get("n_par_region"))))


@pytest.mark.parametrize("row", spread(rows("moe_closed_forms.csv"), 4), ids=name)
def test_metrics_of_a_row_are_the_closed_forms(row: dict[str, str]) -> None:
    program = layer(row, flops_per_cycle=row["op_flops_per_cycle_script"])
    metrics = data_metrics(program)
    artifact = metrics.artifact
    in_experts = sum(
        of.costs.flops for of in metrics.operators if of.node.place.file.endswith("experts.py")
    )
    found = {
        "off_chip_traffic_bytes": artifact.traffic_bytes,
        "on_chip_bytes_all_experts": artifact.on_chip_bytes,
        "on_chip_bytes_active_experts_only": program.extra[
            "on_chip_requirement_artifact_active_bytes"
        ](),
        "flops_script": program.extra["flops_artifact"](),
        "flops_correct_silu": in_experts,
        "min_cycles_hbm_1024B": artifact.memory_cycles,
    }
    assert {key: int(row[key]) for key in found} == found


@pytest.mark.parametrize("row", spread(rows("moe_closed_forms.csv"), 4), ids=name)
def test_compute_bound_is_that_of_the_busiest_expert(row: dict[str, str]) -> None:
    program = layer(row, flops_per_cycle=row["op_flops_per_cycle_script"])
    busiest = max(data_metrics(program).compute_cycles)

    assert int(row["min_cycles_slowest_expert_matmul"]) == busiest


# 0 in the table means that the number was not computed.
@pytest.mark.parametrize(
    "row",
    [row for row in rows("moe_time_multiplexing.csv") if float(row["off_chip_traffic_bytes"])],
    ids=name,
)
def test_metrics_of_shared_regions_are_the_published_ones(row: dict[str, str]) -> None:
    regions = int(float(row["n_par_region"]))
    program = layer(row, regions=regions)
    metrics = data_metrics(program)
    active = program.extra["on_chip_requirement_artifact_active_bytes"]()

    assert float(row["off_chip_traffic_bytes"]) == metrics.artifact.traffic_bytes
    assert float(row["on_chip_requirement_bytes"]) == active


@pytest.mark.parametrize("row", spread(rows("moe_tiling.csv"), 3), ids=name)
def test_metrics_of_tilings_are_the_published_ones(row: dict[str, str]) -> None:
    program = layer(row)
    metrics = data_metrics(program)
    on_chip = {
        metrics.artifact.on_chip_bytes,
        program.extra["on_chip_requirement_artifact_active_bytes"](),
    }

    assert float(row["off_chip_traffic_bytes"]) == metrics.artifact.traffic_bytes
    assert float(row["on_chip_requirement_bytes"]) in on_chip


@pytest.mark.parametrize("row", rows("swiglu.csv"), ids=lambda row: row["tile_inter"])
def test_metrics_of_swiglu_are_the_published_ones(row: dict[str, str]) -> None:
    sizes = ("batch", "hidden", "inter", "tile_batch", "tile_inter")
    program = wired("swiglu", "hdl_validation", **{size: row[size] for size in sizes})

    assert float(row["off_chip_traffic_bytes"]) == (data_metrics(program).artifact.traffic_bytes)


EXPERTS = {
    "Mixtral-8x7B": ("mixtral_b64/008_010.npz", "64", 8, ("16", "32")),
    "Qwen3-30B-A3B": ("qwen_b64/032_012.npz", "48", 32, ("8", "64")),
}


@pytest.mark.parametrize(
    ("model", "rest"), [("Mixtral-8x7B", 6_123_840), ("Qwen3-30B-A3B", 3_847_488)]
)
def test_bytes_of_figure_17_are_equal_but_for_a_constant(model: str, rest: int) -> None:
    experts = [data_metrics(each).artifact.on_chip_bytes for each in _layers(model)]
    bars = [round(bar * 2**20) for bar in _bars(model, "MB of on-chip memory")]

    assert [rest, rest, rest + 32] == [a - b for a, b in zip(bars, experts, strict=True)]


@pytest.mark.parametrize("model", EXPERTS)
def test_compute_of_figure_17_is_equal_but_for_a_constant(model: str) -> None:
    experts = [data_metrics(each).allocated_flops_per_cycle for each in _layers(model)]
    bars = [round(bar * 1000) for bar in _bars(model, "KFLOPs/cycle")]
    left_out = 1024 if model == "Mixtral-8x7B" else 0

    assert [131_072, 131_072, 131_072 - left_out] == [
        a - b for a, b in zip(bars, experts, strict=True)
    ]


def _layers(model: str) -> list[Any]:
    trace, tile_f, regions, tiles = EXPERTS[model]
    row = {"model": model, "batch": "64", "trace": trace, "tile_F": tile_f}
    static = [{"tiling": "static", "tile_N": tile} for tile in tiles]
    return [
        *(layer(row | each, flops_per_cycle=1024) for each in static),
        layer(row | {"tiling": "dynamic"}, regions=regions, flops_per_cycle=1024),
    ]


def _bars(model: str, unit: str) -> list[float]:
    return [
        float(row["y"])
        for row in rows("camera_ready/fig17.csv")
        if row["x"] == model and row["y_unit"].startswith(unit)
    ]
