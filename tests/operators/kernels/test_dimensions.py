"""Streams under other dimensions: the same elements in the same order."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore
from operators.shape import redimensioned
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
