"""Products of two tensors that come as they please, batch by batch: how they are tiled and ordered.

B counts batches, M rows and N columns of the result, K is the inner dimension.
"""

from __future__ import annotations

import numpy as np

from fabric import Layout
from operators.kernels.following import readable
from operators.kernels.linear import left_tiles
from operators.kernels.nest import Nest
from operators.kernels.product import Product
from operators.kernels.schedule import Schedule, fit
from operators.kernels.tensors import Pulled, View

__all__ = ["batched"]

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
