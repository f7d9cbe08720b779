"""Views: what a reader wants of a view is a walk over the tensor that is there.

Numpy takes the same views of an array; tiles gathered from both are compared.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, ShapeError
from operators.kernels.following import (
    followed,
    followed_rows,
    followed_whole,
    readable,
    rows_layout,
    with_cols,
    with_sizes,
)
from operators.kernels.kernel import Operand
from operators.kernels.schedule import Schedule, divisors, fit
from operators.kernels.tensors import Computed, Stored, View
from tests.profiles import examples

FLOAT = np.dtype(np.float32)


@st.composite
def _viewed(draw: st.DrawFn, *, expands: bool = True) -> tuple[View, NDArray[np.int64]]:
    """A view of a computed tensor, and the array it shows where elements are their numbers."""
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
    """Shapes of one, two and three dimensions with as many elements."""
    pairs = [(each, size // each) for each in sorted(divisors(size))]
    triples = [(a, b, c) for a, rest in pairs for b in sorted(divisors(rest)) for c in (rest // b,)]
    return [(size,), *pairs, *triples]


def _tiles(array: NDArray[np.int64], layout: Layout) -> list[NDArray[np.int64]]:
    """Gather the tiles of an array as a stream in this layout has them."""
    found = []
    for offset in layout.offsets():
        part = array[
            tuple(slice(at, at + size) for at, size in zip(offset, layout.tile, strict=True))
        ]
        found.append(part.reshape(layout.rows, layout.cols))
    return found


@examples(quick=50, deep=200)
@given(_viewed(), st.data())
def test_pulled_tiles_are_those_of_the_view(
    viewed: tuple[View, NDArray[np.int64]], data: st.DataObject
) -> None:
    """In any order and with any tiles for which there is a walk over the source."""
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


@examples(quick=50, deep=200)
@given(_viewed(expands=False))
def test_the_layout_of_a_view_is_what_the_stream_of_its_source_shows(
    viewed: tuple[View, NDArray[np.int64]],
) -> None:
    """The tiles of the source's stream, taken for tiles of the view."""
    view, array = viewed
    layout = view.layout
    if layout is None:
        return
    assert isinstance(view.source, Computed)
    source = np.arange(math.prod(view.source.shape)).reshape(view.source.shape)
    for one, other in zip(_tiles(source, view.source.layout), _tiles(array, layout), strict=True):
        np.testing.assert_array_equal(one.reshape(other.shape), other)


@examples(quick=50, deep=200)
@given(_viewed(), st.integers(1, 8))
def test_there_are_tiles_for_every_view(viewed: tuple[View, NDArray[np.int64]], rows: int) -> None:
    """Down to single elements; of a view that is the tensor itself, as large as asked for.

    Unless no nest of loops walks the view at all, as of six places dealt to two and three at once:
    then the wish is handed back, and whoever reads it is told.
    """
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
def test_tiles_of_a_view_are_as_large_as_can_be(
    view: tuple[tuple[int, ...], ...], tiles: list[tuple[int, ...]], rows_only: tuple[int, ...]
) -> None:
    """The first that the tensor has: none of those before it, which were wished for.

    Where whole rows are needed and there are none, it is the wish.
    """
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


@pytest.mark.parametrize(
    ("shape", "rows", "cols", "tile"),
    [
        ((4, 6, 10), 6, 10, (1, 6, 10)),
        ((4, 6, 10), 12, 5, (2, 6, 5)),
        ((4, 6, 10), 11, 10, (1, 6, 10)),
        ((4, 6, 10), 5, 10, (1, 3, 10)),
        ((4, 6, 10), 24, 4, (4, 6, 2)),
        ((2, 4, 6, 10), 48, 10, (2, 4, 6, 10)),
        ((2, 4, 6, 10), 47, 10, (1, 4, 6, 10)),
        ((2, 4, 1, 10), 4, 10, (1, 4, 1, 10)),
        ((10,), 3, 4, (2,)),
    ],
)
def test_rows_of_several_dimensions(
    shape: tuple[int, ...], rows: int, cols: int, tile: tuple[int, ...]
) -> None:
    """Rows are taken from the inside out, each dimension whole before the next one is begun."""
    found = rows_layout(shape, rows, cols)
    assert (shape, tile) == (found.shape, found.tile)
    assert all(each.trips > 1 for each in found.loops)


def test_views_of_what_is_stored_are_tensors_of_their_own() -> None:
    """The host lays them out; only what is read again stays a view."""
    stored = Stored.of("w", (4, 6), FLOAT, lambda: np.arange(24.0).reshape(4, 6))
    view = View.of(stored).permuted((1, 0)).sliced(0, 2, 3).reshaped((3, 2, 2))
    assert view.is_plain
    np.testing.assert_array_equal(
        view.array(), np.arange(24.0).reshape(4, 6).T[2:5].reshape(3, 2, 2)
    )
    again = view.expanded((5, 3, 2, 2))
    assert not again.is_plain
    np.testing.assert_array_equal(again.array(), np.broadcast_to(view.array(), (5, 3, 2, 2)))


def test_a_map_follows_the_operand_that_is_computed() -> None:
    """Its tiles and its order, where they hold what the function needs."""
    layout = Layout.tiled((4, 6), (2, 3), (1, 0))
    x = View.of(Computed("x", (4, 6), FLOAT, layout))
    w = View.of(Stored.of("w", (6,), FLOAT, None))
    schedule = Schedule(tile_rows=4)
    assert followed((x, w), (4, 6), schedule, whole_rows=False) == layout
    whole = followed((x, w), (4, 6), schedule, whole_rows=True)
    assert whole.same_order(Layout.tiled((4, 6), (4, 6)))


@examples(quick=50, deep=200)
@given(st.integers(1, 5000), st.integers(1, 128))
def test_fit_divides_and_is_near_the_wish(size: int, wish: int) -> None:
    """The largest divisor not above; above only where that is less than a quarter of it."""
    found = fit(size, wish)
    assert size % found == 0
    below = max(each for each in range(1, min(size, wish) + 1) if size % each == 0)
    if found != below:
        assert 4 * below < min(wish, size)
        assert below < found <= 8 * wish


def test_what_is_followed() -> None:
    """Of several operands that come so the last one; none that is repeated or of another shape."""
    rows, columns = Layout.tiled((4, 6), (2, 6)), Layout.tiled((4, 6), (4, 3))
    again = rows.again(3)

    def view(layout: Layout) -> View:
        return View.of(Computed("x", layout.shape, FLOAT, layout))

    stored = View.of(Stored.of("w", (4, 6), FLOAT, None))
    other = view(Layout.tiled((1, 6), (1, 6)))
    schedule, wish = Schedule(tile_rows=4), Layout.tiled((4, 6), (4, 6)).nested([])
    for views, any_tiles, whole in (
        ((view(rows), view(columns)), columns, rows),
        ((view(columns), view(rows)), rows, rows),
        ((view(rows), stored), rows, rows),
        ((view(columns),), columns, wish),
        ((view(rows), view(again)), rows, rows),
        ((view(again),), wish, wish),
        ((stored,), wish, wish),
    ):
        assert any_tiles == followed(views, (4, 6), schedule, whole_rows=False)
        assert whole == followed(views, (4, 6), schedule, whole_rows=True)
    assert wish == followed((other,), (4, 6), schedule, whole_rows=False)

    # The rows of what is read, with other columns.
    for last, found in ((rows, (2, 9)), (columns, (4, 9)), (again, (4, 9))):
        assert found == followed_rows((view(last),), (4, 9), schedule).tile
    assert followed_rows((view(rows), view(columns)), (4, 9), schedule).tile == (2, 9)
    # Whole along a dimension: as it comes, or in tiles of the schedule's rows.
    for dims, layout, tile in (
        ((1,), rows, (2, 6)),
        ((1,), columns, (4, 6)),
        ((0,), columns, (4, 3)),
        ((0,), rows, (4, 6)),
        ((0, 1), rows, (4, 6)),
    ):
        (whole,) = followed_whole((view(layout),), dims, Schedule(tile_rows=4, tile_cols=8))
        assert tile == whole.tile
    sized = followed_whole((view(rows), view(Layout.tiled((4, 9), (4, 3)))), (1,), schedule)
    assert [((4, 6), (2, 6)), ((4, 9), (2, 9))] == [(each.shape, each.tile) for each in sized]


@pytest.mark.parametrize(
    ("shape", "wish", "tile"),
    [
        # Behind the first dimension that a tile has several of, all are whole: rows are neighbours.
        ((4, 6, 5), (2, 6, 5), (2, 6, 5)),
        ((4, 6, 5), (2, 3, 5), (1, 3, 5)),
        ((4, 2, 6, 6), (2, 2, 6, 3), (2, 2, 6, 3)),
        ((4, 2, 6, 5), (2, 2, 3, 5), (1, 1, 3, 5)),
        ((4, 2, 6, 5), (1, 2, 3, 5), (1, 1, 3, 5)),
        ((4, 2, 6, 5), (2, 1, 6, 5), (1, 1, 6, 5)),
        # Or only one dimension has several: the rows are as far from each other everywhere.
        ((4, 6, 5), (2, 1, 5), (2, 1, 5)),
        ((4, 2, 6, 5), (2, 2, 1, 5), (2, 2, 1, 5)),
        ((4, 2, 6, 6), (2, 1, 1, 3), (2, 1, 1, 3)),
        ((4, 1, 6, 5), (2, 1, 6, 5), (2, 1, 6, 5)),
        ((4, 1, 6, 5), (2, 1, 3, 5), (1, 1, 3, 5)),
    ],
)
def test_tiles_of_memory_are_rectangles(
    shape: tuple[int, ...], wish: tuple[int, ...], tile: tuple[int, ...]
) -> None:
    """Of a tensor as rows of its last dimension; what a kernel gives comes in any tiles."""
    stored = View.of(Stored.of("w", shape, FLOAT, None))
    given = View.of(Computed("x", shape, FLOAT, Layout.tiled(shape, shape)))
    layout = Layout.tiled(shape, wish)
    assert readable((stored,), layout, whole_rows=False).tile == tile
    assert readable((given, stored), layout, whole_rows=True).tile == tile
    assert readable((given,), layout, whole_rows=False).tile == wish


def test_what_is_followed_through_views() -> None:
    """Rows and whole dimensions are as large as the views have them."""

    def seen(shape: tuple[int, ...], tile: tuple[int, ...]) -> View:
        return View.of(Computed("x", shape, FLOAT, Layout.tiled(shape, tile)))

    # Rows come three by three, of two tensors; their columns are their own.
    rows = [seen((6, cols), (3, cols)).reshaped((2, 3, cols)) for cols in (4, 5)]
    assert (1, 3, 9) == followed_rows(rows, (2, 3, 9), Schedule()).tile
    # One that is stored, or repeated, does not say how; the other one does.
    stored = View.of(Stored.of("w", (2, 3, 5), FLOAT, None))
    again = View.of(Computed("x", (2, 3, 5), FLOAT, Layout.tiled((2, 3, 5), (2, 3, 5)).again(2)))
    for last in (stored, again, seen((2, 3, 5), (2, 3, 1))):
        assert (1, 3, 9) == followed_rows((rows[0], last), (2, 3, 9), Schedule()).tile
        found = followed_whole((rows[0], last), (2,), Schedule())
        assert [(1, 3, 4), (1, 3, 5)] == [each.tile for each in found]
    plain = seen((4, 6), (2, 6)), View.of(Stored.of("w", (4, 6), FLOAT, None))
    for views in (plain, plain[::-1]):
        assert [(2, 6)] * 2 == [each.tile for each in followed_whole(views, (1,), Schedule())]

    # Three rows that are no tile of what is there, and rows that never are one.
    heads = seen((6, 4), (6, 4)).reshaped((2, 3, 4)).permuted((1, 2, 0)).reshaped((2, 3, 4))
    assert (1, 1, 9) == followed_rows((heads,), (2, 3, 9), Schedule(tile_rows=3)).tile
    across = seen((6, 4), (6, 4)).reshaped((4, 6)).permuted((1, 0)).reshaped((4, 6))
    assert (1, 9) == followed_rows((across,), (4, 9), Schedule(tile_rows=1)).tile
    parts = seen((4, 6), (4, 6)).reshaped((4, 2, 3)).permuted((2, 0, 1)).reshaped((8, 3))
    assert (8, 3) == followed_whole((parts,), (1,), Schedule(tile_rows=4))[0].tile

    # Of twelve columns six are two whole rows and three one; two and four are none of one.
    turned = seen((6, 4), (6, 4)).permuted((1, 0)).reshaped((12, 2)).permuted((1, 0))
    for wish, cols in ((12, 12), (6, 6), (4, 1), (3, 3), (2, 1)):
        (layout,) = followed_whole((turned,), (0,), Schedule(tile_cols=wish))
        assert (2, cols) == layout.tile


def test_other_sizes_of_a_walk() -> None:
    """What is whole begins at 0 and has no loop; the other dimensions are walked as before."""
    walk = Layout((9, 8, 9), (2, 1, 3), (4, 3, 2), (2, 2, 3), (0, 1, 2), (1, 3, 3))
    rows = Layout((9, 8, 5), (2, 1, 5), (4, 3), (2, 2), (0, 1), (1, 3, 0))
    assert rows == with_cols(walk, 5)
    middle = Layout((9, 7, 9), (2, 7, 3), (4, 2), (2, 3), (0, 2), (1, 0, 3))
    assert middle == with_sizes(walk, (1,), [7])
    outer = Layout((4, 8, 5), (4, 1, 5), (3,), (2,), (1,), (0, 3, 0))
    assert outer == with_sizes(walk, (0, 2), [4, 5])


def test_no_walk_of_what_is_there() -> None:
    """A view that only single elements in no nest of loops could give: the message says so."""
    source = Computed("x", (2, 3), FLOAT, Layout.tiled((2, 3), (2, 3)))
    layout = Layout.tiled((2, 3), (1, 1), (1, 0))
    operand = Operand(View.of(source).permuted((1, 0)).reshaped((2, 3)), layout)
    with pytest.raises(ShapeError) as caught:
        operand.pulled()
    assert caught.value.message == (
        f"x [2, 3] is read as [2, 3] in {layout}: expected a walk that tiles of the tensor can make"
    )


def test_views_that_change_nothing() -> None:
    """The whole of a dimension, the same shape, and there and back again is the tensor itself."""
    source = Computed("x", (2, 3, 4), FLOAT, Layout.tiled((2, 3, 4), (1, 3, 4)))
    plain = View.of(source)
    assert plain.permuted((0, 1, 2)) is plain
    assert plain.reshaped((2, 3, 4)) is plain
    assert plain.expanded((2, 3, 4)) is plain
    assert plain.sliced(1, 0, 3) is plain
    assert plain.permuted((1, 2, 0)).permuted((2, 0, 1)).is_plain
    assert not plain.permuted((1, 2, 0)).permuted((1, 2, 0)).is_plain
    assert len(plain.permuted((1, 2, 0)).permuted((1, 2, 0)).steps) == 1
    for first, count in ((0, 2), (1, 2), (1, 1)):
        assert plain.sliced(1, first, count).shape == (2, count, 4)
        assert len(plain.sliced(1, first, count).steps) == 1


def test_through_the_views_of_another() -> None:
    """A tensor of the same shape is seen as the other one is, stored or computed."""
    array = np.arange(24.0, dtype=FLOAT).reshape(4, 6)
    layout = Layout.tiled((4, 6), (2, 6))
    view = View.of(Computed("x", (4, 6), FLOAT, layout)).permuted((1, 0)).reshaped((3, 2, 4))
    view = view.sliced(0, 1, 2).expanded((5, 2, 2, 4))
    computed = View.of(Computed("y", (4, 6), FLOAT, layout)).again(view)
    assert (view.shape, view.steps) == (computed.shape, computed.steps)
    stored = View.of(Stored.of("w", (4, 6), FLOAT, lambda: array)).again(view)
    expected = np.broadcast_to(array.T.reshape(3, 2, 4)[1:3], (5, 2, 2, 4))
    np.testing.assert_array_equal(expected, stored.array())
    assert isinstance(stored.source, Stored)
    assert stored.source.base is not None
    assert stored.source.base.shape == (4, 6)
