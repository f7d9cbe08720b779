"""The tiles and the order in which a tensor is read: if possible, the order of its producer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric import Layout
from fabric.extend import Loop
from operators.kernels.schedule import Schedule, divisors, fit
from operators.kernels.tensors import Computed, View


def rows_layout(shape: tuple[int, ...], rows: int, cols: int) -> Layout:
    """Return tiles of about ``rows`` x ``cols`` of a tensor, in row-major order.

    Rows come from the last dimension but one; if it is too small, also from the dimensions before
    it.
    """
    tile = [1] * len(shape)
    tile[-1] = fit(shape[-1], cols)
    room = rows
    for axis in reversed(range(len(shape) - 1)):
        tile[axis] = fit(shape[axis], room)
        if tile[axis] != shape[axis]:
            break
        room //= max(1, tile[axis])
        if room <= 1:
            break
    return _tiled(shape, tile)


def followed(
    views: Sequence[View], shape: tuple[int, ...], schedule: Schedule, *, whole_rows: bool
) -> Layout:
    """Return a layout of ``shape``, if possible the layout in which an operand arrives.

    The operand must be computed, have the shape and read no element twice. The last such operand is
    followed, because its tiles arrive last. Without one, ``schedule`` decides the tiles. With
    ``whole_rows`` tiles hold whole rows of the last dimension.
    """
    for view in reversed(views):
        layout = view.layout
        if layout is None or view.shape != shape or layout.rereads:
            continue
        if (not whole_rows or layout.tile[-1] == shape[-1]) and _all_give(views, layout):
            return layout
    wish = rows_layout(shape, schedule.tile_rows, shape[-1] if shape else 1)
    return readable(views, wish, whole_rows=whole_rows)


def followed_whole(
    views: Sequence[View], dims: tuple[int, ...], schedule: Schedule
) -> tuple[Layout, ...]:
    """Return layouts with tiles that are whole along ``dims``, if possible in a view's order.

    The shapes of ``views`` differ in ``dims`` only.
    """
    shape = views[0].shape
    for view in reversed(views):
        layout = view.layout
        if layout is None or layout.rereads:
            continue
        if all(layout.tile[dim] == view.shape[dim] for dim in dims):
            layouts = _all_whole(views, dims, layout)
            if layouts is not None:
                return layouts
    wish = rows_layout(shape, schedule.tile_rows, fit(shape[-1], schedule.tile_cols))
    for tile in _smaller(wish.tile, whole_rows=False):
        whole = tuple(shape[dim] if dim in dims else size for dim, size in enumerate(tile))
        layouts = _all_whole(views, dims, _tiled(shape, whole))
        if layouts is not None:
            return layouts
    return tuple(_tiled(each.shape, each.shape) for each in views)


def _all_whole(
    views: Sequence[View], dims: tuple[int, ...], layout: Layout
) -> tuple[Layout, ...] | None:
    """Return ``layout`` for each view, whole along ``dims``; None if a view cannot be read so."""
    layouts = [with_sizes(layout, dims, [view.shape[dim] for dim in dims]) for view in views]
    gives = all(_gives(each, one) for each, one in zip(views, layouts, strict=True))
    return tuple(layouts) if gives else None


def readable(views: Sequence[View], wish: Layout, *, whole_rows: bool) -> Layout:
    """Return ``wish``, or the largest smaller tiles in which all of ``views`` can be read.

    For example, if a view exchanges tokens and heads, a tile of several tokens and heads is not a
    tile of the source. If not even single elements can be read, the result is ``wish``.
    """
    for tile in _smaller(wish.tile, whole_rows=whole_rows):
        layout = _tiled(wish.shape, tile)
        if _all_give(views, layout):
            return layout
    return wish


def _all_give(views: Sequence[View], layout: Layout) -> bool:
    """Whether tiles of a layout can be read from all views, which broadcast to its shape."""
    return all(_gives(view.expanded(layout.shape), layout) for view in views)


def _gives(view: View, layout: Layout) -> bool:
    """Whether tiles of a view can be read; off-chip memory delivers only rectangles."""
    pulled = view.pull(layout)
    if pulled is None:
        return False
    if isinstance(view.source, Computed):
        return True
    shape, tile = pulled.layout.shape, pulled.layout.tile
    inner = [dim for dim in range(len(shape) - 1) if tile[dim] > 1]
    between = range(inner[0] + 1, inner[-1] + 1) if inner else ()
    return all(tile[dim] == shape[dim] for dim in between)


def _tiled(shape: Sequence[int], tile: Sequence[int]) -> Layout:
    """Return a layout of all tiles in row-major order, with the fewest loops."""
    layout = Layout.tiled(tuple(shape), tuple(tile))
    return layout.nested([loop for loop in layout.loops if loop.trips > 1])


def _smaller(tile: tuple[int, ...], *, whole_rows: bool) -> Iterator[tuple[int, ...]]:
    """Yield tiles of fewer rows, and then of fewer columns, down to single elements."""
    yield tile
    smaller = list(tile)
    last = len(tile) - 1
    for axis in range(last):
        if smaller[axis] > 1:
            smaller[axis] = 1
            yield tuple(smaller)
    if not whole_rows:
        for cols in sorted(divisors(tile[last]) if tile else (), reverse=True)[1:]:
            yield (*tile[:last], cols)
            yield (*smaller[:last], cols)


def with_sizes(layout: Layout, dims: tuple[int, ...], sizes: Sequence[int]) -> Layout:
    """Return ``layout`` with other ``sizes`` along ``dims``, which each tile holds whole."""
    other = dict(zip(dims, sizes, strict=True))
    shape = [other.get(dim, size) for dim, size in enumerate(layout.shape)]
    tile = [other.get(dim, size) for dim, size in enumerate(layout.tile)]
    start = [0 if dim in other else first for dim, first in enumerate(layout.start)]
    loops = [loop for loop in layout.loops if loop.dim not in other]
    return Layout.of_loops(shape, tile, start, loops)


def unrepeated(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Return the loops without the innermost ones that repeat a tile."""
    while loops and loops[-1].dim is None:
        loops = loops[:-1]
    return loops
