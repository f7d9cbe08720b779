"""Cases of the routing operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fabric import SelectorType, Stream
from operators import EagerMerge, Parallelize, Partition, Reassemble
from tests import definitions
from tests.operators.driving import NUMBER, Case, Choices, Drawn, draw, ragged, selector


def _hits(choices: Choices, width: int) -> Callable[[int], set[int]]:
    return lambda _: {each for each in range(width) if choices.below(2)}


def _selectors(sets: Drawn, width: int) -> tuple[Drawn, SelectorType]:
    made = definitions.map_values(selector(width), sets.dims, sets.tensor)
    return Drawn(made, sets.shape), SelectorType(width)


def _filled(choices: Choices, sets: Drawn, rank: int) -> Drawn:
    count = iter(range(1 << 20))

    def part(depth: int) -> Any:
        if not depth:
            return next(count)
        return [part(depth - 1) for _ in range(choices.pick((1, 2, 0, 3)))]

    tensor = definitions.map_values(lambda _: part(rank), sets.dims, sets.tensor)
    return Drawn(tensor, (*sets.shape, *map(ragged, range(rank))))


def partition(choices: Choices) -> Case:
    width = 1 + choices.below(3)
    sets = draw(choices, 1 + choices.below(2), _hits(choices, width))
    rank = choices.below(3)
    source = _filled(choices, sets, rank)
    expected = definitions.partition(width, sets.dims, source.tensor, sets.tensor)
    return Case(
        choices, [(source, NUMBER), _selectors(sets, width)], Partition(width, rank), expected
    )


def _parts(choices: Choices, rank: int, count: int, name: int) -> Drawn:
    def part(depth: int) -> Any:
        if not depth:
            return name * 1000 + next(numbers)
        return [part(depth - 1) for _ in range(choices.pick((1, 2, 0, 3)))]

    numbers = iter(range(1000))
    return Drawn([part(rank) for _ in range(count)], tuple(map(ragged, range(rank + 1))))


def reassemble(choices: Choices) -> Case:
    width = 1 + choices.below(3)
    sets = draw(choices, 1 + choices.below(2), _hits(choices, width))
    rank = choices.below(3)
    counts = [
        sum(each in hits for hits in definitions.leaves(sets.tensor, sets.dims))
        for each in range(width)
    ]
    streams = [_parts(choices, rank, count, each) for each, count in enumerate(counts)]
    expected = definitions.reassemble([each.tensor for each in streams], sets.dims, sets.tensor)

    def unordered(tensor: Any) -> Any:
        return definitions.at_depth(lambda parts: sorted(parts, key=repr), sets.dims, tensor)

    return Case(
        choices,
        [*((each, NUMBER) for each in streams), _selectors(sets, width)],
        lambda *inputs: Reassemble(rank)(inputs[:-1], inputs[-1]),
        [expected],
        normal=unordered,
    )


def route_and_return(choices: Choices) -> Case:
    width = 1 + choices.below(3)
    sets = draw(choices, 1 + choices.below(2), _hits(choices, width))
    rank = choices.below(2)
    source = _filled(choices, sets, rank)
    expected = definitions.at_depth(
        lambda part, hits: [part] * len(hits), sets.dims, source.tensor, sets.tensor
    )

    def wire(data: Stream, selectors: Stream) -> Stream:
        return Reassemble(rank)(Partition(width, rank)(data, selectors), selectors)

    return Case(
        choices,
        [(source, NUMBER), _selectors(sets, width)],
        wire,
        [expected],
        shallow=False,
    )


def eager_merge(choices: Choices) -> Case:
    width = 1 + choices.below(3)
    rank = choices.below(3)
    streams = [_parts(choices, rank, choices.below(4), each) for each in range(width)]

    def wire(*inputs: Stream) -> list[Stream]:
        data, selectors = EagerMerge(rank)(inputs)
        return [*Partition(width, rank)(data, selectors)]

    return Case(
        choices,
        [(each, NUMBER) for each in streams],
        wire,
        [each.tensor for each in streams],
        shallow=False,
    )


def parallelize(choices: Choices) -> Case:
    consumers = 1 + choices.below(4)
    rank = choices.below(3)
    source = _parts(choices, rank, choices.below(7), 0)
    expected = definitions.parallelize(consumers, source.tensor)
    return Case(choices, [(source, NUMBER)], Parallelize(consumers, rank), expected)


CASES = {
    "Partition": partition,
    "Reassemble": reassemble,
    "Partition and Reassemble": route_and_return,
    "EagerMerge": eager_merge,
    "Parallelize": parallelize,
}
