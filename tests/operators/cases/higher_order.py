"""Cases of the higher-order operators and of Zip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

import operators as op
from fabric import Dim, Stream, Tile, TileType
from fabric.extend import Element, Empty, Wiring
from tests import definitions
from tests.operators.driving import (
    FLOAT,
    NUMBER,
    Case,
    Choices,
    Drawn,
    draw,
    number_in,
    ragged,
    tile,
)
from tests.own import own

_FUNCTIONS: tuple[tuple[Any, Any], ...] = (
    (op.Add(), lambda a, b: a + b),
    (op.Mul(), lambda a, b: a * b),
    (op.Maximum(), max),
)


def _alike(choices: Choices, drawn: Drawn) -> Drawn:
    return Drawn(
        definitions.map_values(lambda _: tile(choices.below(5)), drawn.dims, drawn.tensor),
        drawn.shape,
    )


def _numbers(drawn: Drawn) -> Any:
    return definitions.map_values(number_in, drawn.dims, drawn.tensor)


def map_two(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3), tile)
    other = _alike(choices, drawn)
    function, meaning = choices.pick(_FUNCTIONS)
    expected = definitions.map_values(meaning, drawn.dims, _numbers(drawn), _numbers(other))
    zipped = choices.maybe()

    def wire(left: Stream, right: Stream) -> Stream:
        return op.Map(function)(op.Zip()(left, right)) if zipped else op.Map(function)(left, right)

    return Case(choices, [(drawn, FLOAT), (other, FLOAT)], wire, [expected], plain=number_in)


def zip_three(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3))
    count = 2 + choices.below(2)
    tensors = [
        definitions.map_values(lambda value, k=k: (k, value), drawn.dims, drawn.tensor)
        for k in range(count)
    ]
    expected = definitions.zip_values(drawn.dims, *tensors)
    inputs = [(Drawn(tensor, drawn.shape), NUMBER) for tensor in tensors]
    return Case(choices, inputs, op.Zip(), [expected])


def _product_sum(total: Any, pair: Any) -> Any:
    return total + pair[0] * pair[1]


def _folding(choices: Choices, drawn: Drawn, *, scan: bool) -> Case:
    rank = 1 + choices.below(drawn.dims - 1)
    define = definitions.scan if scan else definitions.accum
    operator = op.Scan if scan else op.Accum
    if choices.maybe():
        expected = define(lambda a, b: a + b, 0, drawn.dims, rank, _numbers(drawn))
        return Case(
            choices, [(drawn, FLOAT)], operator(op.Sum(), rank), [expected], plain=number_in
        )
    other = _alike(choices, drawn)
    pairs = definitions.zip_values(drawn.dims, _numbers(drawn), _numbers(other))
    expected = define(_product_sum, 0, drawn.dims, rank, pairs)
    zipped = choices.maybe()
    fold = operator(op.MatmulSum(), rank)

    def wire(left: Stream, right: Stream) -> Stream:
        return fold(op.Zip()(left, right)) if zipped else fold(left, right)

    return Case(choices, [(drawn, FLOAT), (other, FLOAT)], wire, [expected], plain=number_in)


def accum(choices: Choices) -> Case:
    return _folding(choices, draw(choices, 2 + choices.below(3), tile), scan=False)


def scan(choices: Choices) -> Case:
    return _folding(choices, draw(choices, 2 + choices.below(2), tile), scan=True)


def _grown(choices: Choices, *, rows: bool, cols: int = 2) -> tuple[Drawn, TileType]:
    def grown(number: int) -> Tile:
        size = 1 + choices.below(3)
        shape = (size, cols) if rows else (cols, size)
        numbers = np.arange(size * cols, dtype=np.float32) + 10 * number
        return Tile(
            *shape, FLOAT.dtype, numbers.reshape(shape), valid_rows=choices.below(shape[0] + 1)
        )

    drawn = draw(choices, 2 + choices.below(2), grown)
    size = ragged(9)
    return drawn, TileType(size, cols, FLOAT.dtype) if rows else TileType(cols, size, FLOAT.dtype)


def _lines(value: Tile) -> tuple[list[list[float]], int]:
    assert value.data is not None
    assert value.data.shape == (value.rows, value.cols)
    return value.data.tolist(), value.valid_rows


def accum_rows(choices: Choices) -> Case:
    drawn, value = _grown(choices, rows=True)
    tiles = definitions.map_values(_lines, drawn.dims, drawn.tensor)
    expected = definitions.accum(
        lambda a, b: (a[0] + b[0], a[1] + b[1]), ([], 0), drawn.dims, 1, tiles
    )
    return Case(choices, [(drawn, value)], op.Accum(op.RetileRow()), [expected], plain=_lines)


def accum_cols(choices: Choices) -> Case:
    drawn, value = _grown(choices, rows=False)
    tiles = definitions.map_values(_lines, drawn.dims, drawn.tensor)

    def beside(left: Any, right: Any) -> Any:
        valid = right[1] if left == ([[], []], 2) else left[1]
        return [a + b for a, b in zip(left[0], right[0], strict=True)], valid

    expected = definitions.accum(beside, ([[], []], 2), drawn.dims, 1, tiles)
    return Case(choices, [(drawn, value)], op.Accum(op.RetileCol()), [expected], plain=_lines)


def flat_map(choices: Choices) -> Case:
    drawn, value = _grown(choices, rows=True)
    valid_only = choices.maybe()
    kind = choices.below(3)
    split: op.Split = op.SplitRows(valid_only)

    def parts(what: Tile) -> list[Any]:
        lines, valid = _lines(what)
        if kind == 1:
            return [([list(line)], 1) for line in zip(*lines, strict=True)]
        if kind == 2:
            return [
                [([[number]], int(row < valid)) for number in line]
                for row, line in enumerate(lines)
            ]
        kept = lines[:valid] if valid_only else lines
        return [([line], int(row < valid)) for row, line in enumerate(kept)]

    if kind == 1:
        split = op.SplitCols()
    elif kind == 2:
        split = op.SplitTiles(1, 1)
    expected = definitions.flat_map(parts, drawn.dims, drawn.tensor)
    plain = _turned if kind == 1 else _lines
    return Case(choices, [(drawn, value)], op.FlatMap(split), [expected], plain=plain)


def _turned(value: Tile) -> tuple[list[list[float]], int]:
    return _lines(value)[0], value.valid_rows


@own
@dataclass(frozen=True)
class Deep(op.Split):
    rank = 2

    @staticmethod
    def tensor(number: int) -> list[list[list[int]]]:
        return [
            [[first, second] if second else [] for second in range(first)]
            for first in range(number)
        ]

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        return (ragged(5), ragged(6), ragged(7)), tile

    @override
    def apply(self, tile: Tile) -> list[Element]:
        elements: list[Any] = []
        for part in self.tensor(int(number_in(tile))):
            if not part:
                elements.append((Empty(1), 2))
            for index, numbers in enumerate(part):
                level = 2 if index == len(part) - 1 else 1
                if not numbers:
                    elements.append((Empty(0), level))
                else:
                    elements += [(each, 0) for each in numbers[:-1]] + [(numbers[-1], level)]
        return elements


def flat_map_deep(choices: Choices) -> Case:
    drawn = draw(choices, 1 + choices.below(3), lambda _: op.integer(choices.below(4)))
    expected = definitions.flat_map(
        lambda value: Deep.tensor(int(number_in(value))), drawn.dims, drawn.tensor
    )
    return Case(choices, [(drawn, op.INTEGER)], op.FlatMap(Deep()), [expected])


@dataclass(frozen=True)
class Extremes(op.Reduction):
    operands = 2

    @override
    def infer(self, group: Dim, *inputs: TileType) -> Any:
        from fabric import TupleType

        return TupleType(inputs)

    @override
    def flops(self, *inputs: Any) -> Any:
        return 2

    @override
    def start(self, result: Any, functional: bool) -> Any:
        return (99, -99)

    @override
    def update(self, state: Any, *inputs: Tile) -> Any:
        if inputs[0].data is None:
            return state
        low, high = map(number_in, inputs)
        return min(state[0], low), max(state[1], high)

    @override
    def finish(self, state: Any, result: Any, functional: bool) -> Any:
        return tuple(tile(each) if functional else Tile(1, 1, FLOAT.dtype) for each in state)


def tuples(choices: Choices) -> Case:
    drawn = draw(choices, 2 + choices.below(2), tile)
    other = _alike(choices, drawn)
    pairs = definitions.zip_values(drawn.dims, _numbers(drawn), _numbers(other))
    rank = 1 + choices.below(drawn.dims - 1)
    scanned = choices.maybe()
    define, operator = (definitions.scan, op.Scan) if scanned else (definitions.accum, op.Accum)
    expected = define(
        lambda state, pair: (min(state[0], pair[0]), max(state[1], pair[1])),
        (99, -99),
        drawn.dims,
        rank,
        pairs,
    )
    return Case(
        choices,
        [(drawn, FLOAT), (other, FLOAT)],
        lambda left, right: operator(Extremes(), rank)(op.Zip()(left, right)),
        [expected],
        plain=lambda value: tuple(map(number_in, value)),
    )


CASES = {
    "Map": map_two,
    "Zip": zip_three,
    "Accum": accum,
    "Accum by rows": accum_rows,
    "Accum by columns": accum_cols,
    "Accum and Scan of tuples": tuples,
    "Scan": scan,
    "FlatMap": flat_map,
    "FlatMap of rank 2": flat_map_deep,
}
