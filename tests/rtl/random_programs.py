"""Random programs of operators that have hardware: routing, retiling, merges, dynamic tiles."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from fabric import Feedback, Hop, Initial, Program, Stream, TileType
from operators import (
    Accum,
    Add,
    Bufferize,
    CacheReadAddresses,
    Consumer,
    EagerMerge,
    Exp,
    Expand,
    FlatMap,
    Flatten,
    Intersect,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    MatmulSum,
    Metadata,
    Mul,
    Parallelize,
    Partition,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    Reassemble,
    Repeat,
    Reshape,
    RetileRow,
    Scan,
    Selectors,
    SiLU,
    SplitRows,
    Streamify,
    Sum,
    Tensor,
    Zip,
)
from operators.pieces import in_pieces

# Rows and columns of a piece.
_PIECE = 2


def draw(random: Random) -> Program:
    with Program(f"random-{random.randrange(10**6)}", mode="timing") as program:
        stream = _source(random)
        for _ in range(random.randint(1, 5)):
            stream = random.choice(
                (
                    _reshaped,
                    _repeated,
                    _computed,
                    _routed,
                    _dealt,
                    _retiled,
                    _guided,
                    _promoted,
                    _looped,
                )
            )(random, stream)
        Consumer()(stream)
    return program


def draw_in_pieces(random: Random) -> Program:
    rows, inner, cols, last = (_PIECE * random.randint(1, 4) for _ in range(4))
    down, along, across = (random.randint(1, 3) for _ in range(3))
    with Program(f"pieces-{random.randrange(10**6)}", mode="timing") as program:
        left = LinearOffChipLoad(
            Tensor((down * rows, along * inner)),
            (rows, inner),
            shape=(down, across, along),
            strides=(along, 0, 1),
        )()

        def product() -> Stream:
            right = LinearOffChipLoad(
                Tensor((along * inner, across * cols)),
                (inner, cols),
                shape=(down, across, along),
                strides=(0, 1, across),
            )()
            return Accum(MatmulSum())(left, right)

        result = Map(SiLU())(product())
        if random.random() < 0.5:
            result = Map(Mul())(result, product())
        if random.random() < 0.5:
            others = LinearOffChipLoad(
                Tensor((across * cols, last)),
                (cols, last),
                shape=(down, 1, across),
                strides=(0, 1, 1),
            )()
            result = Accum(MatmulSum())(Reshape(chunk=1, dimension=1)(result)[0], others)
        LinearOffChipStore("y")(result)
    return in_pieces(program, _PIECE, _PIECE)


def drawn_channels(random: Random, keys: list[str]) -> dict[str, Any]:
    return {
        "depths": {key: random.randint(1, 4) for key in keys if not key.endswith("_store.1")},
        "hops": {key: Hop(random.randint(1, 3), random.randint(1, 3)) for key in keys},
    }


def _source(random: Random) -> Stream:
    rows, cols = random.choice((1, 2, 4)), random.choice((16, 48))
    if random.random() < 0.15:
        places = _numbers(random)
        tiles = RandomOffChipLoad(np.zeros((8 * rows, cols)), tile=(rows, cols))(places)
        return Flatten(0, len(places.shape) - 1)(tiles)
    if random.random() < 0.3:
        lists = [
            [random.randrange(4) for _ in range(random.randint(0, 4))]
            for _ in range(random.randint(1, 4))
        ]
        places = RaggedIntegers([*lists, [1]])()
        tiles = RandomOffChipLoad(np.zeros((4 * rows, cols)), tile=(rows, cols))(places)
        return Flatten(0, 2)(tiles)
    tensor = np.zeros((random.randint(1, 12) * rows, cols))
    loaded = LinearOffChipLoad(tensor, tile=(rows, cols))()
    if random.random() < 0.2:
        # Read several times, or once for each of some numbers.
        buffers = Bufferize(random.randint(1, 2))(loaded)
        if random.random() < 0.5:
            return Flatten(0, 3)(Streamify(repeats=(random.randint(1, 3),))(buffers))
        outer = [dim for dim in buffers.shape[1:] if isinstance(dim, int)]
        times = Metadata(np.zeros((*outer, random.randint(1, 3)), int))()
        return Flatten(0, 3)(Streamify()(buffers, times))
    return Flatten(0, 2)(loaded)


def _numbers(random: Random) -> Stream:
    groups = random.randint(1, 4)
    if random.random() < 0.5:
        requests = RaggedIntegers(
            [random.sample(range(4), random.randint(1, 3)) for _ in "x" * groups]
        )
        numbers = requests()
        lengths = RandomOffChipLoad(np.array([[1], [0], [2], [1]]), tile=(1, 1))(numbers)
        return CacheReadAddresses(2)(numbers, lengths)
    left, right = (
        [sorted(random.sample(range(8), random.randint(0, 5))) for _ in range(groups)]
        for _ in range(2)
    )
    first, second = RaggedIntegers(left)(), RaggedIntegers(right)()
    pairs = Zip()(first, RaggedIntegers(left)().assume(*first.shape))
    same, of_left, of_right = Intersect()(pairs, second)
    Consumer()(of_right)
    return random.choice((same, of_left))


def _reshaped(random: Random, stream: Stream) -> Stream:
    chunks, _ = Reshape(chunk=random.randint(1, 4), pad=0.0)(stream)
    if random.random() < 0.5:
        return Flatten(0, 1)(chunks)
    return Accum(Sum(), to_memory=random.random() < 0.5, flops_per_cycle=64)(chunks)


def _repeated(random: Random, stream: Stream) -> Stream:
    return Flatten(0, 1)(Repeat(random.randint(1, 4))(stream))


def _computed(random: Random, stream: Stream) -> Stream:
    to_memory, rate = random.random() < 0.5, random.choice((16, 100, 4096))
    if random.random() < 0.2:
        chunks, _ = Reshape(chunk=random.randint(1, 4), pad=0.0)(stream)
        return Flatten(0, 1)(Scan(Sum(), to_memory=to_memory, flops_per_cycle=rate)(chunks))
    result = Map(Exp(), to_memory=to_memory, flops_per_cycle=rate)(stream)
    if random.random() < 0.5:
        return result
    return Map(Mul(), flops_per_cycle=rate)(result, stream)


def _routed(random: Random, stream: Stream) -> Stream:
    consumers, size = random.randint(2, 3), stream.shape[0]
    if not isinstance(size, int):
        return stream
    hits = random.randint(1, 2)
    choice = np.array([random.sample(range(consumers), hits) for _ in range(size)])
    route = Flatten(0, 1)(Selectors(choice, width=consumers)())
    parts = Partition(consumers, switch_cycles=random.randint(1, 3))(stream, route)
    ways = [
        Map(Exp(), flops_per_cycle=random.choice((16, 64)))(each) if random.random() < 0.6 else each
        for each in parts
    ]
    switch_cycles = random.randint(0, 3)
    return Flatten(0, 1)(Reassemble(switch_cycles=switch_cycles)(ways, route))


def _dealt(random: Random, stream: Stream) -> Stream:
    parts = [
        Map(Exp(), flops_per_cycle=random.choice((16, 64)))(each)
        for each in Parallelize(random.randint(2, 3))(stream)
    ]
    data, chosen = EagerMerge()(parts)
    if random.random() < 0.5:
        Consumer()(chosen)
    return data


def _retiled(random: Random, stream: Stream) -> Stream:
    chunks, _ = Reshape(chunk=random.randint(2, 4), pad=0.0)(stream)
    packed = Accum(RetileRow())(chunks)
    return FlatMap(SplitRows(valid_only=random.random() < 0.7))(packed)


def _guided(random: Random, stream: Stream) -> Stream:
    size = stream.shape[0]
    if not isinstance(size, int) or not size:
        return stream
    groups = [[0] * random.randint(1, 3) for _ in range(size)]
    reference = Flatten(1, 2)(RaggedIntegers(groups)())
    return Flatten(0, 1)(Expand()(Promote(0)(stream), reference))


def _promoted(random: Random, stream: Stream) -> Stream:
    return Flatten(0, 1)(Promote()(stream)) if random.random() < 0.5 else stream


def _looped(random: Random, stream: Stream) -> Stream:
    value, size = stream.value, stream.shape[0]
    static = isinstance(value, TileType) and all(
        isinstance(each, int) for each in (value.rows, value.cols, size)
    )
    if not static or not size:
        return stream
    loop = Feedback(stream.type)
    result = Map(Add(), flops_per_cycle=random.choice((16, 4096)))(stream, loop)
    loop.connect(Initial(0, keep_length=True)(result))
    return result
