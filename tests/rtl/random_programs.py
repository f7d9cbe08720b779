"""Random programs of operators with hardware: routing, retiling, merges, dynamic tiles."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import operators as op
from fabric import Feedback, Hop, Initial, Program, Stream, TileType
from operators.pieces import in_pieces

# Rows and columns of a piece.
_PIECE = 2


def draw(random: Random) -> Program:
    with Program(f"random-{random.randrange(10**6)}", mode="timing") as program:
        stream = _source(random)
        for _ in range(random.randint(1, 5)):
            steps = (
                _reshaped, _repeated, _computed, _routed, _dealt, _retiled, _guided, _promoted,
                _looped,
            )  # fmt: skip
            stream = random.choice(steps)(random, stream)
        op.Consumer()(stream)
    return program


def draw_in_pieces(random: Random) -> Program:
    rows, inner, cols, last = (_PIECE * random.randint(1, 4) for _ in range(4))
    down, along, across = (random.randint(1, 3) for _ in range(3))
    with Program(f"pieces-{random.randrange(10**6)}", mode="timing") as program:
        left = op.LinearOffChipLoad(
            op.Tensor((down * rows, along * inner)),
            (rows, inner),
            shape=(down, across, along),
            strides=(along, 0, 1),
        )()

        def product() -> Stream:
            right = op.LinearOffChipLoad(
                op.Tensor((along * inner, across * cols)),
                (inner, cols),
                shape=(down, across, along),
                strides=(0, 1, across),
            )()
            return op.Accum(op.MatmulSum())(left, right)

        result = op.Map(op.SiLU())(product())
        if random.random() < 0.5:
            result = op.Map(op.Mul())(result, product())
        if random.random() < 0.5:
            others = op.LinearOffChipLoad(
                op.Tensor((across * cols, last)),
                (cols, last),
                shape=(down, 1, across),
                strides=(0, 1, 1),
            )()
            result = op.Accum(op.MatmulSum())(op.Reshape(chunk=1, dimension=1)(result)[0], others)
        op.LinearOffChipStore("y")(result)
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
        tiles = op.RandomOffChipLoad(np.zeros((8 * rows, cols)), tile=(rows, cols))(places)
        return op.Flatten(0, len(places.shape) - 1)(tiles)
    if random.random() < 0.3:
        lists = [
            [random.randrange(4) for _ in range(random.randint(0, 4))]
            for _ in range(random.randint(1, 4))
        ]
        places = op.RaggedIntegers([*lists, [1]])()
        tiles = op.RandomOffChipLoad(np.zeros((4 * rows, cols)), tile=(rows, cols))(places)
        if random.random() < 0.5:
            # The stop of an empty list has the rank of the buffers, which it passes.
            buffers = op.Bufferize(1)(op.Promote(0)(tiles))
            return op.Flatten(0, 4)(op.Streamify(repeats=(1,))(buffers))
        return op.Flatten(0, 2)(tiles)
    tensor = np.zeros((random.randint(1, 12) * rows, cols))
    loaded = op.LinearOffChipLoad(tensor, tile=(rows, cols))()
    if random.random() < 0.2:
        # A stream that is read several times, or once for each of some numbers.
        buffers = op.Bufferize(random.randint(1, 2))(loaded)
        if random.random() < 0.5:
            return op.Flatten(0, 3)(op.Streamify(repeats=(random.randint(1, 3),))(buffers))
        outer = [dim for dim in buffers.shape[1:] if isinstance(dim, int)]
        times = op.Metadata(np.zeros((*outer, random.randint(1, 3)), int))()
        return op.Flatten(0, 3)(op.Streamify()(buffers, times))
    return op.Flatten(0, 2)(loaded)


def _numbers(random: Random) -> Stream:
    groups = random.randint(1, 4)
    if random.random() < 0.5:
        requests = op.RaggedIntegers(
            [random.sample(range(4), random.randint(1, 3)) for _ in "x" * groups]
        )
        numbers = requests()
        lengths = op.RandomOffChipLoad(np.array([[1], [0], [2], [1]]), tile=(1, 1))(numbers)
        return op.CacheReadAddresses(2)(numbers, lengths)
    left, right = (
        [sorted(random.sample(range(8), random.randint(0, 5))) for _ in range(groups)]
        for _ in range(2)
    )
    first, second = op.RaggedIntegers(left)(), op.RaggedIntegers(right)()
    pairs = op.Zip()(first, op.RaggedIntegers(left)().assume(*first.shape))
    same, of_left, of_right = op.Intersect()(pairs, second)
    op.Consumer()(of_right)
    return random.choice((same, of_left))


def _reshaped(random: Random, stream: Stream) -> Stream:
    chunks, _ = op.Reshape(chunk=random.randint(1, 4), pad=0.0)(stream)
    if random.random() < 0.5:
        return op.Flatten(0, 1)(chunks)
    return op.Accum(op.Sum(), to_memory=random.random() < 0.5, flops_per_cycle=64)(chunks)


def _repeated(random: Random, stream: Stream) -> Stream:
    return op.Flatten(0, 1)(op.Repeat(random.randint(1, 4))(stream))


def _computed(random: Random, stream: Stream) -> Stream:
    to_memory, rate = random.random() < 0.5, random.choice((16, 100, 4096))
    if random.random() < 0.2:
        chunks, _ = op.Reshape(chunk=random.randint(1, 4), pad=0.0)(stream)
        return op.Flatten(0, 1)(
            op.Scan(op.Sum(), to_memory=to_memory, flops_per_cycle=rate)(chunks)
        )
    result = op.Map(op.Exp(), to_memory=to_memory, flops_per_cycle=rate)(stream)
    if random.random() < 0.5:
        return result
    return op.Map(op.Mul(), flops_per_cycle=rate)(result, stream)


def _routed(random: Random, stream: Stream) -> Stream:
    consumers, size = random.randint(2, 3), stream.shape[0]
    if not isinstance(size, int):
        return stream
    hits = random.randint(1, 2)
    choice = np.array([random.sample(range(consumers), hits) for _ in range(size)])
    route = op.Flatten(0, 1)(op.Selectors(choice, width=consumers)())
    parts = op.Partition(consumers, switch_cycles=random.randint(1, 3))(stream, route)
    ways = [
        op.Map(op.Exp(), flops_per_cycle=random.choice((16, 64)))(each)
        if random.random() < 0.6
        else each
        for each in parts
    ]
    switch_cycles = random.randint(0, 3)
    return op.Flatten(0, 1)(op.Reassemble(switch_cycles=switch_cycles)(ways, route))


def _dealt(random: Random, stream: Stream) -> Stream:
    parts = [
        op.Map(op.Exp(), flops_per_cycle=random.choice((16, 64)))(each)
        for each in op.Parallelize(random.randint(2, 3))(stream)
    ]
    data, chosen = op.EagerMerge()(parts)
    if random.random() < 0.5:
        op.Consumer()(chosen)
    return data


def _retiled(random: Random, stream: Stream) -> Stream:
    chunks, _ = op.Reshape(chunk=random.randint(2, 4), pad=0.0)(stream)
    packed = op.Accum(op.RetileRow())(chunks)
    return op.FlatMap(op.SplitRows(valid_only=random.random() < 0.7))(packed)


def _guided(random: Random, stream: Stream) -> Stream:
    size = stream.shape[0]
    if not isinstance(size, int) or not size:
        return stream
    groups = [[0] * random.randint(1, 3) for _ in range(size)]
    reference = op.Flatten(1, 2)(op.RaggedIntegers(groups)())
    return op.Flatten(0, 1)(op.Expand()(op.Promote(0)(stream), reference))


def _promoted(random: Random, stream: Stream) -> Stream:
    return op.Flatten(0, 1)(op.Promote()(stream)) if random.random() < 0.5 else stream


def _looped(random: Random, stream: Stream) -> Stream:
    value, size = stream.value, stream.shape[0]
    static = isinstance(value, TileType) and all(
        isinstance(each, int) for each in (value.rows, value.cols, size)
    )
    if not static or not size:
        return stream
    loop = Feedback(stream.type)
    result = op.Map(op.Add(), flops_per_cycle=random.choice((16, 4096)))(stream, loop)
    loop.connect(Initial(0, keep_length=True)(result))
    return result
