"""Cases of the joins and of Scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from fabric import Stream, TupleType
from operators import INTEGER, Intersect, Scatter, Union, integer
from tests import definitions
from tests.operators.driving import FLOAT, Case, Choices, Drawn, draw, ragged, tile

Pairs = list[tuple[int, float]]

_UPDATES: tuple[Literal["add", "max", "min"], ...] = ("add", "max", "min")


def _fibers(choices: Choices, first: float) -> Callable[..., Pairs]:
    count = iter(range(1 << 20))

    def fiber(_: Any) -> Pairs:
        held = choices.below(256)
        return [(each, first + next(count)) for each in range(8) if held >> each & 1]

    return fiber


def _encoded(fibers: Drawn) -> Drawn:
    made = definitions.map_values(
        lambda pair: (integer(pair[0]), tile(int(pair[1]))), fibers.dims, fibers.tensor
    )
    return Drawn(made, fibers.shape)


def _join(
    choices: Choices,
    wire: Callable[[Stream, Stream], Sequence[Stream]],
    define: Callable[[int, Any, Any], list[Any]],
) -> Case:
    outer = draw(choices, 1 + choices.below(2))
    left, right = (
        Drawn(
            definitions.map_values(_fibers(choices, first), outer.dims, outer.tensor),
            (*outer.shape, ragged(20 + number)),
        )
        for number, first in enumerate((100.0, 2000.0))
    )
    kind = TupleType((INTEGER, FLOAT))
    return Case(
        choices,
        [(_encoded(left), kind), (_encoded(right), kind)],
        wire,
        define(left.dims, left.tensor, right.tensor),
        plain=lambda value: value.data.item(),
    )


def intersect(choices: Choices) -> Case:
    return _join(choices, Intersect(), definitions.intersect)


def union(choices: Choices) -> Case:
    filler = choices.pick((0.0, -1.0))
    return _join(choices, Union(filler), lambda dims, a, b: definitions.union(filler, dims, a, b))


def scatter(choices: Choices) -> Case:
    words, rank = 1 + choices.below(5), 1 + choices.below(2)
    update = choices.pick(_UPDATES)
    initial = choices.pick((0.0, 3.0, -2.0))
    values = draw(choices, rank + 1 + choices.below(2), lambda _: choices.below(9))
    addresses = definitions.map_values(lambda _: choices.below(words), values.dims, values.tensor)
    operator = Scatter(
        words, update, rank, 1 + choices.below(3), 1 + choices.below(4), initial=initial
    )
    expected = definitions.scatter(
        words, update, initial, values.dims, rank, addresses, values.tensor
    )
    return Case(
        choices,
        [
            (Drawn(definitions.map_values(integer, values.dims, addresses), values.shape), INTEGER),
            (Drawn(definitions.map_values(tile, values.dims, values.tensor), values.shape), FLOAT),
        ],
        operator,
        [expected],
        plain=lambda value: value.data.item(),
    )


CASES = {"Intersect": intersect, "Union": union, "Scatter": scatter}
