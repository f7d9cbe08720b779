"""Layouts: the figures of StreamTensor, and equal orders against enumeration."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout
from fabric.graph.layouts.layout import Loop
from tests.fabric.layouts.layouts import layouts, places
from tests.profiles import examples

BY_COLUMNS = Layout((8, 8), (4, 2), (4, 2), (2, 4), (1, 0))
TWICE = Layout((8, 8), (4, 2), (4, 2, 2), (2, 1, 4), (1, None, 0))


class TestFigure5:
    def test_layout_by_columns_has_the_offsets_of_the_figure(self) -> None:
        expected = [(row, col) for col in (0, 2, 4, 6) for row in (0, 4)]
        assert expected == [tuple(each) for each in BY_COLUMNS.offsets().tolist()]

    def test_layout_of_columns_read_twice_has_the_offsets_of_the_figure(self) -> None:
        expected = [(row, col) for col in (0, 2, 4, 6) for _ in range(2) for row in (0, 4)]
        assert expected == [tuple(each) for each in TWICE.offsets().tolist()]
        assert not TWICE.same_order(BY_COLUMNS)

    def test_tiled_layout_has_dimensions_in_the_order_asked(self) -> None:
        assert Layout.tiled((8, 8), (4, 2), order=(1, 0)) == BY_COLUMNS


def test_again_adds_a_loop_that_rereads() -> None:
    assert TWICE.again(1) is TWICE
    assert TWICE.again(3).loops == (*TWICE.loops, Loop(3, 1, None))
    assert not BY_COLUMNS.again(1).rereads
    assert not BY_COLUMNS.nested([Loop(1, 1, None), Loop(2, 4, 0)]).rereads
    assert BY_COLUMNS.again(2).rereads


@given(layouts())
@examples(quick=12, deep=100)
def test_offsets_equal_loops_in_python(layout: Layout) -> None:
    assert [tuple(each) for each in layout.offsets().tolist()] == places(layout)
    assert len(places(layout)) == layout.count


@given(st.integers(1, 3).flatmap(lambda rank: st.tuples(*[layouts(rank)] * 2)))
@examples(quick=37, deep=300)
def test_same_order_equals_comparing_places(pair: tuple[Layout, Layout]) -> None:
    left, right = pair
    shape = tuple(map(max, zip(left.shape, right.shape, strict=False)))
    if len(left.shape) != len(right.shape):
        assert not left.same_order(right)
        return
    left = Layout(shape, left.tile, left.trips, left.steps, left.map, left.start)
    right = Layout(shape, left.tile, *_fitting(right, shape, left.tile))
    assert left.same_order(right) is (places(left) == places(right))


def _fitting(
    layout: Layout, shape: tuple[int, ...], tile: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, ...]]:
    left = [size - part for size, part in zip(shape, tile, strict=True)]
    kept = []
    for trips, step, dim in layout.loops:
        if dim is not None:
            if (trips - 1) * step > left[dim]:
                continue
            left[dim] -= (trips - 1) * step
        kept.append((trips, step, dim))
    return tuple(a for a, _, _ in kept), tuple(b for _, b, _ in kept), tuple(c for *_, c in kept)


@given(layouts(), st.data())
@examples(quick=25, deep=200)
def test_canonical_form_keeps_places_and_undoes_splits(layout: Layout, data: st.DataObject) -> None:
    canonical = layout.canonical()
    assert places(canonical) == places(layout)
    assert canonical.canonical() == canonical
    split = []
    for trips, step, dim in layout.loops:
        inner = data.draw(st.sampled_from([n for n in (1, 2, 3) if trips % n == 0]))
        split += [Loop(trips // inner, step * inner, dim), Loop(inner, step, dim)]
    other = layout.nested(split)
    assert other.canonical() == canonical
    assert other.same_order(layout)


@given(layouts(), st.integers(1, 12))
@examples(quick=25, deep=200)
def test_cut_nests_have_the_same_places(layout: Layout, inside: int) -> None:
    nests = layout.cut(inside)
    if nests is None:
        ends = {math.prod(layout.trips[at:]) for at in range(len(layout.trips) + 1)}
        within = [
            (part, part * trips) for part, trips in zip(_inner(layout), layout.trips, strict=True)
        ]
        assert inside not in ends
        assert not any(inside % part == 0 and end % inside == 0 for part, end in within)
        return
    outer, inner = nests
    assert math.prod(loop.trips for loop in inner) == inside
    assert all(loop.trips > 1 for loop in inner if loop not in layout.loops)
    assert places(layout.nested([*outer, *inner])) == places(layout)


def _inner(layout: Layout) -> list[int]:
    return [math.prod(layout.trips[at + 1 :]) for at in range(len(layout.trips))]
