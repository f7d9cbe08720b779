"""Random small programs around single operators, wired twice: for the fabric and as models.

They reach rules that the three workloads do not.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

import numpy as np

import operators as op
from fabric import Feedback, Program, Stream, StreamType
from tests.model import buffers, routing, shape, sparse
from tests.model import graph as model
from tests.model.compute import added, elementwise, fold, map1, map2
from tests.model.memory import load, random_store

# A stream of the fabric, and the same stream of the model.
Pair: TypeAlias = tuple[Stream, model.Stream]


class Wiring:
    def __init__(self, random: Random, g: model.Graph) -> None:
        self.random = random
        self.g = g
        self.tile = (random.randint(1, 9), random.choice((1, 16, 50, 200)))
        self.outer, self.inner = random.randint(1, 6), random.randint(1, 7)

    def load(self) -> Pair:
        """A load of tiles, [1, outer, inner]."""
        (rows, cols), count = self.tile, self.outer * self.inner
        tensor = op.Tensor((rows * count, cols), lambda: np.zeros((rows * count, cols)))
        loading = op.LinearOffChipLoad(tensor, self.tile, (self.outer, self.inner), (self.inner, 1))
        return loading(), load(self.g, self.tile, (self.outer, self.inner))

    def numbers(self, most: int) -> Pair:
        """Integers, [1, outer]."""
        numbers = [self.random.randint(1, most) for _ in range(self.outer)]
        return op.Metadata(np.array(numbers))(), routing.metadata(self.g, numbers)

    def selectors(self, width: int) -> Pair:
        """Multi-hot selectors, [1, outer], with the same number of indices each."""
        hot = self.random.randint(1, width)
        chosen = [self.random.sample(range(width), hot) for _ in range(self.outer)]
        stops = [(row, int(i == self.outer - 1)) for i, row in enumerate(chosen)]
        return op.Selectors(np.array(chosen), width)(), routing.selectors(self.g, stops)

    def steered(self, chosen: list[list[int]], width: int) -> Pair:
        """Selectors, [len(chosen)]."""
        stops = [(row, int(i == len(chosen) - 1)) for i, row in enumerate(chosen)]
        return self.flat(
            0, 1, (op.Selectors(np.array(chosen), width)(), routing.selectors(self.g, stops))
        )

    def slowed(self, pair: Pair, most: int = 2, least: int = 0) -> Pair:
        a, b = pair
        for _ in range(self.random.randint(least, most)):
            to_memory = self.random.random() < 0.5
            a = op.Map(op.SiLU(), to_memory=to_memory)(a)
            b = map1(self.g, "silu", elementwise(self.g, 8), b, to_memory=to_memory)
        return a, b

    def sink(self, pair: Pair) -> None:
        op.Consumer()(pair[0])
        routing.consumer(self.g, pair[1])

    def flat(self, low: int, high: int, pair: Pair) -> Pair:
        return op.Flatten(low, high)(pair[0]), shape.flatten(self.g, low, high, pair[1])


def two_loads(w: Wiring) -> None:
    (a, b), (c, d) = w.slowed(w.load()), w.load()
    to_memory = w.random.random() < 0.5
    a = op.Map(op.Add(), to_memory=to_memory)(a, c)
    b = map2(w.g, "add", elementwise(w.g, 1), b, d, to_memory=to_memory)
    a, b = op.FlatMap(op.SplitRows())(a), shape.split_rows(w.g, b, "rows")
    w.sink((op.Accum(op.Sum())(a), fold(w.g, "sum", added(w.g), [b])))


def repeated(w: Wiring) -> None:
    """Repeat, whose stamps depend on its reader."""
    a, b = w.load() if w.random.random() < 0.5 else w.flat(0, 1, w.numbers(9))
    count = w.random.randint(1, 12)
    # Flatten takes every element as soon as it is visible.
    w.sink(w.flat(0, 1, (op.Repeat(count)(a), shape.repeat(w.g, count, b, "repeat"))))


def cache_tiles(w: Wiring) -> None:
    """Addresses of cache tiles, one per cycle, independent of the reader."""
    (a, b), (c, d) = w.numbers(9), w.numbers(12)
    pair = op.CacheReadAddresses(99)(a, c), routing.cache_addresses(w.g, b, d, "tiles")
    w.sink(w.flat(0, 1, pair))


def buffered(w: Wiring) -> None:
    a, b = w.slowed(w.load())
    c, d = op.Bufferize()(a), buffers.bufferize(w.g, b)
    if w.random.random() < 0.4:
        e, f = w.slowed(w.load())
        pair = op.Streamify()(c, e), buffers.streamify_per_reference(w.g, d, f)
    else:
        times = w.random.choice((None, 1, 2, 5))
        repeats = () if times is None else (times,)
        pair = op.Streamify(repeats)(c), buffers.streamify(w.g, times, d)
    w.sink(w.slowed(pair))


def lanes(w: Wiring) -> None:
    """Distribute sub-tensors or elements to lanes in turn, and merge them in order of arrival."""
    width, rank = w.random.randint(1, 4), w.random.randint(0, 1)
    a, b = w.flat(1, 2, w.load())
    if not rank:
        a, b = w.flat(0, 1, (a, b))
    switch = w.random.randint(0, 9)
    ours = op.Parallelize(width, rank=rank, switch_cycles=switch)(a)
    parts = list(zip(ours, routing.parallelize(w.g, b, width, rank, switch), strict=True))
    # EagerMerge assumes that an element was sent in the cycle before it became visible. A switch of
    # several cycles delays an element, so a Map comes between.
    parts = [w.slowed(each, 3, least=int(switch > 1)) for each in parts]
    data, choice = op.EagerMerge(rank=rank)([each for each, _ in parts])
    merged = routing.merge(w.g, [each for _, each in parts], "merge", rank)
    w.sink(w.slowed((data, merged[0]), 1))
    w.sink((choice, merged[1]))


def routed(w: Wiring) -> None:
    width = w.random.randint(1, 4)
    (a, b), (c, d) = w.slowed(w.load(), 1), w.selectors(width)
    split, join = w.random.randint(0, 9), w.random.randint(0, 9)
    ours = op.Partition(width, rank=1, switch_cycles=split)(a, c)
    parts = zip(ours, routing.partition(w.g, b, d, width, 1, split), strict=True)
    lanes = [w.slowed(each, 3) for each in parts]
    joined = op.Reassemble(rank=1, switch_cycles=join)([each for each, _ in lanes], c)
    again = routing.reassemble(w.g, [each for _, each in lanes], d, "join", 1, join)
    w.sink(w.slowed((joined, again), 1))


def padded(w: Wiring) -> None:
    """Reshape with padding."""
    a, b = w.slowed(w.load())
    chunk = w.random.randint(1, 5)
    pair = op.Reshape(chunk, pad=0.0)(a)[0], shape.reshape_padded(w.g, chunk, w.tile, b)
    w.sink(w.slowed(pair))


def expanded(w: Wiring) -> None:
    inner, w.inner = w.inner, 1
    # The slowed reader is wired now, so that the HBM serves this load first.
    a, b = w.slowed(w.load(), least=1)
    w.inner = inner
    c, d = w.slowed(w.load(), 1)
    w.sink(w.slowed((op.Expand()(a, c), shape.expand(w.g, b, d, "expand"))))


def stored(w: Wiring) -> None:
    (a, b), (c, d) = w.slowed(w.load(), least=1), w.numbers(1)
    rows, cols = w.tile
    to_memory = w.random.random() < 0.5
    size = rows * cols * w.g.setting.element_bytes
    paid = -(-size // w.g.setting.on_chip) if to_memory else 0
    a, b = op.Accum(op.Sum(), to_memory=to_memory)(a), fold(w.g, "sum", added(w.g), [b], paid)
    tensor = op.Tensor((rows * 2, cols), lambda: np.zeros((rows * 2, cols)))
    acks = op.RandomOffChipStore("y", tensor, w.tile)(c, a)
    w.sink((acks, random_store(w.g, d, b, "store")))


def regrouped(w: Wiring) -> None:
    chunk = w.random.randint(1, 3)
    w.outer *= chunk
    a, b = w.slowed(w.load())
    a, b = op.Reshape(chunk, dimension=1)(a)[0], shape.reshape(w.g, 1, b, chunk)
    rank = w.random.randint(1, 2)
    a, b = op.Accum(op.Sum(), rank=rank)(a), fold(w.g, "sum", added(w.g), [b], rank=rank)
    w.sink(w.slowed((a, b)))


def looped(w: Wiring) -> None:
    """Sums of all tiles so far, in a loop that begins with zeros."""
    w.outer += 1
    count = w.outer * w.inner
    ahead = w.random.randint(1, count - 1)
    (a, b), state = w.slowed(w.flat(0, 2, w.load()), 1), model.Stream()
    loop = Feedback(StreamType((count - ahead,), a.value))
    zero = model.Tile(*w.tile, w.g.setting.element_bytes, mu=False, valid=w.tile[0])
    sums = (
        op.Map(op.Add())(a, op.Initial(0, ahead)(loop)),
        map2(w.g, "add", elementwise(w.g, 1), b, shape.initial(w.g, zero, ahead, state)),
    )
    # The last sums leave the loop, which ends with its selectors.
    choice = [[0]] * (count - ahead) + [[1]] * ahead
    (c, d), (e, f) = w.steered(choice, 2), w.steered(choice[: count - ahead], 1)
    kept, last = zip(
        op.Partition(2)(sums[0], c), routing.partition(w.g, sums[1], d, 2, 0, 1), strict=True
    )
    w.sink(last)
    again = op.Reassemble()([kept[0]], e), routing.reassemble(w.g, [kept[1]], f, "again")
    going, round_ = w.slowed(w.flat(0, 1, again), 1)
    loop.connect(going)
    w.g.feed(round_, state)


def joined(w: Wiring) -> None:
    """Sorted streams of coordinates, side by side; each group ends with a common coordinate."""
    groups = [
        [[*sorted(w.random.sample(range(9), w.random.randint(0, 9))), 9] for _ in range(2)]
        for _ in range(w.outer)
    ]
    left, right = ([pair[side] for pair in groups] for side in (0, 1))
    keeps_all = w.random.random() < 0.5
    ours = (op.Union() if keeps_all else op.Intersect())(
        op.RaggedIntegers(left)(), op.RaggedIntegers(right)()
    )
    b, d = sparse.lists(w.g, left), sparse.lists(w.g, right)
    for pair in zip(ours, sparse.join(w.g, b, d, keeps_all=keeps_all), strict=True):
        count = w.random.randint(1, 3)
        w.sink(
            w.flat(0, 1, (op.Repeat(count)(pair[0]), shape.repeat(w.g, count, pair[1], "repeat")))
        )


def scattered(w: Wiring) -> None:
    (a, b), (c, d) = w.slowed(w.load(), least=1), w.numbers(5)
    rows, cols = w.tile
    to_memory = w.random.random() < 0.5
    size = rows * cols * w.g.setting.element_bytes
    paid = -(-size // w.g.setting.on_chip) if to_memory else 0
    a, b = op.Accum(op.Sum(), to_memory=to_memory)(a), fold(w.g, "sum", added(w.g), [b], paid)
    word = model.Tile(rows, cols, w.g.setting.element_bytes, mu=False, valid=rows)
    banks, width = w.random.randint(1, 4), w.random.randint(1, 4)
    ours = op.Scatter(6, banks=banks, width=width)(c, a)
    w.sink(w.slowed((ours, sparse.scatter(w.g, d, b, 6, banks, width, word))))


KERNELS: dict[str, Callable[[Wiring], None]] = {
    each.__name__: each
    for each in (
        two_loads,
        repeated,
        cache_tiles,
        buffered,
        lanes,
        routed,
        padded,
        expanded,
        stored,
        regrouped,
        looped,
        joined,
        scattered,
    )
}


def draw_kernel(name: str, random: Random, setting: model.Setting) -> tuple[Program, model.Graph]:
    g = model.Graph(setting)
    with Program(name) as program:
        KERNELS[name](Wiring(random, g))
    return program, g
