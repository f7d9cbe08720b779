from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, ShapeError
from operators.kernels.following import (
    readable,
    rows_layout,
)
from operators.kernels.kernel import Operand
from operators.kernels.schedule import divisors
from operators.kernels.tensors import Computed, View
from tests.profiles import examples

FLOAT = np.dtype(np.float32)


@st.composite
def _viewed(draw: st.DrawFn, *, expands: bool = True) -> tuple[View, NDArray[np.int64]]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
    tile = tuple(draw(st.sampled_from(sorted(divisors(size)))) for size in shape)
    order = draw(st.permutations(range(len(shape))))
    source = Computed("x", shape, FLOAT, Layout.tiled(shape, tile, tuple(order)))
    view, array = View.of(source), np.arange(math.prod(shape)).reshape(shape)
    kinds = ["permute", "reshape", "slice", *(["expand"] if expands else [])]
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=4)):
        match kind:
            case "permute":
                dims = draw(st.permutations(range(array.ndim)))
                view, array = view.permuted(dims), array.transpose(dims)
            case "reshape":
                sizes = draw(st.sampled_from(_factorisations(array.size)))
                view, array = view.reshaped(sizes), array.reshape(sizes)
            case "slice":
                dim = draw(st.integers(0, array.ndim - 1))
                first = draw(st.integers(0, array.shape[dim] - 1))
                count = draw(st.integers(1, array.shape[dim] - first))
                view = view.sliced(dim, first, count)
                array = array.take(range(first, first + count), axis=dim)
            case _:
                wider = tuple(
                    draw(st.sampled_from([1, 2, 3])) if each == 1 else each for each in array.shape
                )
                wider = (*draw(st.sampled_from([(), (2,)])), *wider)
                view, array = view.expanded(wider), np.broadcast_to(array, wider)
    return view, array


def _factorisations(size: int) -> list[tuple[int, ...]]:
    pairs = [(each, size // each) for each in sorted(divisors(size))]
    triples = [(a, b, c) for a, rest in pairs for b in sorted(divisors(rest)) for c in (rest // b,)]
    return [(size,), *pairs, *triples]


def _tiles(array: NDArray[np.int64], layout: Layout) -> list[NDArray[np.int64]]:
    found = []
    for offset in layout.offsets():
        part = array[
            tuple(slice(at, at + size) for at, size in zip(offset, layout.tile, strict=True))
        ]
        found.append(part.reshape(layout.rows, layout.cols))
    return found


@examples(quick=25, deep=200)
@given(_viewed(), st.data())
def test_gathered_tiles_equal_those_of_the_view(
    viewed: tuple[View, NDArray[np.int64]], data: st.DataObject
) -> None:
    view, array = viewed
    assert view.shape == array.shape
    tile = tuple(data.draw(st.sampled_from(sorted(divisors(size)))) for size in array.shape)
    layout = Layout.tiled(array.shape, tile, tuple(data.draw(st.permutations(range(array.ndim)))))
    pulled = view.pull(layout)
    if pulled is None:
        return
    source = np.arange(math.prod(view.source.shape)).reshape(pulled.layout.shape)
    found = _tiles(source, pulled.layout)
    wanted = _tiles(array, layout)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.reshape(-1)[pulled.places], other)


@examples(quick=25, deep=200)
@given(_viewed(expands=False))
def test_the_layout_of_a_view_is_what_the_stream_of_its_source_shows(
    viewed: tuple[View, NDArray[np.int64]],
) -> None:
    view, array = viewed
    layout = view.layout
    if layout is None:
        return
    assert isinstance(view.source, Computed)
    source = np.arange(math.prod(view.source.shape)).reshape(view.source.shape)
    for one, other in zip(_tiles(source, view.source.layout), _tiles(array, layout), strict=True):
        np.testing.assert_array_equal(one.reshape(other.shape), other)


@examples(quick=25, deep=200)
@given(_viewed(), st.integers(1, 8))
def test_there_are_tiles_for_every_view(viewed: tuple[View, NDArray[np.int64]], rows: int) -> None:
    view, array = viewed
    wish = rows_layout(array.shape, rows, array.shape[-1])
    layout = readable((view,), wish, whole_rows=False)
    if view.is_plain:
        assert layout == wish
    singles = Layout.tiled(array.shape, (1,) * array.ndim)
    if view.pull(singles) is None and view.pull(layout) is None:
        assert layout == wish
        with pytest.raises(ShapeError, match="expected a walk that tiles of the tensor can make"):
            Operand(view, layout).pulled()
    else:
        assert view.pull(layout) is not None


@pytest.mark.parametrize(
    ("view", "tiles", "rows_only"),
    [
        # Fewer rows, of the first dimension first.
        (((6, 4), (2, 3, 4), (1, 2, 0), (2, 3, 4)), [(1, 3, 4), (1, 1, 4)], (1, 1, 4)),
        (((4, 6), (2, 2, 6), (1, 2, 0), (12, 2)), [(4, 2), (1, 2)], (1, 2)),
        # Then fewer columns, with the rows there were and with one: down to single elements.
        (((4, 6), (4, 2, 3), (2, 0, 1), (8, 3)), [(4, 3), (1, 3), (4, 1), (1, 1)], (4, 3)),
        (((6, 4), (4, 6), (1, 0), (4, 6)), [(1, 6), (1, 3), (1, 2)], (1, 6)),
        (((4, 6), (4, 2, 3), (0, 1, 2), (12, 2)), [(1, 2), (1, 1)], (1, 2)),
    ],
)
def test_tiles_of_a_view_are_the_largest_possible(
    view: tuple[tuple[int, ...], ...], tiles: list[tuple[int, ...]], rows_only: tuple[int, ...]
) -> None:
    shape, seen, dims, last = view
    source = Computed("x", shape, FLOAT, Layout.tiled(shape, shape))
    found = View.of(source).reshaped(seen).permuted(dims).reshaped(last)
    wish = Layout.tiled(last, tiles[0])

    assert [found.pull(Layout.tiled(last, tile)) is not None for tile in tiles] == [
        *[False] * (len(tiles) - 1),
        True,
    ]
    assert readable((found,), wish, whole_rows=False).tile == tiles[-1]
    assert readable((found,), wish, whole_rows=True).tile == rows_only
