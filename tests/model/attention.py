"""Decode attention; ``workloads.md`` 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.model import routing
from tests.model.compute import added, elementwise, fold, map1, map2, matmul, matmul_sum, row_sum
from tests.model.graph import Graph, Setting, Stream, Tile
from tests.model.memory import load, random_load, random_store
from tests.model.shape import expand, flatten

DIM, BLOCK = 64, 16
HEIGHTS = (8, 1, 1)  # rows of the queries, the new key and the new value of a request


def attention(
    setting: Setting, strategy: str, lengths: Sequence[int], regions: int, rows: int
) -> Graph:
    g = Graph(setting)
    everything = list(range(len(lengths)))
    if strategy == "coarse":
        blocks = [
            [each for each in everything if each // BLOCK % regions == region]
            for region in range(regions)
        ]
        blocks = [block for block in blocks if block]
        # A load is added to the graph with its first reader: queries of all regions, then keys, ...
        loads = [[load(g, (high, DIM), (len(block), 1)) for block in blocks] for high in HEIGHTS]
        for region, block in enumerate(blocks):
            streams = [flatten(g, 1, 2, part[region]) for part in loads]
            streams += [flatten(g, 0, 1, part) for part in _metadata(g, lengths, rows, block)]
            _region(g, streams, rows)
    elif strategy == "interleaved":
        whole = _inputs(g, lengths, rows, everything)
        shares = [routing.parallelize(g, flatten(g, 1, 2, each), regions, 1) for each in whole[:3]]
        shares += [routing.parallelize(g, flatten(g, 0, 1, each), regions) for each in whole[3:]]
        for region in range(regions):
            _region(g, [share[region] for share in shares], rows)
    else:
        _dynamic(g, lengths, rows, regions)
    return g


def _dynamic(g: Graph, lengths: Sequence[int], rows: int, regions: int) -> None:
    count = len(lengths)
    started = min(regions, count)
    tokens = [Stream() for _ in range(regions)]
    _, free = routing.merge(g, tokens)
    spare = _choose(g, [1] * (count - started) + [0] * started)
    unused, asking = routing.partition(g, free, flatten(g, 0, 1, spare), 2)
    routing.consumer(g, unused)
    first = flatten(g, 0, 1, _choose(g, range(started)))
    order = _choose(g, [0] * started + [1] * (count - started))
    kept = flatten(g, 0, 1, routing.reassemble(g, [first, asking], order, "kept"))
    whole = _inputs(g, lengths, rows, range(count))
    shares = [routing.partition(g, each, kept, regions, 1) for each in whole[:3]]
    shares += [routing.partition(g, each, kept, regions) for each in whole[3:]]
    for region in range(regions):
        loaded = _region(g, [share[region] for share in shares], rows)
        g.feed(fold(g, "ask", lambda _accumulator, _tile: (1, 0), [loaded]), tokens[region])


def _choose(g: Graph, numbers: Sequence[int]) -> Stream:
    """[1, n] of one-hot."""
    return routing.selectors(
        g, [([one], int(i == len(numbers) - 1)) for i, one in enumerate(numbers)]
    )


def _inputs(g: Graph, lengths: Sequence[int], rows: int, members: Sequence[int]) -> list[Stream]:
    """Queries, keys, values: [1, b, 1]; numbers, tiles, offsets: [1, b]."""
    loads = [load(g, (high, DIM), (len(members), 1)) for high in HEIGHTS]
    return [*loads, *_metadata(g, lengths, rows, members)]


def _metadata(g: Graph, lengths: Sequence[int], rows: int, members: Sequence[int]) -> list[Stream]:
    """Numbers, tiles and offsets of requests, [1, b]."""
    return [
        routing.metadata(g, members),
        routing.metadata(g, [-(-(lengths[each] + 1) // rows) for each in members]),
        routing.metadata(g, [lengths[each] % rows for each in members]),
    ]


def _region(g: Graph, streams: list[Stream], rows: int) -> Stream:
    queries, new_key, new_value, numbers, lengths, offsets = streams
    loaded, keys = _cache(g, new_key, numbers, lengths, offsets, rows)
    _, values = _cache(g, new_value, numbers, lengths, offsets, rows)
    scores = map2(
        g, "scores", matmul(g, transposed=True), expand(g, queries, keys, "queries"), keys
    )
    powers = map1(g, "exp", elementwise(g, 4), scores)
    weighted = fold(g, "weighted", matmul_sum(g), [powers, values])
    total = map1(g, "row sum", row_sum(g), fold(g, "sum", added(g), [powers]))
    result = map2(g, "div", elementwise(g, 1), weighted, total, to_memory=True)
    random_store(g, numbers, result, "store output")
    return loaded


def _cache(
    g: Graph, token: Stream, numbers: Stream, lengths: Stream, offsets: Stream, rows: int
) -> tuple[Stream, Stream]:
    def fixed(value: Any, _other: Any) -> tuple[int, Any]:
        return 1, value

    def appended(value: Tile, row: Tile) -> tuple[int, Tile]:
        assert value.cols == row.cols
        return 1, value

    loaded = random_load(
        g, routing.cache_addresses(g, numbers, lengths, "read"), (rows, DIM), "load"
    )
    place = routing.filter_last(g, lengths)
    last, others = routing.partition(g, loaded, place, 2)
    opened = map2(g, "offset", fixed, last, offsets)
    joined = map2(g, "append", appended, opened, flatten(g, 0, 1, token))
    home = map2(g, "home", fixed, numbers, lengths)
    random_store(g, home, g.hop(joined), "store")
    return loaded, flatten(g, 0, 1, routing.reassemble(g, [joined, others], place, "join"))
