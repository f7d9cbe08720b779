"""Programs at several sizes: outputs against numpy, cycles of all engines and task orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabric import Program, simulate
from tests.profiles import crossed, spread
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

CASES: list[tuple[str, dict[str, Any]]] = [
    *(("simplified_moe", {"tokens": n, "experts": e}) for n, e in ((0, 2), (1, 1), (30, 5))),
    ("ragged_attention", {}),
    ("ragged_attention", {"requests": 0}),
    ("ragged_attention", {"requests": 1, "longest": 1}),
    ("ragged_attention", {"requests": 13, "longest": 9, "seed": 3}),
    *(("dynamic_tiling", {"tiling": tiling}) for tiling in ("dynamic", "static")),
    *(("dynamic_tiling", {"tiling": tiling, "sequences": 0}) for tiling in ("dynamic", "static")),
    ("dynamic_tiling", {"tiling": "static", "rows": 5, "sequences": 11, "seed": 4}),
    ("buffer_twice", {"size": 48, "tile": 48}),
    ("buffer_twice", {"size": 60, "tile": 12, "seed": 7}),
    ("top2_moe", {"tokens": 0}),
    ("top2_moe", {"tokens": 1, "experts": 4}),
    ("top2_moe", {"tokens": 33, "experts": 9, "seed": 2}),
    ("own_function", {"limit": 0.25}),
    ("own_operator", {"tiles": 8}),
    ("own_operator", {"tiles": 0}),
]
SPARSE: list[tuple[str, dict[str, Any]]] = [
    *(
        ("sparse_product", {"matrix": matrix, "order": order, "rows": 16, "block": 4, "seed": 3})
        for order in ("inner", "gustavson", "dense")
        for matrix in ("banded", "power-law", "circuit")
    ),
    ("sparse_product", {"rows": 9, "block": 1}),
    ("sparse_product", {"rows": 9, "block": 1, "order": "gustavson", "banks": 3}),
    ("sampled_product", {"rows": 16, "block": 4, "matrix": "circuit"}),
    ("sampled_product", {"rows": 16, "block": 4, "order": "dense", "seed": 2}),
    ("top_k_attention", {"context": 256, "kept": 3}),
    ("top_k_attention", {"context": 128, "kept": 4, "requests": 3, "seed": 5}),
    ("top_k_attention", {"context": 128, "cache": "dense"}),
    ("pagerank", {}),
    ("pagerank", {"graph": "power-law", "vertices": 20, "iterations": 2, "banks": 2, "seed": 1}),
    ("pagerank", {"edges": "dense"}),
    ("k_means", {}),
    ("k_means", {"points": 30, "clusters": 5, "banks": 4, "iterations": 3, "seed": 2}),
    ("k_means", {"update": "dense"}),
    ("hash_join", {}),
    ("hash_join", {"orders": 1, "items": 1, "keys": 2, "buckets": 2, "seed": 4}),
    ("hash_join", {"rows": "padded"}),
    ("tpch_q6", {"rows": 512}),
    ("tpch_q6", {"rows": 512, "columns": "scan", "seed": 1}),
    ("tpch_q6", {"rows": 512, "piece": 16, "late": 0}),
]
TINY = {"model": "tiny", "batch": 24}
EXPERTS: list[tuple[str, dict[str, Any]]] = [
    ("moe", {**TINY, **given})
    for given in (
        {"tile_n": 4},
        {"tile_n": 64},
        {"batch": 1},
        {"tiling": "dynamic", "tile_n": 1},
        {"regions": 2, "tile_n": 8},
        {"regions": 2, "tiling": "dynamic"},
        {"regions": 1, "tile_n": 32},
        {"tile_f": 16, "channel_depth": 64},
        {"channel_depth": 1},
        {"experts": 6, "top_k": 3, "hidden": 24, "inter": 40, "tile_f": 20, "tile_n": 4},
    )
]


@pytest.mark.parametrize(
    ("name", "parameters"), [*spread(CASES, 7), *spread(SPARSE, 5), *spread(EXPERTS, 3)], ids=str
)
def test_outputs_are_verified_and_cycles_equal_in_all_engines(
    name: str, parameters: dict[str, Any]
) -> None:
    functional = simulate(program(name, None, **parameters), mode="functional")
    assert (functional.status, functional.verified) == ("completed", True)
    assert name == "moe" or not functional.warnings
    for engine in ("compiled", "tasks"):
        timing = simulate(program(name, None, **parameters), mode="timing", engine=engine)
        assert timing.verified is None
        assert (timing.cycles, timing.units) == (functional.cycles, functional.units)
        assert timing.channels_counters == functional.channels_counters


ORDERED: dict[str, dict[str, Any]] = {
    "simplified_moe": {"tokens": 30},
    "moe": {**TINY, "regions": 2, "tiling": "dynamic"},
    "edit_distance": {"pairs": 5, "longest": 6, "lanes": 2},
    "breadth_first_search": {},
    "attention": {"strategy": "dynamic", "requests": 3, "regions": 2},
}


@pytest.mark.parametrize(("name", "order"), crossed([*ORDERED], SCHEDULES, 1))
def test_report_is_the_same_for_any_order_of_tasks(name: str, order: str | int) -> None:
    def wired() -> Program:
        return program(name, None, **ORDERED[name])

    with schedule(order):
        report = simulate(wired(), mode="functional")

    assert report.verified
    assert replace(simulate(wired(), mode="functional"), wall_seconds=report.wall_seconds) == report
