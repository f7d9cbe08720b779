from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout
from fabric.extend import expanded_back, permuted, reshaped, sliced, sliced_back
from fabric.graph.layouts.layout import Loop
from tests.fabric.layouts.layouts import layouts, streamed, tensor
from tests.profiles import examples


def as_rows(tiles: list[NDArray[Any]], layout: Layout) -> list[list[list[int]]]:
    return [tile.reshape(layout.rows, layout.cols).tolist() for tile in tiles]


class TestPermuted:
    @given(layouts(), st.data())
    @examples(quick=25, deep=200)
    def test_permuted_has_numpys_tiles(self, layout: Layout, data: st.DataObject) -> None:
        rank = len(layout.shape)
        dims = tuple(data.draw(st.permutations(range(rank))))
        x = tensor(layout.shape)
        found = permuted(layout, dims)

        before = as_rows(streamed(x, layout), layout)
        if found is None:
            tile = tensor(layout.tile)
            old, new = tile.reshape(layout.rows, -1), tile.transpose(dims)
            new = new.reshape(-1, new.shape[-1])
            assert not np.array_equal(new, old)
            assert not np.array_equal(new, old.T)
            return
        after = as_rows(streamed(x.transpose(dims), found.layout), found.layout)
        if found.transposed:
            after = [np.transpose(each).tolist() for each in after]
        assert after == before
        inverse = tuple(map(dims.index, range(rank)))
        again = permuted(found.layout, inverse)
        assert again is not None
        assert again.layout == layout
        assert again.transposed is found.transposed


SHAPES = [
    *((24,), (2, 12), (4, 6), (6, 4), (3, 8), (2, 2, 6), (2, 3, 4), (4, 3, 2), (2, 2, 2, 3)),
    *((1, 24), (24, 1), (4, 1, 6), (1, 2, 1, 12), (2, 2, 3, 2), (12, 2), (8, 3)),
]


@st.composite
def over(draw: st.DrawFn, shape: tuple[int, ...]) -> Layout:
    tile = [
        draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])) for size in shape
    ]
    loops: list[tuple[int, int, int | None]] = []
    for dim, size in enumerate(shape):
        step = tile[dim]
        left = size // step
        while left > 1 and draw(st.integers(0, 9)):
            trips = draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0]))
            loops.append((trips, step, dim))
            step *= trips
            left //= trips
    loops += [(2, 1, None)] * draw(st.integers(0, 1))
    loops = draw(st.permutations(loops))
    return Layout.tiled(shape, tuple(tile)).nested([Loop(*loop) for loop in loops])


def expressible(x: NDArray[Any], tiles: list[NDArray[Any]]) -> bool:
    boxes = set()
    for tile in tiles:
        places = np.argwhere(np.isin(x, tile))
        size = tuple(places.max(0) - places.min(0) + 1)
        if math.prod(size) != tile.size:
            return False
        boxes.add(size)
    return len(boxes) == 1


class TestReshaped:
    @given(st.data())
    @examples(quick=50, deep=400)
    def test_reshaped_has_numpys_tiles(self, data: st.DataObject) -> None:
        layout = data.draw(st.sampled_from(SHAPES).flatmap(over))
        shape = data.draw(st.sampled_from(SHAPES))
        x = tensor(layout.shape)
        before = streamed(x, layout)
        found = reshaped(layout, shape)
        if found is None:
            # Tiles are not boxes of the other shape, or a loop crosses a boundary of its
            # dimensions.
            event = expressible(x.reshape(shape), before)
            assume(event)
            self.assert_no_layout(x.reshape(shape), before)
            return
        after = streamed(x.reshape(shape), found)
        assert [tile.ravel().tolist() for tile in after] == [t.ravel().tolist() for t in before]
        again = reshaped(found, layout.shape)
        assert again is not None
        assert again.same_order(layout)

    @staticmethod
    def assert_no_layout(x: NDArray[Any], tiles: list[NDArray[Any]]) -> None:
        places = np.array([np.argwhere(x == tile.flat[0])[0] for tile in tiles])
        while len(places) > 1:
            for size in range(len(places) // 2, 0, -1):
                if len(places) % size:
                    continue
                outer = places.reshape(-1, size, places.shape[1])
                moved = outer - outer[:, :1]
                if not (moved == moved[0]).all():
                    continue
                step = np.diff(outer[:, 0], axis=0)
                if (step == step[0]).all() and (step[0] != 0).sum() <= 1 and (step[0] >= 0).all():
                    places = outer[0]
                    break
            else:
                return
        pytest.fail("there is a layout")

    @given(layouts(most_rank=2, most_loops=3), st.data())
    @examples(quick=25, deep=200)
    def test_reshaped_uneven_layout_has_numpys_tiles(
        self, layout: Layout, data: st.DataObject
    ) -> None:
        elements = math.prod(layout.shape)
        first = data.draw(st.sampled_from([n for n in range(1, elements + 1) if elements % n == 0]))
        x = tensor(layout.shape)
        found = reshaped(layout, (first, elements // first))
        if found is not None:
            after = streamed(x.reshape(found.shape), found)
            before = streamed(x, layout)
            assert [t.ravel().tolist() for t in after] == [t.ravel().tolist() for t in before]


class TestSliced:
    @given(layouts(), st.data())
    @examples(quick=12, deep=100)
    def test_sliced_back_has_numpys_tiles(self, layout: Layout, data: st.DataObject) -> None:
        dim = data.draw(st.integers(0, len(layout.shape) - 1))
        before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        size = layout.shape[dim]
        shape = list(layout.shape)
        shape[dim] += before + after
        x = tensor(tuple(shape))
        part = np.take(x, range(before, before + size), axis=dim)

        found = sliced_back(layout, tuple(shape), dim, before)

        assert_same(streamed(x, found), streamed(part, layout))
        assert sliced(found, dim, before, size) == layout

    @given(layouts(), st.data())
    @examples(quick=12, deep=100)
    def test_sliced_exists_if_the_slice_has_all_tiles(
        self, layout: Layout, data: st.DataObject
    ) -> None:
        dim = data.draw(st.integers(0, len(layout.shape) - 1))
        size = layout.shape[dim]
        first = data.draw(st.integers(0, size - 1))
        count = data.draw(st.integers(1, size - first))
        x = tensor(layout.shape)
        part = np.take(x, range(first, first + count), axis=dim)

        found = sliced(layout, dim, first, count)

        tiles = streamed(x, layout)
        assert (found is not None) is all(np.isin(tile, part).all() for tile in tiles)
        if found is not None:
            assert_same(streamed(part, found), tiles)


def assert_same(found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> None:
    assert [tile.tolist() for tile in found] == [tile.tolist() for tile in expected]


class TestExpanded:
    @given(layouts(), st.data())
    @examples(quick=12, deep=100)
    def test_expanded_back_has_numpys_tiles(self, layout: Layout, data: st.DataObject) -> None:
        new = data.draw(st.integers(0, len(layout.shape)))
        base = tuple(data.draw(st.sampled_from((1, size))) for size in layout.shape[new:])
        x = tensor(base)

        found = expanded_back(layout, base)

        assert found.trips == layout.trips
        before = [np.broadcast_to(tile, layout.tile) for tile in streamed(x, found)]
        assert_same(before, streamed(np.broadcast_to(x, layout.shape), layout))
