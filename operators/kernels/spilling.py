"""Streams through off-chip memory, whatever their tiles are."""

from __future__ import annotations

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
    """Return the same tiles, cut along their outer dimensions until memory has such."""
    smaller = layout
    for dim, size in enumerate(layout.tile[:-1]):
        if _is_rectangle(smaller):
            break
        if size > 1:
            tile = (*smaller.tile[:dim], 1, *smaller.tile[dim + 1 :])
            smaller = Layout(
                layout.shape,
                tile,
                (*smaller.trips, size),
                (*smaller.steps, 1),
                (*smaller.map, dim),
                smaller.start,
            )
    return smaller


def _is_rectangle(layout: Layout) -> bool:
    try:
        matrix_of(layout)
    except ShapeError:
        return False
    return True
