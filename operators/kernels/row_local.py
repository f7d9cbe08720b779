"""Calls that work on each tile alone: single numbers, and rows where a tile holds them whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from fabric import Layout, Stream
from operators.functions.base import Function
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.schedule import Schedule, divisors, fit
from operators.kernels.tensors import Computed, View
from operators.map import Map

__all__ = ["RowLocal", "followed", "readable", "rows_layout"]


class RowLocal(Kernel):
    """A Map over the tiles of operands that are all read in one layout.

    Attributes:
        function: of the Map.
    """

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, function: Function, operands: Sequence[Operand], result: Computed
    ) -> None:
        """Apply ``function`` to tiles that come in the layout of the result, or broadcast to it."""
        self.name = name
        self.function = function
        self.operands = tuple(operands)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        streams = [each for each in inputs if isinstance(each, Stream)]
        return (Map(self.function, name=self.name)(*streams),)


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
    return Layout.tiled(shape, tuple(tile))


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
        if layout is None or view.shape != shape or None in layout.canonical().map:
            continue
        if not whole_rows or layout.tile[-1] == shape[-1]:
            return layout
    wish = rows_layout(shape, schedule.tile_rows, shape[-1] if shape else 1)
    return readable(views, wish, whole_rows=whole_rows)


def readable(views: Sequence[View], wish: Layout, *, whole_rows: bool) -> Layout:
    """Return ``wish``, or smaller tiles of the same tensor, as every one of ``views`` can be read.

    Tiles of a view are not always tiles of what is there: heads of several tokens that have changed
    places with the tokens are not.
    """
    seen = [each.expanded(wish.shape) for each in views]
    for tile in _smaller(wish.tile, whole_rows=whole_rows):
        layout = Layout.tiled(wish.shape, tile)
        if all(each.pull(layout) is not None for each in seen):
            return layout
    return wish


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
