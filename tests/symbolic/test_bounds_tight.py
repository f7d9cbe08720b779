"""Programs that take exactly the cycles of their bound: a bound a cycle higher would be wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import operators as op
from fabric import Hardware, Initial, Program, Stream, hardware_scope
from fabric.extend import OnChipDescription
from tests.symbolic.bounded import compared, load

Wire = Callable[[Program], object]


def route(*hits: int) -> Stream:
    return op.Flatten(0, 1)(op.Selectors(np.array(hits)[:, np.newaxis], 2)())


def slow(rows: Stream) -> Stream:
    return op.Map(op.RowSum(), flops_per_cycle=1)(rows)


def late() -> Stream:
    return op.LinearOffChipLoad(op.Tensor((1, 32), dtype="float32"), (1, 32))(
        op.Flatten(0, 2)(load(64, 32, (64, 32)))
    )


def nowhere(count: int) -> Stream:
    return op.Flatten(0, 1)(op.Selectors(np.zeros((count, 0), int), 2)())


def bound(built: Program, axis: int, size: int | Fraction, *streams: Stream) -> tuple[Stream, ...]:
    for stream in streams:
        built.bind(stream.shape[axis], size)
    return streams


def last(*streams: Stream) -> None:
    for rows in streams:
        op.Consumer()(op.Repeat(100)(rows))


def one_is_late() -> Stream:
    quick = op.Flatten(0, 2)(load(19, 1, (1, 1)))
    weight = op.Tensor((1, 1), dtype="float32")
    other = op.Flatten(0, 2)(
        op.LinearOffChipLoad(weight, (1, 1))(op.Flatten(0, 2)(load(64, 32, (64, 32))))
    )
    return op.Reassemble()([quick, other], route(*[0] * 19, 1))


def unlike(quick: Stream, other: Stream) -> None:
    op.Consumer()(quick)
    last(other)


def stored_and_read(quick: Stream, other: Stream) -> None:
    op.Consumer()(quick)
    op.LinearOffChipStore("y")(other)


TIGHT: dict[str, Wire] = {
    "selectors": lambda _: op.Consumer()(op.Selectors(np.zeros((20, 1), int), 2)()),
    "metadata": lambda _: op.Consumer()(op.Metadata(np.arange(20))()),
    "ragged": lambda built: op.Consumer()(
        op.Flatten(0, 2)(bound(built, 2, Fraction(3, 2), op.RaggedIntegers([[1, 2], [3]])())[0])
    ),
    "repeat": lambda _: op.Consumer()(op.Repeat(50)(op.Metadata(np.arange(3))())),
    "repeat twice": lambda _: op.Consumer()(op.Repeat(2)(load(1))),
    "flatten": lambda _: last(op.Flatten(0, 1)(load(1))),
    "promote": lambda _: last(op.Promote(0)(load(1))),
    "broadcast": lambda _: last(op.Broadcast(1)(load(1))[0]),
    "zip": lambda _: last(op.Zip()(load(1), load(1))),
    "reshape": lambda _: last(op.Reshape(1)(load(1))[0]),
    "initial": lambda _: last(Initial(0)(op.Flatten(0, 2)(load(1)))),
    "map": lambda _: op.LinearOffChipStore("y")(slow(load())),
    "map to memory": lambda _: op.Consumer()(
        op.Map(op.RowSum(), to_memory=True)(load(9, 1, (9, 1)))
    ),
    "accum": lambda _: op.LinearOffChipStore("y")(op.Accum(op.Sum(), 2, flops_per_cycle=1)(load())),
    "accum, then slow": lambda _: op.Consumer()(
        op.Accum(op.Sum(), 1, flops_per_cycle=1)(load(3, 96, (1, 32)))
    ),
    "scan": lambda _: op.LinearOffChipStore("y")(op.Scan(op.Sum(), flops_per_cycle=1)(load())),
    "retile": lambda _: op.LinearOffChipStore("y")(
        op.Accum(op.RetileRow())(op.Promote(1)(op.Flatten(0, 2)(load(3))))
    ),
    "partition": lambda built: last(
        *bound(
            built, 0, 1, *op.Partition(2, switch_cycles=30)(op.Flatten(0, 2)(load(2)), route(0, 1))
        )
    ),
    "parallelize": lambda _: [
        op.Consumer()(part) for part in op.Parallelize(2, 0, 60)(op.Flatten(0, 2)(load(2)))
    ],
    "reassemble": lambda built: last(
        op.Reassemble()(
            bound(built, 0, 1, *op.Partition(2)(op.Flatten(0, 2)(load(2)), picked := route(0, 1))),
            picked,
        )
    ),
    "reassemble of a late one": lambda _: op.Consumer()(op.Repeat(50)(one_is_late())),
    "what deals has ended": lambda _: stored_and_read(
        *op.Parallelize(2, 1, 9)(op.Flatten(0, 1)(load(1)))
    ),
    "the last one closes": lambda _: op.LinearOffChipStore("y")(
        op.Accum(op.RetileRow())(
            op.Flatten(0, 1)(op.Reshape(1, outermost=True)(op.Flatten(0, 2)(load(3)))[0])
        )
    ),
    "dealt out and joined": lambda _: op.LinearOffChipStore("y")(
        op.Map(op.Add())(
            *(
                slow(part.assume(1))
                for part in op.Partition(2)(op.Flatten(0, 2)(load(2)), route(0, 1))
            )
        )
    ),
    "parallelize unlike": lambda _: unlike(*op.Parallelize(2)(op.Flatten(0, 2)(load(3)))),
    "reassemble some": lambda built: last(
        op.Reassemble()(
            [
                slow(part)
                for part in bound(
                    built, 0, 1, *op.Partition(2)(op.Flatten(0, 2)(load(2)), route(0, 1))
                )
            ],
            route(0),
        )
    ),
    "selectors that overtake": lambda _: last(
        op.EagerMerge()([op.Flatten(0, 1)(op.Metadata(np.arange(5))()) for _ in range(2)])[1]
    ),
    "merge": lambda _: op.Consumer()(
        op.EagerMerge()([op.Flatten(0, 2)(load(2)), op.Flatten(0, 2)(load(2))])[0]
    ),
    "merge of a late one": lambda _: op.Consumer()(
        slow(op.EagerMerge()([op.Flatten(0, 2)(load(20)), op.Flatten(0, 2)(late())])[0])
    ),
    "selectors of a merge": lambda _: last(op.EagerMerge()([op.Flatten(0, 2)(load(1))])[1]),
    "merged tensors": lambda _: op.Consumer()(
        op.EagerMerge(1)([op.Flatten(1, 2)(op.Repeat(40)(op.Metadata(np.arange(1))()))])[0]
    ),
    "unseen ends": lambda built: op.LinearOffChipStore("y")(
        op.Reassemble()(
            bound(built, 0, 0, *op.Partition(2)(op.Flatten(0, 2)(load(9)), nowhere(9))), nowhere(9)
        )
    ),
    "last group of nothing": lambda built: op.Consumer()(
        slow(
            op.Expand()(
                load(2, 32, (1, 32)),
                bound(built, 2, Fraction(1, 2), op.RaggedIntegers([[1], []])())[0],
            )
        )
    ),
    "a part that is empty": lambda _: unlike(
        *(slow(part) for part in op.Partition(2)(op.Flatten(0, 2)(load(2, 1, (1, 1))), route(0, 0)))
    ),
    "a group that is empty": lambda built: last(
        op.Accum(op.Sum(), flops_per_cycle=1)(
            bound(built, 2, 1, op.RaggedIntegers([[], [1, 1]])())[0]
        )
    ),
    "bufferize": lambda _: last(
        op.Streamify()(op.Bufferize()(op.Repeat(40)(op.Metadata(np.arange(1))())))
    ),
    "bufferize at once": lambda _: op.Consumer()(
        op.Streamify()(op.Bufferize()(op.FlatMap(op.SplitRows())(load(40, 32, (40, 32)))))
    ),
    "streamify late tiles": lambda _: op.Consumer()(
        op.Streamify((5,))(op.Bufferize()(op.Promote(0)(op.Flatten(0, 2)(load(2)))))
    ),
    "streamify": lambda _: op.Consumer()(
        op.Streamify((30,))(op.Bufferize()(op.Promote(0)(op.Flatten(0, 2)(load(2)))))
    ),
    "referred": lambda _: last(
        op.Streamify()(op.Bufferize()(load(1)), op.Repeat(3)(load(1, 1, (1, 1))))
    ),
    "expand": lambda _: last(op.Expand()(load(1), load(1, 96, (1, 32)))),
    "flat map": lambda _: op.Consumer()(op.FlatMap(op.SplitRows())(load(8, 32, (8, 32)))),
    "view": lambda _: op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 16)), (1, 16))(load(2))),
    "view for each": lambda _: op.Consumer()(
        op.LinearOffChipLoad(op.Tensor((1, 16)), (1, 16))(load(2))
    ),
    "addresses": lambda _: op.Consumer()(
        op.RandomOffChipLoad(op.Tensor((4, 16)), (1, 16))(op.ExpertAddresses(2)(route(0, 1)))
    ),
    "random store": lambda _: op.Consumer()(
        op.RandomOffChipStore("y", op.Tensor((4, 16)), (1, 16))(
            op.Metadata(np.arange(3))(),
            op.Flatten(0, 1)(op.LinearOffChipLoad(op.Tensor((3, 16)), (1, 16))()),
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
"""Cycles above the bound, which does not add the waits of two units for each other."""


@pytest.mark.parametrize("name", TIGHT)
def test_bound_is_nearly_the_cycles_of_the_run(name: str) -> None:
    with (
        hardware_scope(Hardware(on_chip=OnChipDescription(bytes_per_cycle=1))),
        Program("p", channel_depth=1000) as built,
    ):
        TIGHT[name](built)
    before, report = compared(built)

    assert "completed" == report.status
    assert report.cycles == before.at_least["cycles"] + LATER.get(name, 0)
