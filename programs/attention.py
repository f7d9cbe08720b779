"""Decode attention for one key-value head, in parallel regions (section 5.5; figures 14, 15, 21).

Requests are assigned to regions in one of three ways: coarse (blocks of 16 neighbours), interleaved
(in turn), or dynamic (to the first region that has read all keys of its previous request).

Run:      python -m fabric run programs/attention.py -p strategy=dynamic -p requests=16
Computes: output[r] = softmax(query[r] @ keys[r].T) @ values[r], over the cache of request r with
          the new token appended, and the caches with the new token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from layers.assignment import assigned
from layers.attention_region import Caches, Requests, attention_region
from layers.cache_lengths import draw_lengths, read_lengths
from layers.models import MOST
from numpy.typing import NDArray

from fabric import Feedback, Program, Stream, StreamType
from fabric.extend import Bounds
from operators import (
    INTEGER,
    Accum,
    EagerMerge,
    Flatten,
    LinearOffChipLoad,
    Metadata,
    Parallelize,
    Partition,
    RandomOffChipStore,
    SignalAllRead,
    Tensor,
)

Array = NDArray[np.float32]
Numbers = NDArray[np.int64]

BLOCK = 16  # neighbouring requests that go to one region, if coarse


def build(
    strategy: Literal["coarse", "interleaved", "dynamic"] = "dynamic",
    kv: Path | None = None,
    requests: Annotated[int | None, Bounds(1)] = None,
    regions: Annotated[int, Bounds(1, MOST)] = 4,
    tile_n: Annotated[int, Bounds(1, MOST)] = 32,
    flops_per_cycle: int = 2048,
    channel_depth: int = 1,
    seed: Annotated[int, Bounds(0)] = 0,
    heads: Annotated[int, Bounds(1, MOST)] = 8,
    head_dim: Annotated[int, Bounds(1, MOST)] = 64,
) -> Program:
    """Wire the attention of all regions.

    Args:
        strategy: how requests are assigned to regions.
        kv: an .npy file of cache lengths in tokens; random lengths if None.
        requests: the number of requests; if None, all of the file, or 64 without a file.
        regions: the number of regions that work at the same time.
        tile_n: rows of a cache tile.
        flops_per_cycle: FLOPs per cycle of each compute unit.
        channel_depth: elements that each channel holds.
        seed: for random lengths and all data.
        heads: query heads, which share the key-value head.
        head_dim: columns of a head.
    """
    if kv is None:
        lengths = draw_lengths(64 if requests is None else requests, seed)
    else:
        lengths = read_lengths(kv, requests)
    data = _Data(lengths, tile_n, heads, head_dim, seed)

    with Program(
        "attention", channel_depth=channel_depth, flops_per_cycle=flops_per_cycle
    ) as program:
        if strategy == "coarse":
            _coarse(data, regions, program)
        elif strategy == "interleaved":
            _interleaved(data, regions, program)
        else:
            _dynamic(data, regions, program)

    program.expect(output=data.output, keys=data.keys_after, values=data.values_after)
    return program


def _coarse(data: _Data, regions: int, program: Program) -> None:
    """Assign blocks of 16 requests. Every region loads its own inputs."""
    region_of = np.arange(data.count) // BLOCK % regions
    members = [np.flatnonzero(region_of == region) for region in np.unique(region_of)]
    queries, keys, values, *metadata = zip(*map(data.inputs, members), strict=True)
    # The HBM serves loads in the order in which they are wired: all inputs before all caches.
    shares = [
        *([Flatten(1, 2)(stream) for stream in part] for part in (queries, keys, values)),
        *([Flatten(0, 1)(stream) for stream in part] for part in metadata),
    ]  # per region [b, 1], ..., [b]
    for region, share in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*share), data)  # [b, n]
        program.bind(tiles.shape[-1], data.mean_tiles(members[region]))


def _interleaved(data: _Data, regions: int, program: Program) -> None:
    """Assign request r to region ``r mod regions``. All regions share the loaded inputs."""
    queries, keys, values, *metadata = data.inputs(np.arange(data.count))
    shares = [
        *(Parallelize(regions, rank=1)(Flatten(1, 2)(each)) for each in (queries, keys, values)),
        *(Parallelize(regions)(Flatten(0, 1)(each)) for each in metadata),
    ]  # per region [b, 1], ..., [b]
    for region, share in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*share), data)  # [b, n]
        program.bind(tiles.shape[-1], data.mean_tiles(np.arange(region, data.count, regions)))


def _dynamic(data: _Data, regions: int, program: Program) -> None:
    """Assign a request to the first region that has read all keys of its previous request."""
    count = data.count
    # Every region starts with one request. After each request it sends a token to get the next.
    tokens = [
        Feedback(StreamType((program.symbol(f"D_region[{region}]"),), INTEGER))
        for region in range(regions)
    ]
    _, free = EagerMerge()(tokens)  # [B], the region that became free
    region_of = assigned(free, count, regions)
    queries, keys, values, *metadata = data.inputs(np.arange(count))
    shares = [
        *(Partition(regions, rank=1)(each, region_of) for each in (queries, keys, values)),
        *(Partition(regions)(each, region_of) for each in metadata),
    ]  # per region [b, 1], ..., [b]
    tiles_of = []
    for region, share in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*share), data)  # [b, n]
        tokens[region].connect(Accum(SignalAllRead(), name=f"region_{region}_ask")(tiles))  # [b]
        tiles_of.append(tiles)
    # The run decides the requests and tiles of each region, but their totals are known.
    program.bind(sum(tiles.shape[0] for tiles in tiles_of), count)
    program.bind(sum(tiles.type.count for tiles in tiles_of), data.tiles)


def _region(region: int, requests: Requests, data: _Data) -> Stream:
    """Attend to the requests of a region and store the results. Return the key tiles, [b, n]."""
    tiles, result = attention_region(f"region_{region}", requests, data.caches)
    store = RandomOffChipStore(
        "output", data.stored, (data.heads, data.head_dim), name=f"region_{region}_store"
    )
    store(requests.numbers, result)
    return tiles


class _Data:
    """The inputs: lengths for both modes, and numbers for functional mode."""

    def __init__(self, lengths: Numbers, rows: int, heads: int, head_dim: int, seed: int) -> None:
        self.heads = heads
        self.head_dim = head_dim
        self._lengths = lengths
        self._rows = rows
        self._seed = seed
        self._tiles = (lengths + rows) // rows  # with room for the new token
        self._stride = int(self._tiles.max())
        self.count = len(lengths)
        slots = self.count * self._stride * rows
        self._queries = partial(self._normal, 0, self.count * heads)
        self._new_keys = partial(self._normal, 1, self.count)
        self._new_values = partial(self._normal, 2, self.count)
        self._keys = partial(self._normal, 3, slots)
        self._values = partial(self._normal, 4, slots)
        cache = (slots, self.head_dim)
        self.caches = Caches(
            keys=Tensor(cache, self._keys),
            values=Tensor(cache, self._values),
            rows=rows,
            stride=self._stride,
        )
        stored = (self.count * self.heads, self.head_dim)
        self.stored = Tensor(stored, lambda: np.zeros(stored, np.float32))

    def mean_tiles(self, members: Numbers) -> Fraction:
        return Fraction(int(self._tiles[members].sum()), max(len(members), 1))

    @property
    def tiles(self) -> int:
        return int(self._tiles.sum())

    def inputs(self, members: Numbers) -> tuple[Stream, ...]:
        """Return queries, keys, values, numbers, tiles and offsets of the requests ``members``.

        The first three are [1, b, 1], the last three are [1, b].
        """

        def load(rows: int, part: Callable[[], Array]) -> Stream:
            def rows_of_members() -> Array:
                by_request = part().reshape(self.count, rows, self.head_dim)
                return by_request[members].reshape(-1, self.head_dim)

            shape = (len(members) * rows, self.head_dim)
            return LinearOffChipLoad(Tensor(shape, rows_of_members), tile=(rows, self.head_dim))()

        metadata: Sequence[Numbers] = (
            members,
            self._tiles[members],
            self._lengths[members] % self._rows,
        )
        return (
            load(self.heads, self._queries),
            load(1, self._new_keys),
            load(1, self._new_values),
            *(Metadata(numbers)() for numbers in metadata),
        )

    def _normal(self, part: int, rows: int) -> Array:
        # The scale keeps products of two rows near 1, so that exp() does not overflow.
        random = np.random.default_rng((self._seed, 1, part))
        result = random.standard_normal((rows, self.head_dim), dtype=np.float32)
        result *= np.float32(self.head_dim**-0.25)
        return result

    def _after(self, cache: Array, new: Array) -> Array:
        cache[np.arange(self.count) * self._stride * self._rows + self._lengths] = new
        return cache

    def keys_after(self) -> Array:
        return self._after(self._keys(), self._new_keys())

    def values_after(self) -> Array:
        return self._after(self._values(), self._new_values())

    def output(self) -> NDArray[np.float64]:
        """Return the expected output, [requests * queries, d]."""
        queries = self._queries().reshape(self.count, self.heads, self.head_dim).astype(np.float64)
        room = self._stride * self._rows
        keys = self.keys_after().reshape(self.count, room, self.head_dim)
        values = self.values_after().reshape(self.count, room, self.head_dim)
        results = []
        for request, length in enumerate(self._lengths + 1):
            powers = np.exp(queries[request] @ keys[request, :length].T)
            results.append(powers @ values[request, :length] / powers.sum(axis=1, keepdims=True))
        return np.concatenate(results)
