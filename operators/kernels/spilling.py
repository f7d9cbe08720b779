"""Streams through off-chip memory, whatever their tiles are."""

from __future__ import annotations

from math import gcd

from fabric import Layout, ShapeError, Stream
from operators.convert import Convert
from operators.through_memory import matrix_of, through_memory

__all__ = ["spill"]


def spill(stream: Stream, written: Layout, read: Layout) -> Stream:
    """Return what ``stream`` carries in another order, through off-chip memory.

    Tiles that are no rectangles there, such as heads of several tokens, pass in smaller ones.
    """
    before, behind = _in_rectangles(written), _in_rectangles(read)
    if before != written:
        stream = Convert(before)(stream.laid_out(written))
    stream = through_memory(stream, before, behind)
    return stream if behind == read else Convert(read)(stream)


def _in_rectangles(layout: Layout) -> Layout:
    """Return the same tiles, cut until memory has such: to rows, and to parts of rows.

    A part is as wide as rows can be cut from the tensor's edge on.
    """
    smaller, last = layout, len(layout.tile) - 1
    for dim in range(last):
        if _is_rectangle(smaller):
            return smaller
        smaller = _cut(smaller, dim, 1)
    if last < 0 or _is_rectangle(smaller):
        return smaller
    along = [loop.step for loop in layout.loops if loop.dim == last and loop.trips > 1]
    return _cut(
        smaller, last, gcd(layout.shape[last], layout.tile[last], layout.start[last], *along)
    )


def _cut(layout: Layout, dim: int, size: int) -> Layout:
    """Return parts of tiles, ``size`` along one dimension, in place of the tiles."""
    parts = layout.tile[dim] // size
    if parts == 1:
        return layout
    return Layout(
        layout.shape,
        (*layout.tile[:dim], size, *layout.tile[dim + 1 :]),
        (*layout.trips, parts),
        (*layout.steps, size),
        (*layout.map, dim),
        layout.start,
    )


def _is_rectangle(layout: Layout) -> bool:
    try:
        matrix_of(layout)
    except ShapeError:
        return False
    return True
