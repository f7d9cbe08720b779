"""How matrix products are tiled, ordered and padded: those with weights, and those of two tensors.

Weights are in off-chip memory; two tensors come as they please, batch by batch. B counts batches,
M rows and N columns of the result (the output features), K is the inner dimension.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fabric import Layout, dtype_named
from fabric.extend import BLOCK, block_format
from operators.kernels.following import readable, rows_layout
from operators.kernels.kernel import Operand, joint_of
from operators.kernels.product import Nest, Product
from operators.kernels.schedule import Schedule, at_most, fit
from operators.kernels.tensors import Pulled, Stored, View

__all__ = ["batched", "linear"]

_NARROWER = 8
"""How many times narrower than wished tiles of weights may be for units to share them evenly."""

_THINNER = 4
"""How many times fewer rows than wished tiles may have to be taken as they come."""

_WIDER = 4
"""How many times as wide as the rows they come of sums of whole rows may be."""


def linear(
    name: str,
    x: View,
    weight: View,
    bias: View | None,
    dtype: np.dtype,
    schedule: Schedule,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Product:
    """Return ``x @ weight.T``, with a bias that is added before anything is rounded.

    Weights are read as PyTorch stores them, by rows of an output feature: so the rows of a tile
    are as long as they can be, and no requests of the memory are filled in part.

    Rows that come in tiles of columns are summed as they come: in ``row`` order, or where there is
    one tile of rows, in sums of whole rows, where those are not much wider than the rows. Where no
    tile near the wish divides N, weights and bias are padded with rows of zeros.

    Args:
        name: of its operators.
        x: ``[*rows, K]``.
        weight: ``[N, K]``, in off-chip memory.
        bias: of a shape that broadcasts to ``[*rows, N]``.
        dtype: of the result.
        schedule: says tiles and order.
        factors: of the product, and of the bias.
    """
    size, inner = weight.shape
    stored_as = schedule.weight_dtype_of(name)
    if stored_as is not None:
        weight = View.of(weight.stored().retyped(dtype_named(stored_as)))
    order = schedule.order_of(name)
    left = left_tiles(x, 0, schedule, whole=order != "output")
    if block_format(weight.dtype) is not None and left.tile[-1] % BLOCK:
        # A tile of weights has whole blocks, or whole rows.
        left = readable((x,), Layout.tiled(x.shape, (*left.tile[:-1], inner)), whole_rows=False)
    nest = Nest(left, 0, size, size, order)
    if nest.row_tiles == 1 and order == "weight":
        nest = Nest(left, 0, size, size, "row")
    comes_so = x.layout is not None and x.layout.same_order(nest.reading_left)
    if nest.order == "row" and nest.groups and comes_so:
        if size <= _WIDER * inner:
            units = at_most(schedule.units, size)
            nest = Nest(left, 0, size, size // units, "row", units)
            return Product(name, nest, x, weight, dtype, added=bias, factors=factors)
        whole = readable((x,), Layout.tiled(left.shape, (*left.tile[:-1], inner)), whole_rows=False)
        nest = Nest(whole, 0, size, size, "row")
    units = at_most(schedule.units, size)
    cols, keeps = tile_of(size // units, schedule.tile_cols), None
    if cols is None and units > 1:
        # Narrower tiles, so that all units have as many: they load as many bytes in as many cycles.
        narrow = fit(size // units, schedule.tile_cols)
        cols = narrow if narrow * _NARROWER >= schedule.tile_cols else None
    if cols is None:
        cols = schedule.tile_cols
        if bias is None or isinstance(bias.source, Stored):
            keeps, size = size, -(-size // cols) * cols
            weight = _padded(weight, 0, size)
            bias = None if bias is None else _padded(bias, -1, size)
        else:
            cols = fit(size, cols)
        units = at_most(schedule.units, size // cols)
    nest = Nest(nest.left, 0, size, cols, nest.order, units)
    return Product(name, nest, x, weight, dtype, added=bias, factors=factors, keeps=keeps)


def _joins(operand: Operand) -> bool:
    """Whether what a kernel gives can be read so without a way through off-chip memory."""
    pulled = operand.layout is not None and operand.view.pull(operand.layout)
    return bool(pulled) and joint_of(operand).convertible


def left_tiles(x: View, batch: int, schedule: Schedule, *, whole: bool) -> Layout:
    """Return the tiles in which a left operand is read, each once.

    Those in which it comes, if they have rows of one batch only and not far fewer than the schedule
    wishes: a product with weights takes 16 rows as soon as one. Else tiles of the schedule's rows,
    with whole rows where a converter can put them together.

    Args:
        x: ``[*batches, *rows, K]``.
        batch: dimensions of batches.
        schedule: says the tiles.
        whole: the inner dimension is not tiled, unless it comes so.
    """
    inner = x.shape[-1]
    cols = inner if whole else tile_of(inner, schedule.tile_inner) or inner
    found = x.layout
    rows = ((1,) * batch) + rows_layout(x.shape[batch:], schedule.tile_rows, inner).tile[:-1]
    if found is not None and not found.rereads and set(found.tile[:batch]) <= {1}:
        if found.rows * _THINNER < math.prod(rows):
            for wide in (cols, min(cols, found.tile[-1])):
                layout = Layout.tiled(x.shape, (*rows, wide))
                if _joins(Operand(x, layout)):
                    return layout
        if whole or found.tile[-1] < inner:
            return found
        rows = found.tile[:-1]
    return readable((x,), Layout.tiled(x.shape, (*rows, cols)), whole_rows=False)


def tile_of(size: int, wish: int) -> int | None:
    """Return a tile near ``wish`` that divides ``size``; None where there is none."""
    found = fit(size, wish)
    return found if 4 * found >= min(wish, size) else None


def _padded(view: View, axis: int, size: int) -> View:
    """Return a stored tensor with zeros up to ``size`` places; one that is repeated, as it is."""
    have = view.shape[axis] if view.shape else 1
    if have == 1:
        return view
    shape, missing = list(view.shape), [(0, 0)] * len(view.shape)
    shape[axis], missing[axis] = size, (0, size - have)
    stored = view.stored()
    padded = stored.viewed(stored.name, tuple(shape), lambda array: np.pad(array, missing))
    return View.of(replace(padded, base=None))  # a larger tensor, and no view of the other


_WIDEST = 8
"""How many times as wide as the schedule's wish tiles may be that come so."""


def batched(
    name: str,
    left: View,
    right: View,
    added: View | None,
    dtype: np.dtype,
    schedule: Schedule,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Product:
    """Return ``left @ right``, with something that is added before anything is rounded.

    The tiles of the left operand are followed, and the columns of the right one's. It is read by
    rows of its columns where it comes so, that nothing has to be transposed.

    Args:
        name: of its operators.
        left: ``[*B, *M, K]``.
        right: ``[*B, K, N]``.
        added: of a shape that broadcasts to ``[*B, *M, N]``.
        dtype: of the result.
        schedule: says tiles and order.
        factors: of the product, and of what is added.
    """
    batch, size, order = len(right.shape) - 2, right.shape[-1], schedule.order_of(name)
    by_columns = right.permuted((*range(batch), batch + 1, batch))
    cols = _cols_of(right, -1, batch) or _cols_of(by_columns, -2, batch) or 0
    if not 0 < cols <= _WIDEST * schedule.tile_cols:
        cols = fit(size, schedule.tile_cols)
    tiles = left_tiles(left, batch, schedule, whole=order != "output")
    inner = tiles.tile[-1]
    wish = Layout.tiled(right.shape, ((1,) * batch) + (inner, cols))
    *_, found, cols = readable((right,), wish, whole_rows=False).tile
    if found != inner:
        tiles = Layout.tiled(left.shape, (*tiles.tile[:-1], found))
    nest = Nest(tiles, batch, size, cols, order)
    if nest.row_tiles == 1 and order == "weight":
        nest = Nest(tiles, batch, size, cols, "row")

    def as_it_is(view: View, *, transposed: bool) -> bool:
        pulled = view.pull(nest.reading_right(view.shape[:-2], transposed=transposed))
        return pulled is not None and _stays(pulled)

    transposed = not as_it_is(right, transposed=False) and as_it_is(by_columns, transposed=True)
    view = by_columns if transposed else right
    return Product(
        name, nest, left, view, dtype, transposed=transposed, added=added, factors=factors
    )


def _cols_of(right: View, axis: int, batch: int) -> int | None:
    """Return the columns of the result that a tile of the right operand has, as it comes."""
    layout = right.layout
    return None if layout is None or set(layout.tile[:batch]) > {1} else layout.tile[axis]


def _stays(pulled: Pulled) -> bool:
    """Whether the elements of a tile are where the reader wants them."""
    layout = pulled.layout
    return pulled.places.shape == (layout.rows, layout.cols) and np.array_equal(
        pulled.places.reshape(-1), np.arange(layout.rows * layout.cols)
    )
