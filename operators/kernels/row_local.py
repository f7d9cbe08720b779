"""Calls that work on each tile alone: single numbers, and rows where a tile holds them whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Stream, TileType
from operators.functions.chain import Chain, shapes
from operators.functions.steps import Placed, Step, renumbered
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.rearranging import placed
from operators.kernels.schedule import Schedule, divisors, fit
from operators.kernels.tensors import Computed, View
from operators.map import Map
from operators.streams.dimensions import redimensioned

__all__ = [
    "RowLocal",
    "followed",
    "followed_rows",
    "followed_whole",
    "readable",
    "row_local",
    "rows_layout",
    "same_operand",
    "with_cols",
]


class RowLocal(Kernel):
    """A Map of a chain of steps over the tiles of operands that come in one order.

    Attributes:
        chain: the steps.
    """

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, chain: Chain, operands: Sequence[Operand], result: Computed
    ) -> None:
        """Apply ``chain`` to tiles of operands; what it gives are the tiles of ``result``."""
        self.name = name
        self.chain = chain
        self.operands = tuple(operands)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Computed)
        dims = 1, *result.layout.trips
        streams = [redimensioned(each, dims) for each in inputs if isinstance(each, Stream)]
        return (Map(self.chain, name=self.name)(*streams),)


def row_local(
    name: str, operands: Sequence[Operand], steps: Sequence[Step], result: Computed
) -> RowLocal:
    """Return the kernel of ``steps`` that read operands, numbered from 0, and steps before them.

    Args:
        name: of its operator.
        operands: whose tiles broadcast to those of the result, or to what the steps make of them.
        steps: the last one gives the result.
        result: has as many tiles as each operand.
    """
    different: list[Operand] = []
    values: list[int] = []
    for operand in operands:
        own = replace(operand, rearranges=True)
        same = (i for i, other in enumerate(different) if same_operand(own, other))
        values.append(next(same, len(different)))
        if values[-1] == len(different):
            different.append(own)
    chained: list[Step] = []
    shown = list(range(len(different)))
    for value, operand in enumerate(different):
        step = _placed(value, operand)
        if step is not None:
            chained.append(step)
            shown[value] = len(different) + len(chained) - 1
    first = len(different) + len(chained)
    numbers = [*(shown[value] for value in values), *range(first, first + len(steps))]
    chained += [renumbered(step, numbers) for step in steps]
    rows, cols = result.layout.rows, result.layout.cols
    tiles = [each.pulled().layout for each in different]
    found = shapes([(each.rows, each.cols) for each in tiles], chained)
    if found[-1] != (rows, cols):
        # All operands are repeated: what comes is one row or one column.
        held = np.arange(math.prod(found[-1])).reshape(found[-1])
        places = tuple(np.broadcast_to(held, (rows, cols)).reshape(-1).tolist())
        chained.append(Placed((len(found) - 1,), result.dtype, rows, cols, places))
    return RowLocal(name, Chain(len(different), tuple(chained)), different, result)


def _placed(value: int, operand: Operand) -> Placed | None:
    """Return the step that puts an operand's elements in their places; None where they are."""
    pulled = operand.pulled()
    tile = TileType(pulled.layout.rows, pulled.layout.cols, operand.view.dtype)
    return placed(value, tile, pulled.places, broadcasts=operand.broadcasts)


def same_operand(one: Operand, other: Operand) -> bool:
    """Whether two kernels, or one twice, read the same tiles in the same order."""
    return (
        one.view.source is other.view.source
        and one.view.steps == other.view.steps
        and one.layout == other.layout
    )


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
        if layout is None or view.shape != shape or None in layout.canonical().map:
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
        if None not in layout.canonical().map and _all_rows(views, wish):
            return wish
    wish = rows_layout(shape, schedule.tile_rows, shape[-1])
    for tile in _smaller(wish.tile, whole_rows=True):
        layout = _tiled(shape, tile)
        if _all_rows(views, layout):
            return layout
    return wish


def followed_whole(view: View, dims: tuple[int, ...], schedule: Schedule) -> Layout:
    """Return a layout of a view in tiles that are whole along ``dims``, if possible as it comes.

    Args:
        view: what is read.
        dims: some of its dimensions, not all the last ones.
        schedule: says the tiles where the view does not.
    """
    layout, shape = view.layout, view.shape
    if (
        layout is not None
        and None not in layout.canonical().map
        and all(layout.tile[dim] == shape[dim] for dim in dims)
    ):
        return layout
    wish = rows_layout(shape, schedule.tile_rows, fit(shape[-1], schedule.tile_cols))
    for tile in _smaller(wish.tile, whole_rows=False):
        whole = tuple(shape[dim] if dim in dims else size for dim, size in enumerate(tile))
        layout = _tiled(shape, whole)
        if _gives(view, layout):
            return layout
    return _tiled(shape, shape)


def readable(views: Sequence[View], wish: Layout, *, whole_rows: bool) -> Layout:
    """Return ``wish``, or smaller tiles of the same tensor, as every one of ``views`` can be read.

    Tiles of a view are not always tiles of what is there: heads of several tokens that have changed
    places with the tokens are not.
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


def with_cols(layout: Layout, cols: int) -> Layout:
    """Return the layout of as many rows with other columns; its tiles hold whole rows."""
    *lead, _ = layout.shape
    last = len(lead)
    loops = [loop for loop in layout.loops if loop.dim != last]
    kept = layout.nested(loops)
    return replace(
        kept, shape=(*lead, cols), tile=(*layout.tile[:-1], cols), start=(*layout.start[:-1], 0)
    )
