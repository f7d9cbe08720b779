"""Attention over all heads: pairs of a head and a request are assigned to regions and collected.

B requests; H key-value heads with G query heads each, of d columns; P = H * B pairs, head by head;
b pairs of one region.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fabric import Feedback, Program, Stream, StreamType
from layers.assignment import assigned, stated
from layers.attention_region import Requests, attention_region
from layers.decoder_parts import Layer, Layout, Step
from layers.kept import kept, kept_numbers, selectors_of
from operators import (
    INTEGER,
    Accum,
    EagerMerge,
    FlatMap,
    Flatten,
    Metadata,
    Partition,
    Promote,
    Reassemble,
    Reshape,
    RetileCol,
    RetileRow,
    SignalAllRead,
    SplitRows,
    SplitTiles,
)


def attend(
    program: Program, step: Step, layer: Layer, layout: Layout, projected: Sequence[Stream]
) -> list[Stream]:
    """Attend to the caches of all pairs. Return [1] of B x (G * d) for each head.

    ``projected`` are queries, [1, H] of B x (G * d), and keys and values, [1, H] of B x d.
    """
    requests, heads = len(step.lengths), step.attention.key_heads
    pairs, regions = requests * heads, layout.attention_regions
    region_of = _regions(step, layout)
    tokens: list[Feedback] = []
    if region_of is None:
        # After each pair, a region sends a token to get the next.
        tokens = [
            Feedback(StreamType((program.symbol(f"D_{layer.name}region[{region}]"),), INTEGER))
            for region in range(regions)
        ]
        _, free = EagerMerge(name=f"{layer.name}free")(tokens)  # [P], the region that became free
        places = assigned(free, pairs, regions)  # [1, P]
        order = selectors_of(kept_numbers(places), regions)  # [1, P]
    else:
        places, order = stated(region_of, regions), stated(region_of, regions)  # [1, P]
    rows = [FlatMap(SplitRows())(each) for each in projected]  # [1, P] of 1 x (G * d), 1 x d
    shares = [Partition(regions)(each, places) for each in (*rows, *_metadata(step, layer))]
    results, tiles_of = [], []
    for region, share in enumerate(zip(*shares, strict=True)):
        name = f"{layer.name}region_{region}"
        # A block waits for its region. The buffers let the next blocks pass.
        own = [_all(each) for each in share] if layout.parallelisation == "coarse" else share
        tiles, result = attention_region(name, _requests(step, own), layer.caches)
        results.append(_all(result))  # [b] of G x d
        tiles_of.append(tiles)
        if region_of is None:
            tokens[region].connect(Accum(SignalAllRead(), name=f"{name}_ask")(tiles))  # [b]
        else:
            _bind(program, step, layer, tiles, region_of == region)
    if region_of is None:
        # The run decides the number of pairs of each region, but their sum is known.
        program.bind(sum(tiles.shape[0] for tiles in tiles_of), pairs)
        read = heads * int(_tiles(step, layer).sum())
        program.bind(sum(tiles.type.count for tiles in tiles_of), read)
    joined = Reassemble(name=f"{layer.name}in_order")(results, order)  # [1, P, 1] of G x d
    return _by_head(step, Flatten(0, 1)(joined))


def _regions(step: Step, layout: Layout) -> NDArray[np.int64] | None:
    """Return the region of each pair; None if pairs go to the first free region."""
    requests, heads, regions = len(step.lengths), step.attention.key_heads, layout.attention_regions
    match layout.parallelisation:
        case "coarse":  # equal blocks of neighbouring requests, the same for every head
            return np.tile(np.arange(requests) // -(-requests // regions), heads)
        case "interleaved":
            return np.arange(heads * requests) % regions
        case "dynamic":
            return None


def _tiles(step: Step, layer: Layer) -> NDArray[np.int64]:
    """Return the number of cache tiles of each request, with room for the new token."""
    rows = layer.caches.rows
    tiles: NDArray[np.int64] = (step.lengths + rows) // rows
    return tiles


def _metadata(step: Step, layer: Layer) -> list[Stream]:
    """Return numbers, tiles and offsets of all pairs, [1, P] each."""
    heads = step.attention.key_heads
    of_requests = _tiles(step, layer), step.lengths % layer.caches.rows
    numbers = np.arange(heads * len(step.lengths))
    return [Metadata(each)() for each in (numbers, *(np.tile(each, heads) for each in of_requests))]


def _bind(
    program: Program, step: Step, layer: Layer, tiles: Stream, members: NDArray[np.bool_]
) -> None:
    """Bind the pairs of a region, and the mean number of their cache tiles."""
    pairs, mean = tiles.shape
    count = int(members.sum())
    read = int(np.tile(_tiles(step, layer), step.attention.key_heads)[members].sum())
    program.bind(pairs, count)
    program.bind(mean, Fraction(read, max(count, 1)))


def _requests(step: Step, share: Sequence[Stream]) -> Requests:
    queries, keys, values, numbers, lengths, offsets = share
    heads = FlatMap(SplitTiles(1, step.attention.head_dim))(queries)  # [b, G] of 1 x d
    tiles = Accum(RetileRow())(heads)  # [b] of G x d
    tiles, keys, values = (Promote(0)(each) for each in (tiles, keys, values))  # [b, 1]
    return Requests(tiles, keys, values, numbers, lengths, offsets)


def _all(source: Stream) -> Stream:
    """Buffer all elements of [b] until the last one has arrived."""
    return Flatten(0, 1)(kept(Promote()(source))).assume(*source.shape)


def _by_head(step: Step, pairs: Stream) -> list[Stream]:
    """Return [1] of B x (G * d) for each head, from [1, P] of G x d."""
    size, heads = step.attention, step.attention.key_heads
    parts, _ = Reshape(size.queries)(FlatMap(SplitRows())(pairs))  # [1, P, G] of 1 x d
    rows, _ = Reshape(len(step.lengths))(Accum(RetileCol())(parts))  # [1, H, B] of 1 x (G * d)
    packed = Accum(RetileRow())(rows)  # [1, H] of B x (G * d)
    return [each.assume(1) for each in Partition(heads)(packed, stated(np.arange(heads), heads))]
