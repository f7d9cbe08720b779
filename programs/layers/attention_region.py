"""One region of decode attention, which serves its requests one after the other.

b requests of the region; n cache tiles of one request (ragged); N rows of a cache tile; d columns
of a head; h query heads that share a key-value head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabric import Dim, Stream
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


@dataclass(frozen=True)
class Caches:
    """The key-value caches in off-chip memory.

    Attributes:
        keys, values: [requests * stride * rows, d]. Every request has room for ``stride`` tiles.
        stride: tiles from the cache of a request to the cache of the next request.
        outputs: the names under which keys and values are stored.
    """

    keys: Tensor
    values: Tensor
    rows: int
    stride: int
    outputs: tuple[str, str] = ("keys", "values")


@dataclass(frozen=True)
class Requests:
    """The requests of one region.

    Attributes:
        queries: [b, 1] of h x d.
        keys, values: [b, 1] of 1 x d, for the new token.
        numbers: [b], the numbers of the requests.
        lengths: [b], tiles of the cache with the new token.
        offsets: [b], the rows of the last tile that are filled before the new token.
    """

    queries: Stream
    keys: Stream
    values: Stream
    numbers: Stream
    lengths: Stream
    offsets: Stream


def attention_region(name: str, given: Requests, caches: Caches) -> tuple[Stream, Stream]:
    """Compute ``softmax(q @ k.T) @ v`` for every request, without scaling and without a maximum.

    Returns:
        The loaded key tiles of all requests, [b, n] of N x d, and the results in on-chip memory,
        [b] of h x d.
    """
    loaded, keys = _cache(f"{name}_keys", given, given.keys, 0, caches)  # [b, n] of N x d
    _, values = _cache(f"{name}_values", given, given.values, 1, caches, loaded.shape)
    queries = Expand(name=f"{name}_queries")(given.queries, keys)  # [b, n] of h x d
    scores = Map(Matmul(transposed=True), name=f"{name}_scores")(queries, keys)  # [b, n] of h x N
    powers = Map(Exp(), name=f"{name}_exp")(scores)  # [b, n] of h x N
    weighted = Accum(MatmulSum(), name=f"{name}_weighted")(powers, values)  # [b] of h x d
    total = Accum(Sum(), name=f"{name}_sum")(powers)  # [b] of h x N
    divisor = Map(RowSum(), name=f"{name}_row_sum")(total)  # [b] of h x 1
    result = Map(Div(), name=f"{name}_div", to_memory=True)(weighted, divisor)  # [b] of h x d
    return loaded, result


def _cache(
    name: str,
    given: Requests,
    token: Stream,
    which: Literal[0, 1],
    caches: Caches,
    tiles: tuple[Dim, ...] | None = None,
) -> tuple[Stream, Stream]:
    """Read the cache of every request, and write its last tile back with the new token.

    Args:
        name: the prefix of the operators' names.
        given: the requests.
        token: [b, 1] of 1 x d.
        which: 0 for the cache of keys, 1 for the cache of values.
        caches: the caches of all requests.
        tiles: [b, n], the shape of the first cache and of this one; None for the first cache.

    Returns:
        The loaded tiles, and the tiles with the new token, both [b, n] of N x d.
    """
    cache, output = (caches.keys, caches.values)[which], caches.outputs[which]
    tile = (caches.rows, cache.shape[1])
    read = CacheReadAddresses(caches.stride, name=f"{name}_tiles")
    addresses = read(given.numbers, given.lengths)  # [b, n]
    if tiles is not None:
        addresses = addresses.assume(*tiles)
    loaded = RandomOffChipLoad(cache, tile, name=f"{name}_load")(addresses)  # [b, n] of N x d
    # [b, n]: 0 for the last tile, otherwise 1
    place = FilterLastTile()(given.lengths).assume(*addresses.shape)
    last, others = Partition(2, name=f"{name}_part")(loaded, place)  # [b], [rest] of N x d
    last = last.assume(*given.numbers.shape)
    others = others.assume(loaded.type.count - last.type.count)
    opened = Map(SetOffset(), name=f"{name}_offset")(last, given.offsets)  # [b] of N x d
    added = Map(RowAppend(), name=f"{name}_append")(opened, Flatten(0, 1)(token))  # [b] of N x d
    home = Map(CacheWriteAddress(caches.stride), name=f"{name}_home")(given.numbers, given.lengths)
    # This adds a slot in front of the store, so that the store does not stall the other reader.
    (written_back,) = Broadcast(1)(added)
    RandomOffChipStore(output, cache, tile, buffered=4, name=f"{name}_store")(home, written_back)
    joined = Reassemble(name=f"{name}_join")([added, others], place)  # [b, n, 1] of N x d
    return loaded, Flatten(0, 1)(joined)
