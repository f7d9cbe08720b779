"""Metrics without a run: every byte and FLOP figure that the authors published or that follows."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from tests.profiles import spread
from tests.symbolic.programs import PROGRAMS, data_metrics, wired

DATA = PROGRAMS / "data"
MODELS = {"Mixtral-8x7B": "mixtral-8x7b", "Qwen3-30B-A3B": "qwen3-30b-a3b"}


def rows(file: str) -> list[dict[str, str]]:
    """The rows of a published table."""
    with (DATA / "published" / file).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def layer(row: dict[str, str], **more: Any) -> Any:
    """The mixture-of-experts layer of a row."""
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
    """What a test is called."""
    tiling = row.get("tile_N") or row["tiling"]
    return "-".join(filter(None, (row["model"], row["batch"], tiling, row.get("n_par_region"))))


class TestClosedForms:
    @pytest.mark.parametrize("row", spread(rows("moe_closed_forms.csv"), 4), ids=name)
    def test_row(self, row: dict[str, str]) -> None:
        """Bytes, FLOPs and bounds of one setting equal the closed forms."""
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
    def test_busiest_unit(self, row: dict[str, str]) -> None:
        """The compute bound is that of the slowest expert's products."""
        program = layer(row, flops_per_cycle=row["op_flops_per_cycle_script"])
        busiest = max(data_metrics(program).compute_cycles)

        assert int(row["min_cycles_slowest_expert_matmul"]) == busiest


class TestTables:
    # 0 stands for "not computed" there.
    @pytest.mark.parametrize(
        "row",
        [row for row in rows("moe_time_multiplexing.csv") if float(row["off_chip_traffic_bytes"])],
        ids=name,
    )
    def test_time_multiplexing(self, row: dict[str, str]) -> None:
        """Shared regions move the same bytes; the authors left out experts without tokens."""
        regions = int(float(row["n_par_region"]))
        program = layer(row, regions=regions)
        metrics = data_metrics(program)
        active = program.extra["on_chip_requirement_artifact_active_bytes"]()

        assert float(row["off_chip_traffic_bytes"]) == metrics.artifact.traffic_bytes
        assert float(row["on_chip_requirement_bytes"]) == active

    @pytest.mark.parametrize("row", spread(rows("moe_tiling.csv"), 3), ids=name)
    def test_tiling(self, row: dict[str, str]) -> None:
        """The plotted bytes; on chip either all experts are counted or the active ones."""
        program = layer(row)
        metrics = data_metrics(program)
        on_chip = {
            metrics.artifact.on_chip_bytes,
            program.extra["on_chip_requirement_artifact_active_bytes"](),
        }

        assert float(row["off_chip_traffic_bytes"]) == metrics.artifact.traffic_bytes
        assert float(row["on_chip_requirement_bytes"]) in on_chip

    @pytest.mark.parametrize("row", rows("swiglu.csv"), ids=lambda row: row["tile_inter"])
    def test_swiglu(self, row: dict[str, str]) -> None:
        """The layer of figure 8, at 4 bytes an element."""
        sizes = ("batch", "hidden", "inter", "tile_batch", "tile_inter")
        program = wired("swiglu", "hdl_validation", **{size: row[size] for size in sizes})

        assert float(row["off_chip_traffic_bytes"]) == (
            data_metrics(program).artifact.traffic_bytes
        )


EXPERTS = {
    "Mixtral-8x7B": ("mixtral_b64/008_010.npz", "64", 8, ("16", "32")),
    "Qwen3-30B-A3B": ("qwen_b64/032_012.npz", "48", 32, ("8", "64")),
}
"""Of figure 17: routing, columns of a weight tile, shared regions, rows of the static tiles."""


class TestFigure17:
    """The printed bars, less what the experts take, are the same for every layout."""

    @pytest.mark.parametrize(
        ("model", "rest"), [("Mixtral-8x7B", 6_123_840), ("Qwen3-30B-A3B", 3_847_488)]
    )
    def test_bytes(self, model: str, rest: int) -> None:
        """All experts are counted on both sides; dynamic parallelisation takes 32 bytes more."""
        experts = [data_metrics(each).artifact.on_chip_bytes for each in self.layers(model)]
        bars = [round(bar * 2**20) for bar in self.bars(model, "MB of on-chip memory")]

        assert [rest, rest, rest + 32] == [a - b for a, b in zip(bars, experts, strict=True)]

    @pytest.mark.parametrize("model", EXPERTS)
    def test_compute(self, model: str) -> None:
        """Units have 1,024 FLOPs a cycle; of Mixtral's dynamic layer the final sum is left out."""
        experts = [data_metrics(each).allocated_flops_per_cycle for each in self.layers(model)]
        bars = [round(bar * 1000) for bar in self.bars(model, "KFLOPs/cycle")]
        left_out = 1024 if model == "Mixtral-8x7B" else 0

        assert [131_072, 131_072, 131_072 - left_out] == [
            a - b for a, b in zip(bars, experts, strict=True)
        ]

    def layers(self, model: str) -> list[Any]:
        """Memory-matched, performance-matched, dynamic."""
        trace, tile_f, regions, tiles = EXPERTS[model]
        row = {"model": model, "batch": "64", "trace": trace, "tile_F": tile_f}
        static = [{"tiling": "static", "tile_N": tile} for tile in tiles]
        return [
            *(layer(row | each, flops_per_cycle=1024) for each in static),
            layer(row | {"tiling": "dynamic"}, regions=regions, flops_per_cycle=1024),
        ]

    def bars(self, model: str, unit: str) -> list[float]:
        """The three bars of a model."""
        return [
            float(row["y"])
            for row in rows("camera_ready/fig17.csv")
            if row["x"] == model and row["y_unit"].startswith(unit)
        ]
