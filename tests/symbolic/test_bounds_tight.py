"""Programs that take exactly as long as they have to: a bound a cycle too high is a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from fabric import Hardware, Initial, Program, Stream, hardware_scope
from fabric.extend import OnChipDescription
from operators import (
    Accum,
    Add,
    Broadcast,
    Bufferize,
    Consumer,
    EagerMerge,
    Expand,
    ExpertAddresses,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Metadata,
    Parallelize,
    Partition,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    Repeat,
    Reshape,
    RetileRow,
    RowSum,
    Scan,
    Selectors,
    SplitRows,
    Streamify,
    Sum,
    Tensor,
    Zip,
)
from tests.symbolic.bounded import compared, load

Wire = Callable[[Program], object]


def route(*hits: int) -> Stream:
    return Flatten(0, 1)(Selectors(np.array(hits)[:, np.newaxis], 2)())


def slow(rows: Stream) -> Stream:
    return Map(RowSum(), flops_per_cycle=1)(rows)


def late() -> Stream:
    return LinearOffChipLoad(Tensor((1, 32), dtype="float32"), (1, 32))(
        Flatten(0, 2)(load(64, 32, (64, 32)))
    )


def nowhere(count: int) -> Stream:
    return Flatten(0, 1)(Selectors(np.zeros((count, 0), int), 2)())


def bound(built: Program, axis: int, size: int | Fraction, *streams: Stream) -> tuple[Stream, ...]:
    for stream in streams:
        built.bind(stream.shape[axis], size)
    return streams


def last(*streams: Stream) -> None:
    for rows in streams:
        Consumer()(Repeat(100)(rows))


def one_is_late() -> Stream:
    quick = Flatten(0, 2)(load(19, 1, (1, 1)))
    weight = Tensor((1, 1), dtype="float32")
    other = Flatten(0, 2)(LinearOffChipLoad(weight, (1, 1))(Flatten(0, 2)(load(64, 32, (64, 32)))))
    return Reassemble()([quick, other], route(*[0] * 19, 1))


def unlike(quick: Stream, other: Stream) -> None:
    Consumer()(quick)
    last(other)


def stored_and_read(quick: Stream, other: Stream) -> None:
    Consumer()(quick)
    LinearOffChipStore("y")(other)


TIGHT: dict[str, Wire] = {
    "selectors": lambda _: Consumer()(Selectors(np.zeros((20, 1), int), 2)()),
    "metadata": lambda _: Consumer()(Metadata(np.arange(20))()),
    "ragged": lambda built: Consumer()(
        Flatten(0, 2)(bound(built, 2, Fraction(3, 2), RaggedIntegers([[1, 2], [3]])())[0])
    ),
    "repeat": lambda _: Consumer()(Repeat(50)(Metadata(np.arange(3))())),
    "repeat twice": lambda _: Consumer()(Repeat(2)(load(1))),
    "flatten": lambda _: last(Flatten(0, 1)(load(1))),
    "promote": lambda _: last(Promote(0)(load(1))),
    "broadcast": lambda _: last(Broadcast(1)(load(1))[0]),
    "zip": lambda _: last(Zip()(load(1), load(1))),
    "reshape": lambda _: last(Reshape(1)(load(1))[0]),
    "initial": lambda _: last(Initial(0)(Flatten(0, 2)(load(1)))),
    "map": lambda _: LinearOffChipStore("y")(slow(load())),
    "map to memory": lambda _: Consumer()(Map(RowSum(), to_memory=True)(load(9, 1, (9, 1)))),
    "accum": lambda _: LinearOffChipStore("y")(Accum(Sum(), 2, flops_per_cycle=1)(load())),
    "accum, then slow": lambda _: Consumer()(
        Accum(Sum(), 1, flops_per_cycle=1)(load(3, 96, (1, 32)))
    ),
    "scan": lambda _: LinearOffChipStore("y")(Scan(Sum(), flops_per_cycle=1)(load())),
    "retile": lambda _: LinearOffChipStore("y")(
        Accum(RetileRow())(Promote(1)(Flatten(0, 2)(load(3))))
    ),
    "partition": lambda built: last(
        *bound(built, 0, 1, *Partition(2, switch_cycles=30)(Flatten(0, 2)(load(2)), route(0, 1)))
    ),
    "parallelize": lambda _: [
        Consumer()(part) for part in Parallelize(2, 0, 60)(Flatten(0, 2)(load(2)))
    ],
    "reassemble": lambda built: last(
        Reassemble()(
            bound(built, 0, 1, *Partition(2)(Flatten(0, 2)(load(2)), picked := route(0, 1))),
            picked,
        )
    ),
    "reassemble of a late one": lambda _: Consumer()(Repeat(50)(one_is_late())),
    "what deals has ended": lambda _: stored_and_read(
        *Parallelize(2, 1, 9)(Flatten(0, 1)(load(1)))
    ),
    "the last one closes": lambda _: LinearOffChipStore("y")(
        Accum(RetileRow())(Flatten(0, 1)(Reshape(1, outermost=True)(Flatten(0, 2)(load(3)))[0]))
    ),
    "dealt out and joined": lambda _: LinearOffChipStore("y")(
        Map(Add())(
            *(slow(part.assume(1)) for part in Partition(2)(Flatten(0, 2)(load(2)), route(0, 1)))
        )
    ),
    "parallelize unlike": lambda _: unlike(*Parallelize(2)(Flatten(0, 2)(load(3)))),
    "reassemble some": lambda built: last(
        Reassemble()(
            [
                slow(part)
                for part in bound(built, 0, 1, *Partition(2)(Flatten(0, 2)(load(2)), route(0, 1)))
            ],
            route(0),
        )
    ),
    "selectors that overtake": lambda _: last(
        EagerMerge()([Flatten(0, 1)(Metadata(np.arange(5))()) for _ in range(2)])[1]
    ),
    "merge": lambda _: Consumer()(
        EagerMerge()([Flatten(0, 2)(load(2)), Flatten(0, 2)(load(2))])[0]
    ),
    "merge of a late one": lambda _: Consumer()(
        slow(EagerMerge()([Flatten(0, 2)(load(20)), Flatten(0, 2)(late())])[0])
    ),
    "selectors of a merge": lambda _: last(EagerMerge()([Flatten(0, 2)(load(1))])[1]),
    "merged tensors": lambda _: Consumer()(
        EagerMerge(1)([Flatten(1, 2)(Repeat(40)(Metadata(np.arange(1))()))])[0]
    ),
    "unseen ends": lambda built: LinearOffChipStore("y")(
        Reassemble()(
            bound(built, 0, 0, *Partition(2)(Flatten(0, 2)(load(9)), nowhere(9))), nowhere(9)
        )
    ),
    "last group of nothing": lambda built: Consumer()(
        slow(
            Expand()(
                load(2, 32, (1, 32)),
                bound(built, 2, Fraction(1, 2), RaggedIntegers([[1], []])())[0],
            )
        )
    ),
    "a part that is empty": lambda _: unlike(
        *(slow(part) for part in Partition(2)(Flatten(0, 2)(load(2, 1, (1, 1))), route(0, 0)))
    ),
    "a group that is empty": lambda built: last(
        Accum(Sum(), flops_per_cycle=1)(bound(built, 2, 1, RaggedIntegers([[], [1, 1]])())[0])
    ),
    "bufferize": lambda _: last(Streamify()(Bufferize()(Repeat(40)(Metadata(np.arange(1))())))),
    "bufferize at once": lambda _: Consumer()(
        Streamify()(Bufferize()(FlatMap(SplitRows())(load(40, 32, (40, 32)))))
    ),
    "streamify late tiles": lambda _: Consumer()(
        Streamify((5,))(Bufferize()(Promote(0)(Flatten(0, 2)(load(2)))))
    ),
    "streamify": lambda _: Consumer()(
        Streamify((30,))(Bufferize()(Promote(0)(Flatten(0, 2)(load(2)))))
    ),
    "referred": lambda _: last(Streamify()(Bufferize()(load(1)), Repeat(3)(load(1, 1, (1, 1))))),
    "expand": lambda _: last(Expand()(load(1), load(1, 96, (1, 32)))),
    "flat map": lambda _: Consumer()(FlatMap(SplitRows())(load(8, 32, (8, 32)))),
    "view": lambda _: Consumer()(LinearOffChipLoad(Tensor((4, 16)), (1, 16))(load(2))),
    "view for each": lambda _: Consumer()(LinearOffChipLoad(Tensor((1, 16)), (1, 16))(load(2))),
    "addresses": lambda _: Consumer()(
        RandomOffChipLoad(Tensor((4, 16)), (1, 16))(ExpertAddresses(2)(route(0, 1)))
    ),
    "random store": lambda _: Consumer()(
        RandomOffChipStore("y", Tensor((4, 16)), (1, 16))(
            Metadata(np.arange(3))(), Flatten(0, 1)(LinearOffChipLoad(Tensor((3, 16)), (1, 16))())
        )
    ),
}


LATER = {
    "the last one closes": 20,
    "retile": 20,
    "partition": 1,
    "reassemble": 2,
    "parallelize unlike": 20,
    "a part that is empty": 4,
    "a group that is empty": 1,
    "reassemble of a late one": 5,
    "merge": 1,
    "merge of a late one": 1,
    "last group of nothing": 20,
}
"""How many cycles more these take: what two units wait for one after the other is not added up."""


@pytest.mark.parametrize("name", TIGHT)
def test_bound_is_nearly_the_cycles_of_the_run(name: str) -> None:
    with (
        hardware_scope(Hardware(on_chip=OnChipDescription(bytes_per_cycle=1))),
        Program("p", channel_depth=1000) as built,
    ):
        TIGHT[name](built)
    known, report = compared(built)

    assert "completed" == report.status
    assert report.cycles == known.at_least["cycles"] + LATER.get(name, 0)
