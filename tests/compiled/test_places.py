from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import operators as op
from fabric import Program, SelectorType, Stream, StreamType, Tile, TileType, simulate
from tests.compiled.both import both
from tests.definitions import at_depth
from tests.operators.driving import Emit, encode, ragged, selector
from tests.operators.writing import read
from tests.profiles import examples

DIMENSIONS = 4

FLOAT = np.dtype(np.float32)

SIZED = TileType(ragged(7), 4, FLOAT)
SQUARE = TileType(4, 4, FLOAT)
NUMBER = TileType(1, 1, np.dtype(np.int64))

Nest: TypeAlias = Any


def _sized(number: int) -> Tile:
    return Tile(1 + number % 5, 4, FLOAT)


def _square(_: int) -> Tile:
    return Tile(4, 4, FLOAT)


def _number(number: int) -> Tile:
    return Tile(1, 1, NUMBER.dtype, np.full((1, 1), number % 8))


def _selector(number: int) -> Any:
    return selector(2)({number % 2} if number % 5 else set())


Values = tuple[Any, Callable[[int], Any]]


class Joining(NamedTuple):
    operator: Callable[..., Any]
    values: tuple[Values, Values]
    inner: int = 0
    left_out: int = 0


SIZES: Values = (SIZED, _sized)
SQUARES: Values = (SQUARE, _square)
NUMBERS: Values = (NUMBER, _number)
SELECTORS: Values = (SelectorType(2), _selector)

JOINING = {
    "zip": Joining(op.Zip(), (SIZES, NUMBERS)),
    "map": Joining(op.Map(op.Add()), (SQUARES, SQUARES)),
    "scan": Joining(op.Scan(op.MatmulSum(), rank=1), (SQUARES, SQUARES)),
    "accum": Joining(op.Accum(op.MatmulSum(), rank=2), (SQUARES, SQUARES)),
    "expand 1": Joining(op.Expand(1), (SIZES, NUMBERS), inner=1),
    "expand 2": Joining(op.Expand(2), (NUMBERS, SIZES), inner=2),
    "partition 0": Joining(op.Partition(2), (SIZES, SELECTORS)),
    "partition 1": Joining(op.Partition(2, 1), (SIZES, SELECTORS), left_out=1),
    "partition 2": Joining(op.Partition(2, 2), (NUMBERS, SELECTORS), left_out=2),
    "store": Joining(
        op.RandomOffChipStore("y", op.Tensor.of(np.zeros((32, 4))), tile=(4, 4)), (NUMBERS, SQUARES)
    ),
}


def drawn(source: random.Random, dimensions: int) -> Nest:
    sizes = (2, 3, 1, 2, 0) if dimensions < DIMENSIONS else (6, 4, 5)
    size = source.choice(sizes)
    return [drawn(source, dimensions - 1) if dimensions > 1 else None for _ in range(size)]


def changed(source: random.Random, nest: Nest, dimensions: int) -> Nest:
    at = source.randrange(len(nest)) if nest else 0
    deeper = dimensions > 1
    if nest and deeper and source.random() < 0.7:
        return [*nest[:at], changed(source, nest[at], dimensions - 1), *nest[at + 1 :]]
    new = source.choice([[], [drawn(source, dimensions - 1) if deeper else None]])
    return [*nest[:at], *new, *nest[at + source.choice((0, 1)) :]]


def program(joining: Joining, seed: int) -> Program:
    source = random.Random(seed)
    nest = drawn(source, DIMENSIONS)
    shape = tuple(ragged(axis) for axis in range(DIMENSIONS))
    one: Nest = None
    for _ in range(joining.inner):
        one = [one]
    outer, kept = DIMENSIONS - joining.inner, DIMENSIONS - joining.left_out
    nests = [at_depth(lambda _: one, outer, nest), at_depth(lambda _: None, kept, nest)]
    shapes = [(*shape[:outer], *[1] * joining.inner), shape[:kept]]
    which = source.randrange(2)
    nests[which] = changed(source, nests[which], len(shapes[which]))
    with Program("places", channel_depth=source.choice((1, 2, 5))) as made:
        streams = []
        for each, sizes, (kind, value) in zip(nests, shapes, joining.values, strict=True):
            number = count(source.randrange(5))
            tensor = at_depth(lambda _: value(next(number)), len(sizes), each)  # noqa: B023
            late = source.choice((0.1, 0.5, 0.9))
            elements = encode(tensor, len(sizes), lambda: source.random() < late)  # noqa: B023
            gaps = source.choice(((0,), (1,), (0, 0, 5), (7, 0)))
            streams.append(Emit(StreamType(sizes, kind), elements, gaps)())
        outputs = joining.operator(*streams)
        for output in (outputs,) if isinstance(outputs, Stream) else outputs:
            op.Consumer()(output)
    return made


PLACES = pytest.mark.parametrize("name", JOINING)


@PLACES
@examples(quick=2, deep=40)
@given(seed=st.integers(0, 1 << 32))
@example(seed=98)
def test_error_places_are_equal_in_both_engines(
    name: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    both(lambda: program(JOINING[name], seed), tmp_path_factory.mktemp("places"))


@pytest.mark.parametrize("engine", ["tasks", "compiled"])
def test_error_names_elements_read_long_before(engine: Any) -> None:
    group = " 0 0|S1 -1|S2 -2|S3"
    values = read("1|S3 2|S3 3|S3 4|S3", lambda rows: Tile(int(rows), 4, FLOAT))
    reference = read(3 * group + " 0 0|S1 -1|S2 0 0|S3", lambda _: _number(0))
    sizes = (ragged(0), ragged(1), ragged(2))
    with Program("before") as program:
        source = Emit(StreamType((*sizes, 1), SIZED), values)()
        guide = Emit(StreamType((*sizes, ragged(3)), NUMBER), reference)()
        op.Consumer()(op.Expand(1)(source, guide))

    report = simulate(program, mode="timing", engine=engine)

    assert report.error is not None
    assert report.error["message"].startswith(
        "expand_1: Tile(4x4 float32) at [3, 0, 0, 0] of emit_1 closes 3 dimensions and an empty "
        "dimension 1 at [3, 0, 1, 0] of emit_2 closes 2 dimensions: expected equal structures"
    )
