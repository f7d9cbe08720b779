"""Decode attention for one key-value head, in parallel regions (section 5.5; figures 14, 15, 21).

Requests go to regions in one of three ways: coarse (blocks of 16), interleaved (in turn), and
dynamic (to the first region that has read all keys of its previous request).

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

BLOCK = 16  # neighbouring requests of one region, coarse


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
        kv: an .npy file of cache lengths in tokens; drawn if None.
        requests: the number of requests from the file, all if None; 64 drawn ones without a file.
        regions: how many work at the same time.
        tile_n: rows of a cache tile.
        flops_per_cycle: of every compute unit.
        channel_depth: of every channel.
        seed: of the drawn lengths and of all data.
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
    """Blocks of 16 requests; every region reads its own inputs."""
    region_of = np.arange(data.count) // BLOCK % regions
    members = [np.flatnonzero(region_of == region) for region in np.unique(region_of)]
    inputs = [data.inputs(each) for each in members]
    queries, keys, values, *metadata = zip(*inputs, strict=True)
    shares = [
        *([Flatten(1, 2)(each) for each in part] for part in (queries, keys, values)),
        *([Flatten(0, 1)(each) for each in part] for part in metadata),
    ]  # per region [b, 1], ..., [b]
    for region, given in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*given), data)  # [b, n]
        program.bind(tiles.shape[-1], data.mean_tiles(members[region]))


def _interleaved(data: _Data, regions: int, program: Program) -> None:
    """Request r goes to region ``r mod regions``; all regions share the inputs."""
    queries, keys, values, *metadata = data.inputs(np.arange(data.count))
    shares = [
        *(Parallelize(regions, rank=1)(Flatten(1, 2)(each)) for each in (queries, keys, values)),
        *(Parallelize(regions)(Flatten(0, 1)(each)) for each in metadata),
    ]  # per region [b, 1], ..., [b]
    for region, given in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*given), data)  # [b, n]
        program.bind(tiles.shape[-1], data.mean_tiles(np.arange(region, data.count, regions)))


def _dynamic(data: _Data, regions: int, program: Program) -> None:
    """A request goes to the first region that has read all keys of its previous request."""
    count = data.count
    # Every region starts with one request and asks for the next with one token a request.
    tokens = [
        Feedback(StreamType((program.symbol(f"D_region[{region}]"),), INTEGER))
        for region in range(regions)
    ]
    _, free = EagerMerge()(tokens)  # [B], which region became free
    kept = assigned(free, count, regions)
    queries, keys, values, *metadata = data.inputs(np.arange(count))
    shares = [
        *(Partition(regions, rank=1)(each, kept) for each in (queries, keys, values)),
        *(Partition(regions)(each, kept) for each in metadata),
    ]  # per region [b, 1], ..., [b]
    shared = []
    for region, given in enumerate(zip(*shares, strict=True)):
        tiles = _region(region, Requests(*given), data)  # [b, n]
        tokens[region].connect(Accum(SignalAllRead(), name=f"region_{region}_ask")(tiles))  # [b]
        shared.append(tiles)
    # The share of each region is unknown, only their sum.
    program.bind(sum(tiles.shape[0] for tiles in shared), count)
    program.bind(sum(tiles.type.count for tiles in shared), data.tiles)


def _region(region: int, given: Requests, data: _Data) -> Stream:
    """Attend to the requests of a region and store the results; return its key tiles, [b, n]."""
    tiles, result = attention_region(f"region_{region}", given, data.caches)
    store = RandomOffChipStore(
        "output", data.stored, (data.heads, data.head_dim), name=f"region_{region}_store"
    )
    store(given.numbers, result)
    return tiles


class _Data:
    """The inputs: lengths, which are real in both modes, and numbers for functional mode."""

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

        The first three are [1, b, 1], the last three [1, b].
        """

        def load(rows: int, part: Callable[[], Array]) -> Stream:
            def chosen() -> Array:
                return (
                    part()
                    .reshape(self.count, rows, self.head_dim)[members]
                    .reshape(-1, self.head_dim)
                )

            return LinearOffChipLoad(
                Tensor((len(members) * rows, self.head_dim), chosen), tile=(rows, self.head_dim)
            )()

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
        # A product of two rows is of order 1, so that exp() stays in range.
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
