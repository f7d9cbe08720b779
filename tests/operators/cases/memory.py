"""Cases of the on-chip and off-chip memory operators and of the address generators."""

from __future__ import annotations

from itertools import count
from math import prod
from typing import Any

import numpy as np

import operators as op
from fabric import SelectorType, Stream, Tile, TileType
from operators.tiles.integers import INTEGER, integer
from tests import definitions
from tests.operators import driving


def _buffers(choices: driving.Choices, rank: int, *, static: bool) -> driving.Drawn:
    outer = 1 + choices.below(3)
    inner: list[int | None] = [
        choices.pick((2, 1, 3) if static else (2, 1, 3, 0)) for _ in range(rank)
    ]
    if not static:
        inner[0] = None
    return driving.draw(choices, outer + rank, driving.tile, fixed=inner)


def _numbers(drawn: driving.Drawn) -> Any:
    return definitions.map_values(driving.number_in, drawn.dims, drawn.tensor)


def streamify(choices: driving.Choices) -> driving.Case:
    rank = 1 + choices.below(2)
    affine = choices.maybe()
    drawn = _buffers(choices, rank, static=affine)
    repeats = tuple(1 + choices.below(3) for _ in range(choices.below(3)))
    pattern = None
    if affine:
        size = prod(int(dim) for dim in drawn.shape[-rank:])
        first, second = choices.below(size), choices.below(3)
        shape = (1 + choices.below(3), 1 + first // max(1, second))
        strides = (choices.below((size - first - 1) // max(1, shape[0] - 1) + 1), second)
        pattern = (shape, strides, choices.below(size - _reach(shape, strides)))
    expected = definitions.streamify(_numbers(drawn), drawn.dims - rank, rank, repeats, pattern)

    def wire(source: Stream) -> Stream:
        return op.Streamify(repeats, *(pattern or ()))(op.Bufferize(rank)(source))

    return driving.Case(
        choices, [(drawn, driving.FLOAT)], wire, [expected], plain=driving.number_in
    )


def streamify_referred(choices: driving.Choices) -> driving.Case:
    rank, extra = 1 + choices.below(2), choices.below(3)
    drawn = _buffers(choices, rank, static=False)
    outer = drawn.dims - rank

    def group(depth: int) -> Any:
        return [group(depth - 1) for _ in range(choices.pick((2, 1, 0, 3)))] if depth else 0

    guides = definitions.at_depth(lambda _: group(extra), outer, drawn.tensor)
    reference = driving.Drawn(
        guides, (*drawn.shape[:outer], *map(driving.ragged, range(4, 4 + extra)))
    )
    expected = definitions.streamify(
        _numbers(drawn), outer, rank, (), None, reference.tensor, extra
    )

    def wire(source: Stream, guide: Stream) -> Stream:
        return op.Streamify()(op.Bufferize(rank)(source), guide)

    return driving.Case(
        choices,
        [(drawn, driving.FLOAT), (reference, driving.NUMBER)],
        wire,
        [expected],
        plain=driving.number_in,
    )


def _matrix(choices: driving.Choices) -> tuple[np.ndarray[Any, Any], tuple[int, int]]:
    rows, cols = 1 + choices.below(2), 1 + choices.below(3)
    shape = (rows * (1 + choices.below(3)), cols * (1 + choices.below(3)))
    return np.arange(prod(shape), dtype=np.float32).reshape(shape), (rows, cols)


def _lines(value: Tile) -> Any:
    assert value.data is not None
    return value.data.astype(float).tolist()


def _strides(choices: driving.Choices, shape: tuple[int, ...], items: int) -> tuple[int, ...]:
    last, strides = items - 1, []
    for size in shape:
        # A dimension of 1 and an empty view may have any stride.
        free = size == 1 or 0 in shape
        strides.append(choices.below(5 if free else min(2, last // (size - 1)) + 1))
        last -= 0 if free else (size - 1) * strides[-1]
    return tuple(strides)


def _reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if 0 in shape:
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def load(choices: driving.Choices) -> driving.Case:
    matrix, size = _matrix(choices)
    items = definitions.cut(matrix.tolist(), *size)
    dims = choices.below(3)
    shape = tuple(choices.pick((2, 1, 3, 0)) for _ in range(dims))
    strides = _strides(choices, shape, len(items))
    offset = choices.below(len(items) - _reach(shape, strides))
    reference = driving.draw(choices, 1 + choices.below(2))
    expected = definitions.per_reference(
        definitions.affine(items, shape, strides, offset), reference.dims, reference.tensor
    )
    operator = op.LinearOffChipLoad(matrix, size, shape, strides, offset)
    return driving.Case(choices, [(reference, driving.NUMBER)], operator, [expected], plain=_lines)


def random_load(choices: driving.Choices) -> driving.Case:
    matrix, size = _matrix(choices)
    items = definitions.cut(matrix.tolist(), *size)
    drawn = driving.draw(choices, 1 + choices.below(3), lambda _: choices.below(len(items)))
    addresses = driving.Drawn(
        definitions.map_values(integer, drawn.dims, drawn.tensor), drawn.shape
    )
    expected = definitions.map_values(items.__getitem__, drawn.dims, drawn.tensor)
    operator = op.RandomOffChipLoad(matrix, size)
    return driving.Case(choices, [(addresses, INTEGER)], operator, [expected], plain=_lines)


def expert_addresses(choices: driving.Choices) -> driving.Case:
    tiles = 1 + choices.below(3)
    drawn = driving.draw(choices, 1 + choices.below(2), lambda _: choices.below(4))
    selectors = definitions.map_values(
        lambda expert: driving.selector(4)({expert}), drawn.dims, drawn.tensor
    )
    expected = definitions.expert_addresses(tiles, drawn.dims, drawn.tensor)
    inputs = [(driving.Drawn(selectors, drawn.shape), SelectorType(4, hits=1))]
    return driving.Case(choices, inputs, op.ExpertAddresses(tiles), [expected], plain=_integer_in)


def _integer_in(value: Tile) -> int:
    return int(driving.number_in(value))


def cache_read_addresses(choices: driving.Choices) -> driving.Case:
    requests = driving.draw(choices, 1 + choices.below(2), lambda _: choices.below(5))
    lengths = definitions.map_values(lambda _: choices.below(4), requests.dims, requests.tensor)
    expected = definitions.cache_read_addresses(4, requests.dims, requests.tensor, lengths)
    inputs = [
        (
            driving.Drawn(definitions.map_values(integer, requests.dims, each), requests.shape),
            INTEGER,
        )
        for each in (requests.tensor, lengths)
    ]
    return driving.Case(choices, inputs, op.CacheReadAddresses(4), [expected], plain=_integer_in)


def filter_last_tile(choices: driving.Choices) -> driving.Case:
    lengths = driving.draw(choices, 1 + choices.below(2), lambda _: choices.below(4))
    expected = definitions.filter_last_tile(lengths.dims, lengths.tensor)
    made = definitions.map_values(integer, lengths.dims, lengths.tensor)
    return driving.Case(
        choices,
        [(driving.Drawn(made, lengths.shape), INTEGER)],
        op.FilterLastTile(),
        [expected],
        plain=lambda value: set(value.hits),
    )


_names = count()


def store(choices: driving.Choices) -> driving.Case:
    drawn = driving.draw(choices, 1 + choices.below(3), driving.tile, fixed=[1 + choices.below(3)])
    expected = definitions.stacked(
        drawn.dims,
        definitions.map_values(
            lambda value: [[driving.number_in(value)]], drawn.dims, drawn.tensor
        ),
    )
    name = f"y{next(_names)}"

    def wire(source: Stream) -> list[Stream]:
        op.LinearOffChipStore(name)(source)
        return []

    wanted = np.array(expected).reshape(-1, len(expected[0]) if expected else 1)
    return driving.Case(choices, [(drawn, driving.FLOAT)], wire, [], stores={name: wanted})


def random_store(choices: driving.Choices) -> driving.Case:
    matrix, size = _matrix(choices)
    tiles = len(definitions.cut(matrix.tolist(), *size))
    across = matrix.shape[1] // size[1]
    drawn = driving.draw(choices, 1 + choices.below(2), lambda _: choices.below(tiles))
    numbers = iter(range(100, 1 << 20))
    wanted = matrix.copy()

    def block(address: int) -> Tile:
        number = next(numbers)
        for row in range(size[0]):
            for col in range(size[1]):
                wanted[address // across * size[0] + row, address % across * size[1] + col] = number
        return Tile(*size, driving.FLOAT.dtype, np.full(size, number, driving.FLOAT.dtype))

    blocks = driving.Drawn(definitions.map_values(block, drawn.dims, drawn.tensor), drawn.shape)
    addresses = driving.Drawn(
        definitions.map_values(integer, drawn.dims, drawn.tensor), drawn.shape
    )
    name = f"y{next(_names)}"
    return driving.Case(
        choices,
        [(addresses, INTEGER), (blocks, TileType(*size, driving.FLOAT.dtype))],
        op.RandomOffChipStore(name, matrix, size),
        [definitions.map_values(lambda _: True, drawn.dims, drawn.tensor)],
        stores={name: wanted},
    )


CASES = {
    "Bufferize and Streamify": streamify,
    "Streamify by a reference": streamify_referred,
    "LinearOffChipLoad": load,
    "RandomOffChipLoad": random_load,
    "LinearOffChipStore": store,
    "RandomOffChipStore": random_store,
    "ExpertAddresses": expert_addresses,
    "CacheReadAddresses": cache_read_addresses,
    "FilterLastTile": filter_last_tile,
}
