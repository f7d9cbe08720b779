from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.explore.serving.measured_costs import LayerTables, TableDescription
from fabric.explore.serving.server import Batch
from fabric.messages.errors import ConfigurationError
from tests.serving.validation import TABLES


def batch(prefills: list[tuple[int, int]], decodes: list[int]) -> Batch:
    made = Batch()
    made.prefills, made.decodes = prefills, decodes
    made.prefill_tokens = sum(tokens for tokens, _ in prefills)
    return made


def written(folder: Path) -> TableDescription:
    attention = ["prefill_chunk,kv_prefill,n_decode,kv_decode,time_us"]
    attention += [
        f"{chunk},{before},{decodes},{cached},{chunk * (1 + before) + decodes * cached}"
        for chunk in (0, 10)
        for before in (0, 10)
        for decodes in (0, 10)
        for cached in (0, 100)
    ]
    dense = ["layer,tokens,time_us"]
    dense += [f"{name},{n},{n * k}" for name, k in (("a", 1), ("b", 2)) for n in (0, 64)]
    moe = ["tokens,activated_experts,time_us"]
    moe += [f"{n},{active},{n + 100 * active}" for n in (0, 64) for active in (0, 8)]
    sequences = ["layer,sequences,time_us", "head,0,0", "head,64,640"]
    for name, lines in (
        ("attention", attention),
        ("dense", dense),
        ("moe", moe),
        ("per_sequence", sequences),
    ):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return TableDescription(
        attention=folder / "attention.csv",
        dense=folder / "dense.csv",
        layers=3,
        in_each_layer={"a": 2},
        in_each_step={"b": 1},
    )


def test_step_cost_of_ranks_adds_the_exchange(tmp_path: Path) -> None:
    described = replace(
        written(tmp_path),
        moe=tmp_path / "moe.csv",
        experts=8,
        experts_of_a_token=2,
        exchange_bytes_per_token=1000.0,
        link_bytes_per_second=1e9,
        link_latency_seconds=5e-6,
    )
    cost = LayerTables(described)
    active = 4 * (1 - (6 / 8) ** 5)
    link = 2 * (5 + 4)
    layer = max(2 * 4 + 4 * 50, 2 * 1) + (2.5 + 100 * active) + link
    found = cost.cost([batch([], [50] * 4), batch([], [])])
    assert found.seconds == pytest.approx(1e-6 * (3 * layer + 2 * 4))


def test_step_cost_is_padded_to_graph_sizes(tmp_path: Path) -> None:
    cost = LayerTables(replace(written(tmp_path), graph_tokens=(4, 8)))
    steps = [batch([], [10] * 3), batch([], [10] * 5)]
    padded = 3 * (2 * 8 + 5 * 10) + 2 * 8
    assert cost.cost(steps).seconds == pytest.approx(1e-6 * padded)
    for tokens in (4, 8):
        exact = cost.cost([batch([], [10] * tokens)]).seconds
        assert exact == pytest.approx(1e-6 * (3 * (2 * tokens + tokens * 10) + 2 * tokens))
    larger = batch([], [10] * 9)
    assert cost.cost([larger]).seconds == pytest.approx(1e-6 * (3 * (2 * 9 + 90) + 2 * 9))


def test_step_beyond_a_table_is_refused_or_counted(tmp_path: Path) -> None:
    described = written(tmp_path)
    large = batch([], [10] * 11)
    with pytest.raises(ConfigurationError, match=r"does not cover .*n_decode=11"):
        LayerTables(described).cost([large])
    cost = LayerTables(replace(described, outside="edge"))
    cost.cost([large])
    assert cost.taken_outside() == 1
    assert cost.taken_outside() == 0


def test_unknown_layer_is_refused(tmp_path: Path) -> None:
    described = replace(written(tmp_path), in_each_layer={"c": 1})
    with pytest.raises(ConfigurationError, match="has no layer c: expected the layers of in_each"):
        LayerTables(described)


def test_published_tables_add_up() -> None:
    alone = replace(TABLES, graph_tokens=(), moe=None, per_sequence=None, in_each_step={})
    layer = 2 * 2.54933 + 16.0957 + 3.232 + 2.98733 + 14.5703
    attention = 230.3
    found = LayerTables(alone).cost([batch([], [1024] * 128)])
    assert found.seconds == pytest.approx(48e-6 * (layer + attention), rel=1e-3)
