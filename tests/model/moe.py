"""The mixture-of-experts layer; ``workloads.md`` 3, 4, 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.model.compute import added, elementwise, fold, map1, map2, matmul, matmul_sum, retile
from tests.model.graph import Graph, Setting, Stream
from tests.model.memory import load, load_per_reference, random_load, store
from tests.model.routing import expert_addresses, merge, partition, reassemble, selectors
from tests.model.shape import flatten, repeat, reshape, reshape_outer, split_rows


@dataclass(frozen=True)
class Layer:
    hidden: int
    inter: int
    experts: int
    choice: Sequence[Sequence[int]]  # the experts of every token
    tile_n: int | None  # None for dynamic tiling
    tile_f: int
    regions: int


def moe(setting: Setting, layer: Layer) -> Graph:
    g = Graph(setting)
    count, top_k = len(layer.choice), len(layer.choice[0])
    tokens = flatten(g, 0, 1, load(g, (1, layer.hidden), (count, 1)))
    rows = partition(g, tokens, _chosen(g, layer), layer.experts, name="route")
    packed = [_pack(g, layer, each) for each in rows]
    computed = _experts(g, layer, packed)
    scales = load(g, (1, 1), (count, top_k), "load router")
    single = [
        ([expert], (slot == top_k - 1) * (1 + (token == count - 1)))
        for token, row in enumerate(layer.choice)
        for slot, expert in enumerate(row)
    ]
    scaling = partition(g, scales, selectors(g, single), layer.experts, name="route scales")
    weighted = [
        map2(g, f"weight {i}", elementwise(g, 1), *each)
        for i, each in enumerate(zip(scaling, computed, strict=True))
    ]
    terms = reassemble(g, weighted, _chosen(g, layer), "collect")
    store(g, reshape(g, 0, fold(g, "add up", added(g), [terms])))
    return g


def _chosen(g: Graph, layer: Layer) -> Stream:
    """Multi-hot selectors, [1, B]."""
    last = len(layer.choice) - 1
    return selectors(g, [(row, int(token == last)) for token, row in enumerate(layer.choice)])


def _pack(g: Graph, layer: Layer, rows: Stream) -> Stream:
    """Rows [D_i] packed into tiles [n_i]."""
    if layer.tile_n is None:
        chunks = flatten(g, 0, 1, reshape_outer(g, 1, layer.hidden, rows))
    else:
        chunks = flatten(g, 1, 2, reshape_outer(g, layer.tile_n, layer.hidden, rows))
    return fold(g, "pack", retile, [chunks])


def _experts(g: Graph, layer: Layer, packed: list[Stream]) -> list[Stream]:
    share = layer.experts // layer.regions
    tiles = layer.inter // layer.tile_f
    rows, readings, choices = packed, packed, []
    if share > 1:
        merged = [merge(g, packed[at : at + share]) for at in range(0, layer.experts, share)]
        rows = [data for data, _ in merged]
        choices = [choice for _, choice in merged]
        readings = [expert_addresses(g, tiles, choice) for choice in choices]

    def weights(tile: tuple[int, int], name: str) -> list[Stream]:
        if share > 1:
            loaded = [random_load(g, each, tile, name) for each in readings]
        else:
            loaded = [load_per_reference(g, each, tile, (tiles, 1), name) for each in readings]
        return [flatten(g, 0, 1, each) for each in loaded]

    inwards, outwards = (layer.hidden, layer.tile_f), (layer.tile_f, layer.hidden)
    repeated = [repeat(g, tiles, each, "repeat") for each in rows]
    ups = weights(inwards, "load up")
    gates = weights(inwards, "load gate")
    downs = weights(outwards, "load down")
    results = []
    for a, up, gate, down in zip(repeated, ups, gates, downs, strict=True):
        upped = map2(g, "up", matmul(g), a, up)
        active = map1(g, "silu", elementwise(g, 8), map2(g, "gate", matmul(g), a, gate))
        product = map2(g, "product", elementwise(g, 1), upped, active)
        results.append(fold(g, "down", matmul_sum(g), [product, down]))
    if share > 1:
        results = [
            one
            for result, choice in zip(results, choices, strict=True)
            for one in partition(g, result, choice, share, name="part")
        ]
    return [split_rows(g, each, "rows") for each in results]
