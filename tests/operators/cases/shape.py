"""Cases of the shape operators."""

from __future__ import annotations

from fabric import Tile
from operators import Expand, Flatten, Initial, Promote, Repeat, Reshape
from tests import definitions
from tests.operators.driving import FLOAT, NUMBER, Case, Choices, Drawn, draw, number_in, tile


def flatten(choices: Choices) -> Case:
    dims = 2 + choices.below(3)
    drawn = draw(choices, dims)
    inner = choices.below(dims - 1)
    outer = inner + 1 + choices.below(dims - 1 - inner)
    expected = definitions.flatten(inner, outer, dims, drawn.tensor)
    return Case(choices, [(drawn, NUMBER)], Flatten(inner, outer), [expected])


def reshape_innermost(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3), tile)
    chunk = 1 + choices.below(4)
    data, flags = (
        definitions.reshape(chunk, 0, pad, drawn.dims, tensor)
        for pad, tensor in (
            (None, definitions.map_values(number_in, drawn.dims, drawn.tensor)),
            (True, definitions.map_values(lambda _: False, drawn.dims, drawn.tensor)),
        )
    )
    if drawn.dims == 1 and choices.maybe():
        data, flags = (definitions.promote(2, 2, each) for each in (data, flags))
        reshape = Reshape(chunk, pad=0.0, outermost=True)
    else:
        reshape = Reshape(chunk, pad=0.0)
    return Case(choices, [(drawn, FLOAT)], reshape, [data, flags], plain=_number_or_flag)


def _number_or_flag(value: Tile | bool) -> object:
    return value if isinstance(value, bool) else number_in(value)


def reshape_outer(choices: Choices) -> Case:
    dims = 2 + choices.below(2)
    dimension = 1 + choices.below(dims - 1)
    chunk = 1 + choices.below(3)
    fixed = [chunk * choices.pick((1, 2, 0))] + [None] * dimension
    drawn = draw(choices, dims, fixed=fixed)
    data = definitions.reshape(chunk, dimension, None, dims, drawn.tensor)
    flags = definitions.map_values(lambda _: False, dims + 1, data)
    return Case(choices, [(drawn, NUMBER)], Reshape(chunk, dimension), [data, flags])


def promote(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3))
    inside = choices.below(drawn.dims + 1)
    expected = definitions.promote(inside, drawn.dims, drawn.tensor)
    default = inside == drawn.dims and choices.maybe()
    operator = Promote() if default else Promote(inside)
    return Case(choices, [(drawn, NUMBER)], operator, [expected])


def repeat(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3))
    count = 1 + choices.below(4)
    expected = definitions.repeat(count, drawn.dims, drawn.tensor)
    return Case(choices, [(drawn, NUMBER)], Repeat(count), [expected])


def expand(choices: Choices) -> Case:
    reference = draw(choices, 1 + choices.below(3))
    rank = 1 + choices.below(reference.dims)
    outer = reference.dims - rank
    numbers = iter(range(1 << 20))

    def once(_: object) -> object:
        part: object = next(numbers)
        for _ in range(rank):
            part = [part]
        return part

    source = Drawn(
        definitions.at_depth(once, outer, reference.tensor), (*reference.shape[:outer], *[1] * rank)
    )
    expected = definitions.expand(rank, source.dims, source.tensor, reference.tensor)
    return Case(choices, [(source, NUMBER), (reference, NUMBER)], Expand(rank), [expected])


def initial(choices: Choices) -> Case:
    inner = [1 + choices.below(3) for _ in range(choices.below(3))]
    drawn = draw(choices, 1 + len(inner), tile, fixed=inner)
    count = 1 + choices.below(3)
    numbers = definitions.map_values(number_in, drawn.dims, drawn.tensor)
    keep = isinstance(drawn.shape[0], int) and drawn.shape[0] >= count and choices.maybe()
    expected = definitions.initial(7.0, count, inner, numbers, keep=keep)
    operator = Initial(7, count, keep_length=keep)
    return Case(choices, [(drawn, FLOAT)], operator, [expected], plain=number_in)


CASES = {
    "Flatten": flatten,
    "Reshape of the innermost dimension": reshape_innermost,
    "Reshape of an outer dimension": reshape_outer,
    "Promote": promote,
    "Repeat": repeat,
    "Expand": expand,
    "Initial": initial,
}
