"""Every operator with drawn parameters and drawn neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import operators as op
from fabric import Program, Stream, TileType
from fabric.extend import Operator
from fabric.graph.values.expression import Symbol
from tests.operators.driving import Choices
from tests.symbolic.bounded import Idle

_DTYPE = "float32"
_CYCLES = (1, 0, 2, 3, 9, 60)


class Surroundings:
    def __init__(self, choices: Choices, program: Program) -> None:
        self.choices = choices
        self.program = program

    def number(self, least: int = 1, count: int = 4) -> int:
        return least + self.choices.below(count)

    def cycles(self) -> int:
        return self.choices.pick(_CYCLES)

    def outer(self, dims: int) -> tuple[int, ...]:
        return tuple(self.choices.pick((2, 1, 3, 4, 2, 3, 0)) for _ in range(dims))

    def zeros(self, shape: tuple[int, ...]) -> Stream:
        made = op.Metadata(np.zeros(shape, np.int64))()
        return op.Flatten(len(shape) - 1, len(shape))(made)

    def numbers(self, dims: int, below: int = 4) -> Stream:
        shape = self.outer(dims)
        count = int(np.prod(shape))
        values = np.array([self.choices.below(below) for _ in range(count)], np.int64)
        return op.Flatten(dims - 1, dims)(op.Metadata(values.reshape(shape))())

    def selectors(self, shape: Sequence[Any], width: int, hits: int) -> tuple[Stream, list[int]]:
        chosen = [
            sorted({(self.choices.below(width) + each) % width for each in range(hits)})
            for _ in range(int(np.prod(shape)))
        ]
        chosen = [each if len(each) == hits else list(range(hits)) for each in chosen]
        made = op.Selectors(np.array(chosen, np.int64).reshape(*shape, hits), width)()
        counts = [sum(number in each for each in chosen) for number in range(width)]
        return op.Flatten(len(shape) - 1, len(shape))(made), counts

    def parted(
        self, tiles: Stream, rank: int, width: int, hits: int
    ) -> tuple[list[Stream], Stream]:
        shape = tiles.shape[: len(tiles.shape) - rank]
        selectors, counts = self.selectors(shape, width, hits)
        parts = op.Partition(width, rank, self.cycles())(tiles, selectors)
        for part, count in zip(parts, counts, strict=True):
            if self.choices.below(3) and isinstance(part.shape[0], Symbol):
                self.program.bind(part.shape[0], count)
        if self.choices.maybe():
            self.program.bind(sum(part.shape[0] for part in parts), sum(counts))
        return list(parts), selectors

    def tiles(self, dims: int | None = None, tile: tuple[int, int] | None = None) -> Stream:
        choices = self.choices
        dims = self.number(1, 3) if dims is None else dims
        rows, cols = tile or (choices.pick((1, 2, 9)), choices.pick((8, 1, 40)))
        shape = self.outer(dims)
        if 0 in shape or choices.maybe():
            # A view for each number; the view or the numbers may be empty.
            view = shape[-1:]
            whole = op.Tensor((rows * max(view[0], 1), cols), dtype=_DTYPE)
            load = op.LinearOffChipLoad(whole, (rows, cols), view, (1,))
            made = load(self.zeros(shape[:-1])) if dims > 1 else op.Flatten(0, 1)(load())
        else:
            down = int(np.prod(shape[:-1]))
            whole = op.Tensor((rows * down, cols * shape[-1]), dtype=_DTYPE)
            made = op.LinearOffChipLoad(whole, (rows, cols))()  # [1, down, across]
            made = op.Flatten(0, 2)(made) if dims == 1 else op.Flatten(1, 2)(made)
            for size in reversed(shape[1:-1]):
                made = op.Reshape(size, 1)(made)[0]
        return self.slowed(made, keeps=tile is not None)

    def slowed(self, tiles: Stream, *, keeps: bool) -> Stream:
        kind = self.choices.below(6)
        if kind == 1 and not keeps:
            return op.Map(Idle(), self.choices.maybe(), flops_per_cycle=1)(tiles)
        if kind == 2:
            return op.Map(op.Add(), self.choices.maybe(), flops_per_cycle=self.number())(
                tiles, tiles
            )
        if kind == 3:
            return op.Flatten(0, 1)(op.Repeat(self.number())(tiles))
        if kind == 4 and len(tiles.shape) == 1:
            merged, source = op.EagerMerge()(op.Parallelize(self.number(), 0, self.cycles())(tiles))
            self.end(source)
            return merged
        if kind == 5 and len(tiles.shape) == 1 and isinstance(tiles.shape[0], int):
            (some, others), _ = self.parted(tiles, 0, 2, 1)
            self.end(others)
            return some
        return tiles

    def slowed_alike(self, tiles: Stream) -> Stream:
        if self.choices.maybe():
            return tiles
        return op.Map(op.Add(), self.choices.maybe(), flops_per_cycle=self.number())(tiles, tiles)

    def end(self, stream: Stream) -> None:
        kind = self.choices.below(7)
        is_tile = isinstance(stream.value, TileType)
        if kind == 1 and is_tile:
            op.LinearOffChipStore(f"y{len(self.program.nodes)}")(stream)
        elif kind == 2:
            op.Consumer()(op.Repeat(self.choices.pick((2, 1, 30)))(stream))
        elif kind == 3 and is_tile:
            function = self.choices.pick((op.RowSum(), Idle()))
            slow = op.Map(function, flops_per_cycle=1)(stream)
            op.LinearOffChipStore(f"y{len(self.program.nodes)}")(slow)
        elif kind == 4:
            whole = op.Tensor((2, 16), dtype=_DTYPE)
            op.Consumer()(op.LinearOffChipLoad(whole, (1, 16))(stream))
        elif kind == 5 and len(stream.shape) == 1:
            for part in op.Parallelize(self.number(), 0, self.cycles())(stream):
                op.Consumer()(part)
        elif kind == 6 and is_tile:
            op.Consumer()(
                op.Streamify()(op.Bufferize()(stream)) if len(stream.shape) > 1 else stream
            )
        else:
            op.Consumer()(stream)

    def beside(self) -> None:
        for _ in range(self.choices.pick((0, 0, 1, 2))):
            tensor = op.Tensor((self.number(), 40), dtype=_DTYPE)
            others = op.LinearOffChipLoad(tensor, (1, 40))()
            if self.choices.maybe():
                op.LinearOffChipStore(f"y{len(self.program.nodes)}")(others)
            else:
                op.Consumer()(others)


Wired = Sequence[Stream]


def _accum(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2))
    rank = around.number(1, len(tiles.shape) - 1)
    function = around.choices.pick((op.Sum(), op.RetileRow(), op.RetileCol()))
    rate = around.choices.pick((1, None, 7))
    return [op.Accum(function, rank, around.choices.maybe(), flops_per_cycle=rate)(tiles)]


def _scan(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2))
    rank = around.number(1, len(tiles.shape) - 1)
    return [op.Scan(op.Sum(), rank, around.choices.maybe(), flops_per_cycle=around.number())(tiles)]


def _map(around: Surroundings) -> Wired:
    tiles = around.tiles()
    into, rate = around.choices.maybe(), around.choices.pick((1, None, 7))
    if around.choices.maybe():
        return [op.Map(op.RowSum(), into, flops_per_cycle=rate)(tiles)]
    return [op.Map(op.Add(), into, flops_per_cycle=rate)(tiles, around.slowed_alike(tiles))]


def _bufferize(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2))
    return [op.Bufferize(around.number(1, len(tiles.shape) - 1))(tiles)]


def _streamify(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2))
    buffers = op.Bufferize()(tiles)
    if around.choices.maybe():
        reference = op.Repeat(around.number())(op.Accum(op.Sum(), flops_per_cycle=1)(tiles))
        return [op.Streamify()(buffers, reference)]
    repeats = around.choices.pick(((), (2,), (1,), (3, 2)))
    size = tiles.shape[-1]
    if isinstance(size, int) and size and around.choices.maybe():
        offset = around.choices.below(size)
        view = around.choices.pick(((1,), (2, 1), (0,), (1, 3)))
        return [op.Streamify(repeats, view, (0,) * len(view), offset)(buffers)]
    return [op.Streamify(repeats)(buffers)]


def _expert_addresses(around: Surroundings) -> Wired:
    shape = around.outer(around.number(1, 2))
    return [op.ExpertAddresses(around.number())(around.selectors(shape, around.number(), 1)[0])]


def _cache_read(around: Surroundings) -> Wired:
    lengths = around.numbers(1)
    return [op.CacheReadAddresses(around.number())(lengths, lengths)]


def _filter(around: Surroundings) -> Wired:
    return [op.FilterLastTile()(around.numbers(around.number(1, 2)))]


def _consumer(around: Surroundings) -> Wired:
    op.Consumer()(around.tiles())
    return []


def _merge(around: Surroundings) -> Wired:
    streams = [around.tiles(1, (1, 8)) for _ in range(around.number(1, 3))]
    if around.choices.maybe():
        streams = [op.Repeat(2)(each) for each in streams]
        return op.EagerMerge(1)(streams)
    return op.EagerMerge()(streams)


def _expand(around: Surroundings) -> Wired:
    reference = around.tiles(around.number(2, 2))
    rank = around.number(1, len(reference.shape) - 1)
    short = (
        op.Accum(op.Sum(), rank, flops_per_cycle=1)(reference)
        if rank < len(reference.shape)
        else None
    )
    assert short is not None
    for _ in range(rank):
        short = op.Promote(0)(short)
    return [op.Expand(rank)(short, reference)]


def _flat_map(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2), (around.choices.pick((2, 4)), 8))
    if around.choices.maybe():
        tiles = op.Accum(op.RetileRow())(tiles)
    if not isinstance(tiles.value, TileType) or tiles.value.cols != 8:
        return [tiles]
    splits = (op.SplitRows(), op.SplitRows(valid_only=True), op.SplitTiles(1, 4))
    return [op.FlatMap(around.choices.pick(splits))(tiles)]


def _flatten(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2))
    inner = around.choices.below(len(tiles.shape) - 1)
    outer = around.number(inner + 1, len(tiles.shape) - inner - 1)
    return [op.Flatten(inner, outer)(tiles)]


def _linear_load(around: Surroundings) -> Wired:
    rows, cols = around.choices.pick((1, 3)), around.choices.pick((1, 16, 40))
    whole = op.Tensor((rows * around.number(), cols * around.number()), dtype=_DTYPE)
    shape = around.choices.pick((None, (1,), (2, 3), (0,), (3, 0)))
    strides = None if shape is None else (0,) * len(shape)
    load = op.LinearOffChipLoad(whole, (rows, cols), shape, strides)
    return [load(around.tiles()) if around.choices.below(2) else load()]


def _linear_store(around: Surroundings) -> Wired:
    op.LinearOffChipStore("drawn")(around.tiles())
    return []


def _metadata(around: Surroundings) -> Wired:
    return [around.numbers(around.number(1, 3))]


def _parallelize(around: Surroundings) -> Wired:
    tiles = around.tiles()
    return op.Parallelize(around.number(), len(tiles.shape) - 1, around.cycles())(tiles)


def _partition(around: Surroundings) -> Wired:
    tiles = around.tiles()
    rank = around.choices.below(len(tiles.shape))
    if not all(isinstance(size, int) for size in tiles.shape[: len(tiles.shape) - rank]):
        return [tiles]
    width = around.number()
    return around.parted(tiles, rank, width, around.choices.below(width + 1))[0]


def _promote(around: Surroundings) -> Wired:
    tiles = around.tiles()
    inside = around.choices.pick((None, *range(len(tiles.shape) + 1)))
    return [op.Promote(inside)(tiles)]


def _ragged(around: Surroundings) -> Wired:
    sizes = [around.choices.below(4) for _ in range(around.choices.below(4))]
    return [op.RaggedIntegers([[1] * size for size in sizes])()]


def _random_load(around: Surroundings) -> Wired:
    whole = op.Tensor((12, 40), dtype=_DTYPE)
    tile = around.choices.pick(((1, 40), (3, 10), (1, 20)))
    return [op.RandomOffChipLoad(whole, tile)(around.numbers(around.number(1, 2)))]


def _random_store(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(1, 2), (1, 8))
    if not all(isinstance(size, int) for size in tiles.shape):
        return [tiles]
    places = around.zeros(tiles.shape)
    whole = op.Tensor((4, 8), dtype=_DTYPE)
    store = op.RandomOffChipStore("drawn", whole, (1, 8), around.choices.pick((0, 1, 3)))
    return [store(places, tiles)]


def _reassemble(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(1, 2), (1, 8))
    if not isinstance(tiles.shape[0], int):
        return [tiles]
    width, rank = around.number(1, 3), len(tiles.shape) - 1
    parts, selectors = around.parted(tiles, rank, width, around.choices.below(width + 1))
    if around.choices.maybe():
        parts = [op.Map(op.RowSum(), flops_per_cycle=around.number())(part) for part in parts]
    return [op.Reassemble(rank, around.cycles())(parts, selectors)]


def _repeat(around: Surroundings) -> Wired:
    return [op.Repeat(around.choices.pick((2, 1, 3, 40)))(around.tiles())]


def _reshape(around: Surroundings) -> Wired:
    tiles, chunk = around.tiles(), around.number()
    outermost = len(tiles.shape) == 1 and around.choices.maybe()
    return op.Reshape(chunk, pad=0.0, outermost=outermost)(tiles)


def _selectors(around: Surroundings) -> Wired:
    width = around.number()
    shape = around.outer(around.number(1, 3))
    chosen = np.zeros((*shape, around.choices.below(2)), np.int64)
    return [op.Selectors(chosen, width)()]


def _zip(around: Surroundings) -> Wired:
    tiles = around.tiles()
    return [op.Zip()(tiles, around.slowed_alike(tiles))]


def _broadcast(around: Surroundings) -> Wired:
    return op.Broadcast(around.number())(around.tiles())


def _initial(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(1, 2))
    if not all(isinstance(size, int) and size for size in tiles.shape[1:]):
        return [tiles]
    return [op.Initial(0, around.number())(tiles)]


def _fibers(around: Surroundings, groups: int) -> Stream:
    lists = [
        sorted({around.choices.below(9) for _ in range(around.choices.below(5))})
        for _ in range(groups)
    ]
    if around.choices.maybe():
        return op.Metadata(np.arange(groups * 3).reshape(groups, 3))()
    return op.RaggedIntegers(lists)()


def _intersect(around: Surroundings) -> Wired:
    groups = around.number(0)
    return op.Intersect()(_fibers(around, groups), _fibers(around, groups))


def _union(around: Surroundings) -> Wired:
    groups = around.number(0)
    return op.Union()(_fibers(around, groups), _fibers(around, groups))


def _scatter(around: Surroundings) -> Wired:
    tiles = around.tiles(around.number(2, 2), (1, 8))
    if not all(isinstance(size, int) for size in tiles.shape):
        return [tiles]
    rank = around.number(1, len(tiles.shape) - 1)
    banks, width = around.number(), around.number()
    scatter = op.Scatter(around.number(), rank=rank, banks=banks, width=width)
    return [scatter(around.zeros(tiles.shape), tiles)]


CASES: dict[type[Operator], Callable[[Surroundings], Wired]] = {
    op.Accum: _accum,
    op.Broadcast: _broadcast,
    op.Bufferize: _bufferize,
    op.CacheReadAddresses: _cache_read,
    op.Consumer: _consumer,
    op.EagerMerge: _merge,
    op.Expand: _expand,
    op.ExpertAddresses: _expert_addresses,
    op.FilterLastTile: _filter,
    op.FlatMap: _flat_map,
    op.Flatten: _flatten,
    op.Initial: _initial,
    op.Intersect: _intersect,
    op.LinearOffChipLoad: _linear_load,
    op.LinearOffChipStore: _linear_store,
    op.Map: _map,
    op.Metadata: _metadata,
    op.Parallelize: _parallelize,
    op.Partition: _partition,
    op.Promote: _promote,
    op.RaggedIntegers: _ragged,
    op.RandomOffChipLoad: _random_load,
    op.RandomOffChipStore: _random_store,
    op.Reassemble: _reassemble,
    op.Repeat: _repeat,
    op.Reshape: _reshape,
    op.Scan: _scan,
    op.Scatter: _scatter,
    op.Selectors: _selectors,
    op.Streamify: _streamify,
    op.Union: _union,
    op.Zip: _zip,
}
