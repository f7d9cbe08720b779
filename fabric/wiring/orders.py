"""The orders in which streams carry their tiles: whether a layout fits, and which two differ.

An operator says what it makes of the orders of its inputs (``Operator.layouts``). Nothing is worked
out before somebody asks: most programs are wired without.
"""

from __future__ import annotations

from typing import Final

from fabric.layouts.layout import Layout
from fabric.telling.errors import ShapeError
from fabric.telling.wording import counted
from fabric.values.dims import is_static, product
from fabric.values.stream_type import (
    BufferType,
    StreamType,
    TileType,
    TupleType,
    ValueType,
    shape_text,
)

__all__ = ["differ", "differ_text", "unfit"]

_SHOWN: Final = 4
"""First elements of tiles in a message: the first that differ are among them, if they can be."""


def unfit(layout: Layout, stream: StreamType) -> str | None:
    """Return what a stream of ``layout`` has that ``stream`` has not; None where it fits."""
    value: ValueType = stream.value
    shape = stream.shape
    if isinstance(value, BufferType):
        shape = (*shape, *value.shape)
        value = value.tile
    if not all(map(is_static, shape)) or product(shape) != layout.count:
        return f"{counted(layout.count, 'tile')} in place of {shape_text(shape)}"
    if isinstance(value, TupleType):
        return None
    if not isinstance(value, TileType) or (value.rows, value.cols) != (layout.rows, layout.cols):
        return f"tiles of {layout.rows}x{layout.cols} in place of {value}"
    return None


def differ(left: Layout, right: Layout) -> bool:
    """Whether two streams that come together element by element have other tiles of one tensor.

    Layouts of tensors of other shapes, or in other tiles, are not compared.
    """
    same_tiles = (left.shape, left.tile) == (right.shape, right.tile)
    return same_tiles and not left.same_order(right)


def differ_text(left: Layout, right: Layout, stream: StreamType) -> str:
    """Return both orders, and the converter from ``left`` to ``right``, as errors show them."""
    first = _first_difference(left, right)
    return (
        f"{_offsets(left, first)} of {left}, and {_offsets(right, first)} of {right}: expected "
        f"one order, such as behind Convert{_cost(left, right, stream)}"
    )


def _first_difference(left: Layout, right: Layout) -> int:
    """Return the number of the first tile that is another one in the other order."""
    count = min(left.count, right.count)
    others = (left.offsets()[:count] != right.offsets()[:count]).any(axis=1).nonzero()[0]
    return int(others[0]) if len(others) else count


def _offsets(layout: Layout, first: int) -> str:
    """Return the first elements of the first tiles, and of the first that differs."""
    shown = max(_SHOWN, first + 1)
    offsets = [str(tuple(each)) for each in layout.offsets()[:shown].tolist()]
    if len(offsets) > _SHOWN:
        offsets = [*offsets[: _SHOWN - 1], "...", offsets[-1]]
    more = ", ..." if shown < layout.count else ""
    return f"{', '.join(offsets)}{more}"


def _cost(left: Layout, right: Layout, stream: StreamType) -> str:
    """Return what the converter keeps on chip; nothing where there is none."""
    value = stream.value.tile if isinstance(stream.value, BufferType) else stream.value
    if not isinstance(value, TileType):
        return ""
    # Only two orders that differ are converted.
    from fabric.layouts.conversion import convert_bytes

    try:
        found = convert_bytes(left, right, value.dtype.itemsize)
    except ShapeError:
        return ""
    shape = "x".join(map(str, found.shape))
    return (
        f", which keeps {shape} of it in {counted(found.tiles, 'tile')}, "
        f"{counted(found.bytes, 'byte')}"
    )
