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


@examples(quick=12, deep=100)
@given(_shapes())
def test_elements_keep_their_order_under_other_dimensions(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
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
