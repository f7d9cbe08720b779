from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, simulate
from operators.kernels.concatenate import Concatenate, Concatenated, parts_of
from operators.kernels.following import followed_whole, rows_layout
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, View
from operators.reassemble import Reassemble
from tests.operators.kernels.driving import driven
from tests.profiles import examples

FLOAT = np.dtype(np.float32)
SIZES = st.integers(1, 3)


def _computed(shape: tuple[int, ...]) -> Computed:
    return Computed("x", shape, FLOAT, Layout.tiled(shape, shape))


def _seen(view: View, array: NDArray[np.int64]) -> NDArray[np.int64]:
    for step, _ in view.steps:
        array = step.seen(array)
    return array


@st.composite
def _views(draw: st.DrawFn, view: View) -> View:
    for kind in draw(
        st.lists(st.sampled_from(["permute", "split", "expand", "slice"]), max_size=4)
    ):
        shape = view.shape
        dim = draw(st.integers(0, len(shape) - 1))
        match kind:
            case "permute":
                view = view.permuted(draw(st.permutations(range(len(shape)))))
            case "split":
                outer = draw(st.sampled_from([n for n in (1, 2, 3) if shape[dim] % n == 0]))
                split = (*shape[:dim], outer, shape[dim] // outer, *shape[dim + 1 :])
                merged = (*shape[: dim - 1], math.prod(shape[dim - 1 : dim + 1]), *shape[dim + 1 :])
                view = view.reshaped(draw(st.sampled_from([split, merged])) if dim else split)
            case "expand":
                wide = tuple(draw(SIZES) if size == 1 else size for size in shape)
                view = view.expanded((*draw(st.sampled_from([(), (2,)])), *wide))
            case _:
                first = draw(st.integers(0, shape[dim] - 1))
                view = view.sliced(dim, first, draw(st.integers(1, shape[dim] - first)))
    return view


@examples(quick=25, deep=200)
@given(st.data())
def test_views_of_parts_equal_views_of_the_whole(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(SIZES, min_size=2, max_size=3)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(SIZES, min_size=2, max_size=3))
    arrays, parts = [], []
    for number, size in enumerate(sizes):
        own = (*shape[:dim], size, *shape[dim + 1 :])
        arrays.append(np.arange(math.prod(own)).reshape(own) + 1000 * number)
        parts.append(View.of(_computed(own)))
    whole = np.concatenate(arrays, axis=dim)
    layout = Layout.tiled(whole.shape, whole.shape)
    joined = Concatenated("y", whole.shape, FLOAT, layout, tuple(parts), dim)
    view = data.draw(_views(View.of(joined)))
    along = data.draw(st.integers(0, len(view.shape) - 1))

    found = parts_of(view, along)

    if len(found) == 1:
        assert found[0] is view
        return
    shown = [_seen(each, array) for each, array in zip(found, arrays, strict=True)]
    assert [each.shape for each in found] == [each.shape for each in shown]
    np.testing.assert_array_equal(_seen(view, whole), np.concatenate(shown, axis=along))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("rows", [1, 4])
def test_parts_of_two_sizes_are_joined_tile_by_tile(dim: int, rows: int) -> None:
    shapes = [tuple(size if axis == dim else 4 for axis in range(3)) for size in (2, 4, 2)]
    arrays = [np.arange(math.prod(each)).reshape(each) + 100.0 * n for n, each in enumerate(shapes)]
    parts = [View.of(_computed(shape)) for shape in shapes]
    kernel = Concatenate.of("y", parts, dim, Schedule(tile_rows=rows))
    data = {part.source: array for part, array in zip(parts, arrays, strict=True)}
    program = driven(kernel, data, lambda: np.concatenate(arrays, axis=dim))
    report = simulate(program)
    assert report.verified
    assert report.off_chip_traffic_bytes == 2 * 4 * 8 * 16
    assert sum(isinstance(each.operator, Reassemble) for each in program.nodes) == 1


def test_rows_of_a_tile_pass_over_a_dimension_of_one() -> None:
    assert rows_layout((2, 4, 1, 10), 4, 10).tile == (1, 4, 1, 10)


@pytest.mark.parametrize(("wish", "cols"), [(6, 6), (4, 1)])
def test_tiles_of_no_part_of_the_source_become_narrower(wish: int, cols: int) -> None:
    turned = View.of(_computed((6, 4))).permuted((1, 0)).reshaped((12, 2)).permuted((1, 0))

    # Three columns are a row of the exchanged source: six are two rows, four and two are no part.
    (layout,) = followed_whole((turned,), (0,), Schedule(tile_cols=wish))

    assert layout.tile == (2, cols)
