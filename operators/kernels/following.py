"""In which tiles, and in which order, a tensor is read: as it comes where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabric import Layout
from operators.kernels.schedule import Schedule, divisors, fit
from operators.kernels.tensors import Computed, View


def rows_layout(shape: tuple[int, ...], rows: int, cols: int) -> Layout:
    """Return tiles of about ``rows`` x ``cols`` of a tensor, in row-major order.

    Rows are taken of the last dimension but one, and of those in front where that is smaller.
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
    """Return a layout of ``shape``, if possible that in which one operand comes.

    The operand that is computed, has the shape and reads no element twice says so; of several the
    last one, whose tiles come last.

    Args:
        views: the operands.
        shape: of the result.
        schedule: says the tiles where no operand does.
        whole_rows: tiles have to hold whole rows of the last dimension.
    """
    for view in reversed(views):
        layout = view.layout
        if layout is None or view.shape != shape or layout.rereads:
            continue
        if (not whole_rows or layout.tile[-1] == shape[-1]) and _all_give(views, layout):
            return layout
    wish = rows_layout(shape, schedule.tile_rows, shape[-1] if shape else 1)
    return readable(views, wish, whole_rows=whole_rows)


def followed_rows(views: Sequence[View], shape: tuple[int, ...], schedule: Schedule) -> Layout:
    """Return a layout of ``shape`` in tiles of whole rows, if possible as one operand comes.

    Args:
        views: the operands, with as many rows as ``shape``; the number of columns is their own.
        shape: what has these rows.
        schedule: says the tiles where no operand does.
    """
    for view in reversed(views):
        layout = view.layout
        if layout is None or layout.tile[-1] != view.shape[-1]:
            continue
        wish = with_cols(layout, shape[-1])
        if not layout.rereads and _all_rows(views, wish):
            return wish
    wish = rows_layout(shape, schedule.tile_rows, shape[-1])
    for tile in _smaller(wish.tile, whole_rows=True):
        layout = _tiled(shape, tile)
        if _all_rows(views, layout):
            return layout
    return wish


def followed_whole(
    views: Sequence[View], dims: tuple[int, ...], schedule: Schedule
) -> tuple[Layout, ...]:
    """Return layouts of views in tiles that are whole along ``dims``, if possible as one comes.

    Args:
        views: what is read; their shapes differ in ``dims`` only.
        dims: some of the dimensions.
        schedule: says the tiles where the views do not.
    """
    shape = views[0].shape
    for view in reversed(views):
        layout = view.layout
        if layout is None or layout.rereads:
            continue
        if all(layout.tile[dim] == view.shape[dim] for dim in dims):
            found = _all_whole(views, dims, layout)
            if found is not None:
                return found
    wish = rows_layout(shape, schedule.tile_rows, fit(shape[-1], schedule.tile_cols))
    for tile in _smaller(wish.tile, whole_rows=False):
        whole = tuple(shape[dim] if dim in dims else size for dim, size in enumerate(tile))
        found = _all_whole(views, dims, _tiled(shape, whole))
        if found is not None:
            return found
    return tuple(_tiled(each.shape, each.shape) for each in views)


def _all_whole(
    views: Sequence[View], dims: tuple[int, ...], layout: Layout
) -> tuple[Layout, ...] | None:
    """Return the same walk of all views, each whole along ``dims``; None where one gives none."""
    found = [with_sizes(layout, dims, [each.shape[dim] for dim in dims]) for each in views]
    gives = all(_gives(each, one) for each, one in zip(views, found, strict=True))
    return tuple(found) if gives else None


def readable(views: Sequence[View], wish: Layout, *, whole_rows: bool) -> Layout:
    """Return ``wish``, or smaller tiles of the same tensor, as every one of ``views`` can be read.

    Tiles of a view are not always tiles of what is there: heads of several tokens that have changed
    places with the tokens are not. Where not even single elements can be read, it is ``wish``.
    """
    for tile in _smaller(wish.tile, whole_rows=whole_rows):
        layout = _tiled(wish.shape, tile)
        if _all_give(views, layout):
            return layout
    return wish


def _all_give(views: Sequence[View], layout: Layout) -> bool:
    """Whether tiles of a layout can be read of all that broadcasts to it."""
    return all(_gives(each.expanded(layout.shape), layout) for each in views)


def _all_rows(views: Sequence[View], layout: Layout) -> bool:
    """Whether whole rows, as a layout walks them, can be read of all."""
    return all(_gives(each, with_cols(layout, each.shape[-1])) for each in views)


def _gives(view: View, layout: Layout) -> bool:
    """Whether tiles of a view can be read: of memory, only rectangles."""
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
    """Return all tiles in row-major order, by no more loops than that takes."""
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
    """Return the walk of a tensor of other sizes along ``dims``; its tiles hold these whole."""
    other = dict(zip(dims, sizes, strict=True))
    kept = layout.nested([loop for loop in layout.loops if loop.dim not in other])
    return replace(
        kept,
        shape=tuple(other.get(dim, size) for dim, size in enumerate(layout.shape)),
        tile=tuple(other.get(dim, size) for dim, size in enumerate(layout.tile)),
        start=tuple(0 if dim in other else first for dim, first in enumerate(layout.start)),
    )


def with_cols(layout: Layout, cols: int) -> Layout:
    """Return the layout of as many rows with other columns; its tiles hold whole rows."""
    *lead, _ = layout.shape
    last = len(lead)
    loops = [loop for loop in layout.loops if loop.dim != last]
    kept = layout.nested(loops)
    return replace(
        kept, shape=(*lead, cols), tile=(*layout.tile[:-1], cols), start=(*layout.start[:-1], 0)
    )
