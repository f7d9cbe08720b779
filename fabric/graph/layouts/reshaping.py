"""Layouts of tensors before and after reshape, permute, slice and expand.

Each function takes the layout on one side and returns the layout on the other side, or None if that
side has no layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from fabric.graph.arguments.described import checked, refuse
from fabric.graph.layouts.layout import Layout, Loop, ends, merged
from fabric.messages.errors import ShapeError


@checked
def reshaped(layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """Return the layout of ``x.reshape(shape)``, given the layout of ``x``, or None.

    A tile keeps its elements and their order. If its rows and columns change, the tile has to be
    reshaped, too. Loops that carry from one dimension to the next are split.

    Args:
        layout: the layout of ``x``.
        shape: with the same number of elements.

    Raises:
        ShapeError: the number of elements differs.
    """
    if math.prod(shape) != math.prod(layout.shape) or min(shape, default=1) < 1:
        refuse(
            f"reshaped: shape is {list(shape)}: "
            f"expected {math.prod(layout.shape)} elements, as in {layout}",
            ShapeError,
        )
    groups = list(_groups(layout.shape, shape))
    widths = [_flat_tile(layout, old) for old, _ in groups]
    tile, start = [1] * len(shape), [0] * len(shape)
    for (old, new), width in zip(groups, widths, strict=True):
        if width is None:
            return None
        left = width
        strides = _strides(layout.shape, old)
        first = sum(layout.start[dim] * strides[dim] for dim in old)
        for dim in reversed(new):
            tile[dim] = min(left, shape[dim])
            left, rest = divmod(left, tile[dim])
            first, start[dim] = divmod(first, shape[dim])
            if rest:
                return None
    loops = _flat_loops(layout, [old for old, _ in groups])
    targets = [_strides(shape, new) for _, new in groups]
    # Merged loops may split although the original loops do not.
    for nest in (loops, merged(loops)):
        split = _split(nest, targets, shape)
        if split is not None and _fits(shape, ends(len(shape), tile, start, split)):
            return Layout.of_loops(shape, tile, start, split)
    return None


@checked
def counted(
    shape: tuple[int, ...], trips: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Layout | None:
    """Return the layout for loops that count through the row-major elements of a tensor.

    Args:
        shape: the shape of the tensor.
        trips: the trips of the loops, outermost first.
        strides: how many row-major elements each loop moves in a trip; 0 repeats the elements.
        offset: the first element.

    Returns:
        The layout, in tiles of one element; None if no loops along dimensions have this order.

    Raises:
        ShapeError: an element is outside of the tensor.
    """
    if len(trips) != len(strides):
        refuse(
            f"counted: trips are {list(trips)} and strides {list(strides)}: "
            "expected one stride for each loop",
            ShapeError,
        )
    if any(stride < 0 and count > 1 for count, stride in zip(trips, strides, strict=True)):
        return None
    loops = [
        Loop(count, stride, 0) if stride > 0 and count > 1 else Loop(count, 1, None)
        for count, stride in zip(trips, strides, strict=True)
    ]
    return reshaped(Layout.of_loops((math.prod(shape),), (1,), (offset,), loops), shape)


def _fits(shape: Sequence[int], reached: Sequence[int]) -> bool:
    return all(end <= size for end, size in zip(reached, shape, strict=True))


def _groups(
    old: Sequence[int], new: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the smallest groups of old and new dimensions with equal products, without size 1."""
    left = [dim for dim, size in enumerate(old) if size > 1]
    right = [dim for dim, size in enumerate(new) if size > 1]
    while left:
        of_old, of_new = [left.pop(0)], [right.pop(0)]
        while (size := math.prod(old[dim] for dim in of_old)) != (
            new_size := math.prod(new[dim] for dim in of_new)
        ):
            if size < new_size:
                of_old.append(left.pop(0))
            else:
                of_new.append(right.pop(0))
        yield tuple(of_old), tuple(of_new)


def _strides(shape: Sequence[int], dims: Sequence[int]) -> dict[int, int]:
    """Return the row-major stride within a group of each of its dimensions."""
    return {dim: math.prod(shape[inner] for inner in dims[at + 1 :]) for at, dim in enumerate(dims)}


def _flat_tile(layout: Layout, dims: Sequence[int]) -> int | None:
    """Return the size of a tile along a group of dimensions; None if its elements have gaps."""
    parts = [layout.tile[dim] for dim in dims]
    first = next((at for at, part in enumerate(parts) if part > 1), len(parts))
    if any(layout.tile[dim] != layout.shape[dim] for dim in dims[first + 1 :]):
        return None
    return math.prod(parts)


def _flat_loops(layout: Layout, groups: Sequence[tuple[int, ...]]) -> list[Loop]:
    """Return loops along groups of dimensions; loops of one trip have no group."""
    along = {
        dim: (number, stride)
        for number, dims in enumerate(groups)
        for dim, stride in _strides(layout.shape, dims).items()
    }
    loops = []
    for trips, step, dim in layout.loops:
        if dim is None or trips == 1:
            loops.append(Loop(trips, 1, None))
        else:
            group, stride = along[dim]
            loops.append(Loop(trips, step * stride, group))
    return loops


def _split(
    loops: Sequence[Loop], targets: Sequence[dict[int, int]], shape: Sequence[int]
) -> list[Loop] | None:
    """Return loops along groups as loops along dimensions; ``targets`` are strides by group."""
    split: list[Loop] = []
    for loop in loops:
        pieces: list[Loop] | None = [loop]
        if loop.dim is not None:
            pieces = _split_loop(loop.trips, loop.step, targets[loop.dim], shape)
        if pieces is None:
            return None
        split += pieces
    return split


def _split_loop(
    trips: int, step: int, strides: dict[int, int], shape: Sequence[int]
) -> list[Loop] | None:
    pieces: list[Loop] = []
    for dim in reversed(strides):
        room = strides[dim] * shape[dim]
        if step >= room:
            continue
        if step % strides[dim]:
            return None
        inner = min(trips, -(-room // step))
        if inner < trips and (room % step or trips % inner):
            return None
        pieces.insert(0, Loop(inner, step // strides[dim], dim))
        trips //= inner
        if trips == 1:
            break
        step = room
    return pieces


class Viewed(NamedTuple):
    """The layout of a permuted tensor.

    Attributes:
        transposed: whether each tile is transposed.
    """

    layout: Layout
    transposed: bool


@checked
def permuted(layout: Layout, dims: tuple[int, ...]) -> Viewed | None:
    """Return the layout of ``x.permute(dims)``, given the layout of ``x``.

    None if the tiles change by more than a transposition.

    Args:
        layout: the layout of ``x``.
        dims: the dimensions in their new order.

    Raises:
        ShapeError: ``dims`` does not name each dimension once.
    """
    rank = len(layout.shape)
    if sorted(dims) != list(range(rank)):
        refuse(
            f"permuted: dims is {list(dims)}: expected each dimension of the layout once, "
            f"0 to {rank - 1}",
            ShapeError,
        )
    rows, cols = _in_tile(layout.tile, range(rank))
    new_rows, new_cols = _in_tile(layout.tile, dims)
    transposed = (rows, cols) != (new_rows, new_cols)
    if transposed and (rows, cols) != (new_cols, new_rows):
        return None
    parts = (layout.shape, layout.tile, layout.start)
    shape, tile, start = ([part[dim] for dim in dims] for part in parts)
    loops = [
        loop if loop.dim is None else loop._replace(dim=dims.index(loop.dim))
        for loop in layout.loops
    ]
    return Viewed(Layout.of_loops(shape, tile, start, loops), transposed)


def _in_tile(tile: Sequence[int], dims: Sequence[int]) -> tuple[list[int], list[int]]:
    rows = [dim for dim in dims[:-1] if tile[dim] > 1]
    return rows, [dim for dim in dims[-1:] if tile[dim] > 1]


@checked
def sliced_back(layout: Layout, shape: tuple[int, ...], dim: int, first: int) -> Layout:
    """Return the layout of ``x``, given the layout of a slice of ``x`` along one dimension.

    Args:
        layout: the layout of the slice.
        shape: the shape of ``x``.
        dim: the sliced dimension.
        first: the slice's first element.

    Raises:
        ShapeError: ``x`` has no such slice.
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
    return replace(layout, shape=shape, start=tuple(start))


@checked
def sliced(layout: Layout, dim: int, first: int, count: int) -> Layout | None:
    """Return the layout of a slice of ``x`` along one dimension, given the layout of ``x``.

    None if the stream has tiles outside of the slice.

    Args:
        layout: the layout of ``x``.
        dim: the sliced dimension.
        first: the slice's first element.
        count: the slice's number of elements.

    Raises:
        ShapeError: ``x`` has no such slice.
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
    return replace(layout, shape=tuple(shape), start=tuple(start))


def _check_dim(who: str, layout: Layout, dim: int) -> None:
    if not 0 <= dim < len(layout.shape):
        refuse(f"{who}: dim is {dim}: expected a dimension of {layout}", ShapeError)


@checked
def expanded_back(layout: Layout, base_shape: tuple[int, ...]) -> Layout:
    """Return the layout of ``x``, given the layout of ``x.expand(...)``.

    Along an expanded dimension ``x`` has one element. Loops read this element again, and tiles have
    size 1, so that they are broadcast to the tiles of the expanded tensor.

    Args:
        layout: the layout of the expanded tensor.
        base_shape: the shape of ``x``, which may lack outer dimensions of the expanded tensor.

    Raises:
        ShapeError: a tensor of ``base_shape`` does not expand to the shape of ``layout``.
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
    tile = [layout.tile[dim] if kept(dim) else 1 for dim in own]
    start = [layout.start[dim] if kept(dim) else 0 for dim in own]
    return Layout.of_loops(base_shape, tile, start, loops)
