"""Layouts through calls that permute, slice or expand a tensor, as PyTorch's: what loops become.

Each function takes the layout of one side and returns the other side's, so that one stream is
both; None where no layout says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fabric.arguments.described import checked, refuse
from fabric.layouts.layout import Layout
from fabric.layouts.loops import Loop, ends
from fabric.telling.errors import ShapeError

__all__ = ["Viewed", "expanded_back", "permuted", "sliced", "sliced_back"]


class Viewed(NamedTuple):
    """A layout of the other side.

    Attributes:
        layout: of the tensor as it is viewed.
        transposed: whether rows and columns of each tile have changed places.
    """

    layout: Layout
    transposed: bool


@checked
def permuted(layout: Layout, dims: tuple[int, ...]) -> Viewed | None:
    """Return the layout of ``x.permute(dims)``, given that of ``x``.

    None where the elements of a tile change places in another way than rows with columns.

    Args:
        layout: of a tensor.
        dims: the dimensions in their new order.

    Raises:
        ShapeError: ``dims`` is no order of the dimensions.
    """
    rank = len(layout.shape)
    if sorted(dims) != list(range(rank)):
        refuse(
            f"permuted: dims is {list(dims)}: expected each dimension of the layout once, "
            f"0 to {rank - 1}",
            ShapeError,
        )
    tile = layout.tile
    rows, cols = _in_tile(tile, range(rank))
    new_rows, new_cols = _in_tile(tile, dims)
    transposed = (rows, cols) != (new_rows, new_cols)
    if transposed and (rows, cols) != (new_cols, new_rows):
        return None
    at = {old: new for new, old in enumerate(dims)}
    return Viewed(
        Layout(
            tuple(layout.shape[dim] for dim in dims),
            tuple(tile[dim] for dim in dims),
            layout.trips,
            layout.steps,
            tuple(None if dim is None else at[dim] for dim in layout.map),
            tuple(layout.start[dim] for dim in dims),
        ),
        transposed,
    )


def _in_tile(tile: Sequence[int], dims: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return which dimensions are in a tile's rows and which in its columns, larger than 1."""
    rows = [dim for dim in dims[:-1] if tile[dim] > 1]
    return rows, [dim for dim in dims[-1:] if tile[dim] > 1]


@checked
def sliced_back(layout: Layout, shape: tuple[int, ...], dim: int, first: int) -> Layout:
    """Return the layout of ``x``, given that of a slice of it along one dimension.

    Args:
        layout: of the slice.
        shape: of ``x``.
        dim: the dimension.
        first: the slice's first element.

    Raises:
        ShapeError: such a tensor has no such slice.
    """
    _check_dim("sliced_back", layout, dim)
    size = layout.shape[dim]
    expected = (*layout.shape[:dim], *shape[dim : dim + 1], *layout.shape[dim + 1 :])
    if tuple(shape) != expected or not 0 <= first <= shape[dim] - size:
        refuse(
            f"sliced_back: elements {first} to {first + size - 1} of dimension {dim} of "
            f"{list(shape)} are given the layout {layout}: expected a slice of its shape",
            ShapeError,
        )
    start = list(layout.start)
    start[dim] += first
    return Layout(tuple(shape), layout.tile, layout.trips, layout.steps, layout.map, tuple(start))


@checked
def sliced(layout: Layout, dim: int, first: int, count: int) -> Layout | None:
    """Return the layout of a slice along one dimension, given that of the tensor.

    None where the stream has tiles outside of the slice.

    Args:
        layout: of a tensor.
        dim: the dimension.
        first: the slice's first element.
        count: its elements.

    Raises:
        ShapeError: the tensor has no such slice.
    """
    _check_dim("sliced", layout, dim)
    size = layout.shape[dim]
    if first < 0 or count < 1 or first + count > size:
        refuse(
            f"sliced: elements {first} to {first + count - 1} of dimension {dim} of {layout}: "
            f"expected some of 0 to {size - 1}",
            ShapeError,
        )
    end = ends(len(layout.shape), layout.tile, layout.start, layout.loops)[dim]
    if layout.start[dim] < first or end > first + count:
        return None
    shape, start = list(layout.shape), list(layout.start)
    shape[dim] = count
    start[dim] -= first
    return Layout(tuple(shape), layout.tile, layout.trips, layout.steps, layout.map, tuple(start))


def _check_dim(who: str, layout: Layout, dim: int) -> None:
    if not 0 <= dim < len(layout.shape):
        refuse(
            f"{who}: dim is {dim}: expected a dimension of {layout}",
            ShapeError,
        )


@checked
def expanded_back(layout: Layout, base_shape: tuple[int, ...]) -> Layout:
    """Return the layout of ``x``, given that of ``x.expand(...)``.

    Along a dimension that was expanded ``x`` has one element: loops read it again, and tiles are 1
    along it, so that they are broadcast to the tiles of the expanded tensor.

    Args:
        layout: of the expanded tensor.
        base_shape: of ``x``; its dimensions are the last ones.

    Raises:
        ShapeError: such a tensor does not expand to that one.
    """
    new = len(layout.shape) - len(base_shape)
    if new < 0 or any(
        base not in (1, size) for base, size in zip(base_shape, layout.shape[new:], strict=True)
    ):
        refuse(
            f"expanded_back: base_shape is {list(base_shape)}: "
            f"expected a shape that expands to that of {layout}",
            ShapeError,
        )

    def kept(dim: int | None) -> bool:
        return dim is not None and dim >= new and base_shape[dim - new] == layout.shape[dim]

    loops = [
        loop._replace(dim=loop.dim - new)
        if loop.dim is not None and kept(loop.dim)
        else Loop(loop.trips, 1, None)
        for loop in layout.loops
    ]
    own = range(new, len(layout.shape))
    return Layout(
        tuple(base_shape),
        tuple(layout.tile[dim] if kept(dim) else 1 for dim in own),
        tuple(loop.trips for loop in loops),
        tuple(loop.step for loop in loops),
        tuple(loop.dim for loop in loops),
        tuple(layout.start[dim] if kept(dim) else 0 for dim in own),
    )
