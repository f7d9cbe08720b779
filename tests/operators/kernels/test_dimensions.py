"""Streams under other dimensions: the same elements in the same order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, ShapeError, StreamType, simulate
from fabric.extend import Operator
from fabric.graph.values.dims import symbol
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Promote, Reshape
from operators.shape import redimensioned
from tests.operators.driving import FLOAT, Emit
from tests.profiles import examples


@st.composite
def _shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two ways to write one number as a product, ones included."""
    factors = draw(st.lists(st.sampled_from([1, 1, 2, 2, 3, 5]), min_size=1, max_size=5))
    return _grouped(draw, factors), _grouped(draw, draw(st.permutations(factors)))


def _grouped(draw: st.DrawFn, factors: list[int]) -> tuple[int, ...]:
    found = [1]
    for each in factors:
        if draw(st.booleans()):
            found.append(each)
        else:
            found[-1] *= each
    return tuple(found)


@examples(quick=25, deep=100)
@given(_shapes())
def test_elements_and_shape(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Every element is there, in order, under the shape that was asked for."""
    before, after = shapes
    count = math.prod(before)
    x = np.arange(float(count)).reshape(count, 1)
    with Program("redimensioned", mode="functional") as program:
        tiles = LinearOffChipLoad(x, (1, 1), before, _strides(before))()
        stream = redimensioned(tiles, after)
        assert stream.shape == after
        LinearOffChipStore("y")(stream)
    program.expect(y=lambda: x.reshape(-1, after[-1]))
    assert simulate(program).verified


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def test_nothing_is_wired_where_nothing_changes() -> None:
    """A stream that has the shape is handed back; one dimension that splits takes one operator."""
    with Program("redimensioned") as program:
        tiles = LinearOffChipLoad(np.ones((12, 1)), (1, 1), (3, 4), (4, 1))()
        assert redimensioned(tiles, (1, 3, 4)) is tiles
        split = redimensioned(tiles, (1, 3, 2, 2))
        LinearOffChipStore("y")(split)
    assert len(program.nodes) == 3


WIRED: list[tuple[tuple[int, ...], tuple[int, ...], list[Operator]]] = [
    ((12,), (3, 4), [Reshape(4)]),
    ((3, 4), (12,), [Flatten(0, 1)]),
    ((2, 3, 4), (6, 4), [Flatten(1, 2)]),
    ((2, 3, 4), (2, 12), [Flatten(0, 1)]),
    ((2, 3, 4), (24,), [Flatten(0, 2)]),
    ((1, 2, 6), (1, 4, 3), [Flatten(0, 1), Reshape(3)]),
    ((4, 6), (3, 8), [Flatten(0, 1), Reshape(8)]),
    ((12, 5), (2, 2, 3, 5), [Reshape(3, 1), Reshape(2, 2)]),
    ((3, 4, 5, 6), (3, 20, 2, 3), [Flatten(1, 2), Reshape(3)]),
    ((2, 6), (1, 2, 6), [Promote(2)]),
    ((12,), (1, 12), [Promote(1)]),
    ((3, 4), (3, 1, 4), [Promote(1)]),
    ((6,), (6, 1), [Promote(0)]),
    ((2, 2, 5), (4, 5, 1), [Flatten(1, 2), Promote(0)]),
    ((1, 3, 4), (3, 4), [Flatten(1, 2)]),
    ((2, 1, 3), (2, 3), [Flatten(0, 1)]),
    ((2, 3), (2, 3), []),
]


@pytest.mark.parametrize(("before", "after", "operators"), WIRED)
def test_no_more_is_wired_than_it_takes(
    before: tuple[int, ...], after: tuple[int, ...], operators: list[Operator]
) -> None:
    """Only dimensions that change are put together, once, and split from the inside."""
    with Program("redimensioned") as program:
        stream = Emit(StreamType(before, FLOAT), [])()
        assert after == redimensioned(stream, after).shape
    assert operators == [node.operator for node in program.nodes[1:]]


def test_another_number_of_elements() -> None:
    """It is refused, and so are elements whose number data decide."""
    with Program("refused"):
        for shape in ((2, 3), (symbol("n"), 3)):
            stream = Emit(StreamType(shape, FLOAT), [])()
            with pytest.raises(ShapeError) as caught:
                redimensioned(stream, (3, 3))
            assert caught.value.message == (
                f"{stream} shall have the shape [3, 3]: expected as many elements"
            )
