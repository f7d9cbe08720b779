"""Parts of what was put together, through the views that are taken of the whole: against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, simulate
from operators.kernels.concatenate import Concatenate, Concatenated, parts_of
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


@examples(quick=50, deep=200)
@given(st.data())
def test_parts(data: st.DataObject) -> None:
    """What the views show of the parts, one behind the other, is what they show of the whole."""
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


def test_cache_as_models_see_it() -> None:
    """Cached and new keys stay apart when heads are shared; the heads are of one piece."""
    parts = tuple(View.of(_computed((2, 2, size, 4))) for size in (5, 1))
    shape = (2, 2, 6, 4)
    whole = Concatenated("keys", shape, FLOAT, Layout.tiled(shape, shape), parts, 2)
    view = View.of(whole).reshaped((2, 2, 1, 6, 4)).expanded((2, 2, 3, 6, 4))
    view = view.reshaped((2, 6, 6, 4))

    assert [(2, 6, 5, 4), (2, 6, 1, 4)] == [each.shape for each in parts_of(view, 2)]
    assert (view,) == parts_of(view, 1)


@pytest.mark.parametrize(
    ("shapes", "dim", "rows", "tile"),
    [
        # Along rows as many as divide all parts; what is in front of them one by one.
        (((2, 4, 6), (2, 2, 6)), 1, 16, (1, 2, 6)),
        (((2, 4, 6), (2, 3, 6)), 1, 16, (1, 1, 6)),
        (((8, 6), (4, 6)), 0, 16, (4, 6)),
        (((8, 6), (12, 6)), 0, 2, (2, 6)),
        (((6, 6), (3, 6)), 0, 2, (1, 6)),
        (((2, 4, 6), (4, 4, 6)), 0, 8, (2, 4, 6)),
        # Columns of single rows.
        (((2, 4, 6), (2, 4, 9)), 2, 16, (1, 1, 3)),
        (((4, 6), (4, 12), (4, 8)), 1, 16, (1, 2)),
        (((4, 12), (4, 8)), 1, 16, (1, 4)),
    ],
)
def test_tiles_of_the_whole(
    shapes: tuple[tuple[int, ...], ...], dim: int, rows: int, tile: tuple[int, ...]
) -> None:
    """They are tiles of each part, which comes in the same order."""
    parts = [View.of(_computed(shape)) for shape in shapes]
    kernel = Concatenate.of("y", parts, dim, Schedule(tile_rows=rows))
    (result,) = kernel.results
    assert isinstance(result, Concatenated)
    size = sum(shape[dim] for shape in shapes)
    whole = (*shapes[0][:dim], size, *shapes[0][dim + 1 :])
    assert result.layout == Layout.tiled(whole, tile)
    assert [each.layout for each in kernel.operands] == [
        Layout.tiled(shape, tile) for shape in shapes
    ]


@pytest.mark.parametrize(
    ("rows", "tile"), [(1, (1, 1, 4)), (3, (1, 1, 4)), (6, (2, 3, 4))]
)  # fmt: skip
def test_tiles_that_views_have(rows: int, tile: tuple[int, ...]) -> None:
    """Where three rows of a view are no tile of what is there, single rows are taken."""
    view = View.of(_computed((6, 4))).reshaped((2, 3, 4)).permuted((1, 2, 0)).reshaped((2, 3, 4))
    kernel = Concatenate.of("y", [view, view], 0, Schedule(tile_rows=rows))
    assert Layout.tiled((4, 3, 4), tile) == kernel.results[0].layout  # type: ignore[attr-defined]


def test_parts_through_each_view() -> None:
    """A dimension in front, another order, another shape and a part of another dimension."""
    shapes = (3, 1, 2), (3, 1, 4)
    parts = tuple(View.of(_computed(shape)) for shape in shapes)
    whole = (3, 1, 6)
    joined = Concatenated("y", whole, FLOAT, Layout.tiled(whole, whole), parts, 2)
    view = View.of(joined).expanded((2, 3, 5, 6))
    assert [(2, 3, 5, 2), (2, 3, 5, 4)] == [each.shape for each in parts_of(view, 3)]
    wide = View.of(joined).permuted((0, 2, 1)).expanded((3, 6, 7))
    assert [(3, 2, 7), (3, 4, 7)] == [each.shape for each in parts_of(wide, 1)]
    before = parts_of(wide.sliced(0, 1, 2), 1)
    assert [(2, 2, 7), (2, 4, 7)] == [each.shape for each in before]
    often = parts_of(View.of(joined).expanded((2, 3, 4, 3, 1, 6)), 5)
    assert [(2, 3, 4, 3, 1, 2), (2, 3, 4, 3, 1, 4)] == [each.shape for each in often]
    turned = view.permuted((3, 0, 2, 1))
    assert [(2, 2, 5, 3), (4, 2, 5, 3)] == [each.shape for each in parts_of(turned, 0)]
    split = turned.reshaped((6, 10, 3, 1))
    assert [(2, 10, 3, 1), (4, 10, 3, 1)] == [each.shape for each in parts_of(split, 0)]
    cut = split.sliced(2, 1, 2).sliced(1, 4, 6)
    found = parts_of(cut, 0)
    assert [(2, 6, 2, 1), (4, 6, 2, 1)] == [each.shape for each in found]
    for part, shape in zip(found, shapes, strict=True):
        array = np.arange(math.prod(shape)).reshape(shape)
        seen = np.broadcast_to(array, (2, 3, 5, shape[-1])).transpose(3, 0, 2, 1)
        seen = seen.reshape(shape[-1], 10, 3, 1)[:, 4:10, 1:3]
        np.testing.assert_array_equal(seen, _seen(part, array))
    # A part of the dimension itself, and one that is of several parts, are of one piece.
    for whole_view in (cut.sliced(0, 1, 2), split.reshaped((60, 3))):
        for dim in range(len(whole_view.shape)):
            assert (whole_view,) == parts_of(whole_view, dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("rows", [1, 4])
def test_put_together(dim: int, rows: int) -> None:
    """Parts of two sizes one behind the other, tile by tile: one operator and its selectors."""
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
