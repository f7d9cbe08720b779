"""Bounds of streams that share a total hold for every distribution of the total."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import operators as op
from fabric import Program, Stream, hardware_scope, simulate
from tests.operators.driving import Choices
from tests.profiles import examples
from tests.symbolic.bounded import compared, drawn_hardware, drawn_options

TILE = (2, 8)


def flat(values: Iterable[int]) -> Stream:
    return op.Flatten(0, 1)(op.Metadata(np.array(list(values), np.int64))())


def one_hot(values: list[int], width: int) -> Stream:
    return op.Flatten(0, 1)(op.Selectors(np.array(values, np.int64)[:, np.newaxis], width)())


def read(numbers: Stream, lengths: Stream, most: int, count: int) -> Stream:
    cache = op.Tensor((TILE[0] * max(most * count, 1), TILE[1]), dtype="float32")
    return op.RandomOffChipLoad(cache, TILE)(op.CacheReadAddresses(most)(numbers, lengths))


def parted(tiles: Stream, lengths: Stream) -> Stream:
    place = op.FilterLastTile()(lengths).assume(*tiles.shape)
    last, others = op.Partition(2)(tiles, place)
    last = last.assume(lengths.shape[0])
    others = others.assume(tiles.type.count - lengths.shape[0])
    slow = op.Map(op.RowSum(), flops_per_cycle=1)(last)
    quick = op.Map(op.RowSum(), flops_per_cycle=1000)(others)
    return op.Flatten(0, 1)(op.Reassemble()([slow, quick], place))


def held(source: Stream) -> Stream:
    return op.Flatten(0, 1)(op.Streamify()(op.Bufferize()(op.Promote()(source)))).assume(
        *source.shape
    )


def wired(choices: Choices) -> Program:
    regions, count, most = 1 + choices.below(3), 1 + choices.below(6), 1 + choices.below(4)
    least = choices.pick((1, 1, 0))
    lengths = [max(least, choices.below(most + 1)) for _ in range(count)]
    region_of = [choices.below(regions) for _ in range(count)]
    slow, steps = 1 + choices.below(8), [choices.below(5) for _ in range(3)]
    joins, deals, binds = choices.below(3), choices.maybe(), choices.below(4)
    with Program("shared", channel_depth=1000) as program:
        where = one_hot(region_of, regions)
        numbers = op.Partition(regions)(flat(list(range(count))), where)
        sizes = op.Partition(regions, 0, choices.below(4))(flat(lengths), where)
        results, shares = [], []
        for own, its in zip(numbers, sizes, strict=True):
            tiles = read(own, its, most, count)
            shares.append(tiles)
            if least and steps[0] == 1:
                tiles = parted(tiles, its)
            elif steps[0] == 2:
                tiles = op.Flatten(1, 2)(op.Repeat(2)(tiles))
            if steps[1] == 1:
                tiles = op.Map(op.Add(), choices.maybe(), flops_per_cycle=slow)(tiles, tiles)
            result = op.Accum(op.Sum(), flops_per_cycle=slow)(tiles)
            results.append(held(result) if steps[2] < 3 else result)
        if binds:
            program.bind(sum(each.shape[0] for each in shares), count)
        if binds > 1:
            program.bind(sum(each.type.count for each in shares), sum(lengths))
        if joins:
            y = op.Flatten(0, 1)(op.Reassemble()(results, one_hot(region_of, regions)))  # [count]
        else:
            y, _ = op.EagerMerge()(results)
            y = y.assume(count)
        if deals:
            y = dealt(y, choices)
        op.LinearOffChipStore("y")(op.Promote(0)(y))
    return program


def dealt(rows: Stream, choices: Choices) -> Stream:
    width = 1 + choices.below(3)
    tile = op.Accum(op.RetileRow())(op.Promote()(rows))  # [1]
    copies = op.Flatten(0, 1)(op.Repeat(width)(tile))
    each = op.Partition(width)(copies, one_hot(list(range(width)), width))
    done = []
    for part in each:
        copy = part.assume(1)
        if choices.maybe():
            copy = op.Map(op.RowSum(), flops_per_cycle=1 + choices.below(4))(copy)
        parts = op.FlatMap(op.SplitRows())(op.Promote(0)(copy))
        one = op.Accum(op.Sum(), flops_per_cycle=1 + choices.below(4))(parts)
        done.append(op.Map(op.RowSum())(one).assume(1))
    return op.EagerMerge()(done)[0]


@examples(quick=30, deep=20_000)
@given(data=st.binary(min_size=60, max_size=60))
def test_random_shares_are_within_their_bounds(data: bytes) -> None:
    source = random.Random(data)
    with hardware_scope(drawn_hardware(Choices(source.randbytes(20)))):
        built = wired(Choices(data))
    compared(built, **drawn_options(built, source))


def slow(rows: Stream) -> Stream:
    return op.Map(op.RowSum(), flops_per_cycle=1)(rows)


@examples(20)
@given(
    requests=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=5),
    of_nothing=st.integers(0, 4),
    wrong=st.booleans(),
)
def test_wrong_mean_is_reported_if_there_are_groups(
    requests: list[tuple[int, int]], of_nothing: int, wrong: bool
) -> None:
    routes, lengths = map(list, zip(*requests, strict=True))
    taken = [[size for route, size in requests if route == each] for each in (0, 1)]
    with Program("p") as built:
        where = one_hot(routes, 2)
        ways = [op.Partition(2)(flat(each), where) for each in (range(len(requests)), lengths)]
        for (own, its), sizes in zip(zip(*ways, strict=True), taken, strict=True):
            tiles = read(own, its, 3, len(requests))
            built.bind(tiles.shape[0], len(sizes))
            mean = Fraction(sum(sizes), len(sizes)) if sizes else Fraction(of_nothing)
            built.bind(tiles.shape[1], mean + wrong)
            op.Consumer()(tiles)

    warnings = simulate(built).warnings
    assert wrong * sum(map(bool, taken)) == len(warnings)
    assert all("the program binds D_cache_read_addresses_" in each for each in warnings)
