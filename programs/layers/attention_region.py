"""One region of decode attention: the requests it is given, one after the other.

b is the number of requests of the region, n the cache tiles of one request (ragged), N the rows
of a cache tile, d the head dimension, h the query heads that share a key-value head.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric import Stream
from operators import (
    Accum,
    Broadcast,
    CacheReadAddresses,
    CacheWriteAddress,
    Div,
    Exp,
    Expand,
    FilterLastTile,
    Flatten,
    Map,
    Matmul,
    MatmulSum,
    Partition,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    RowAppend,
    RowSum,
    SetOffset,
    Sum,
    Tensor,
)

__all__ = ["Caches", "Requests", "attention_region"]


@dataclass(frozen=True)
class Caches:
    """What is in off-chip memory.

    Attributes:
        keys, values: [requests * stride * rows, d]: every request has room for ``stride`` tiles.
        output: [requests * h, d].
        rows: of a cache tile.
        stride: tiles from one request's cache to the next one's.
        heads: h.
    """

    keys: Tensor
    values: Tensor
    output: Tensor
    rows: int
    stride: int
    heads: int


@dataclass(frozen=True)
class Requests:
    """The requests of one region.

    Attributes:
        queries: [b, 1] of h x d.
        keys, values: [b, 1] of 1 x d, of the new token.
        numbers: [b], which requests they are.
        lengths: [b], tiles of the cache with the new token.
        offsets: [b], rows of the last tile that are there before it.
    """

    queries: Stream
    keys: Stream
    values: Stream
    numbers: Stream
    lengths: Stream
    offsets: Stream


def attention_region(given: Requests, caches: Caches) -> Stream:
    """Compute ``softmax(q @ k.T) @ v`` for every request and store it; no scaling, no maximum.

    Returns:
        The key tiles of all requests as they are loaded, [b, n] of N x d.
    """
    # [b, n] of N x d
    loaded, keys = _updated_cache(given, given.keys, caches.keys, "keys", caches)
    _, values = _updated_cache(given, given.values, caches.values, "values", caches)
    queries = Expand()(given.queries, keys)  # [b, n] of h x d
    scores = Map(Exp())(Map(Matmul(transposed=True))(queries, keys))  # [b, n] of h x N
    weighted = Accum(MatmulSum())(scores, values)  # [b] of h x d
    total = Map(RowSum())(Accum(Sum())(scores))  # [b] of h x 1
    result = Map(Div(), to_memory=True)(weighted, total)  # [b] of h x d
    head_dim = caches.output.shape[1]
    RandomOffChipStore("output", caches.output, (caches.heads, head_dim))(given.numbers, result)
    return loaded


def _updated_cache(
    given: Requests, token: Stream, cache: Tensor, output: str, caches: Caches
) -> tuple[Stream, Stream]:
    """Read the cache of every request, add the new token to its last tile, and write that back.

    Returns:
        The tiles as they are loaded, and with the new token; both [b, n] of N x d.
    """
    tile = (caches.rows, cache.shape[1])
    addresses = CacheReadAddresses(caches.stride)(given.numbers, given.lengths)  # [b, n]
    loaded = RandomOffChipLoad(cache, tile)(addresses)  # [b, n] of N x d
    place = FilterLastTile()(given.lengths)  # [b, n]: 0 for the last tile, 1 for the others
    last, others = Partition(2)(loaded, place)  # [b], [the others] of N x d
    appended = Map(RowAppend())(Map(SetOffset())(last, given.offsets), Flatten(0, 1)(token))
    home = Map(CacheWriteAddress(caches.stride))(given.numbers, given.lengths)  # [b]
    # One slot more in front of the store, so that it does not hold up the tile's other reader.
    (written_back,) = Broadcast(1)(appended)
    RandomOffChipStore(output, cache, tile, buffered=4)(home, written_back)
    return loaded, Flatten(0, 1)(Reassemble()([appended, others], place))  # [b, n, 1] -> [b, n]
