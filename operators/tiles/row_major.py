"""Walks of tensors in row-major order: which levels close after each element, and affine views.

A view says which items of a row-major sequence are read, in which shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["LISTED", "Viewed", "numbers_below", "positions", "reach", "row_major_strides", "walk"]


class Position(NamedTuple):
    """One element of a tensor, or one empty part of it.

    Attributes:
        place: per dimension, outermost first; shorter where a dimension of size 0 follows.
        stop: how many dimensions close here, counted from the innermost.
        empty_dimension: the dimension of size 0, counted from the innermost; None for an element.
    """

    place: tuple[int, ...]
    stop: int
    empty_dimension: int | None


def positions(shape: Sequence[int]) -> Iterator[Position]:
    """Walk a tensor of ``shape`` in row-major order, outermost dimension first.

    The last element closes all dimensions. A tensor with a dimension of size 0 has one position
    for each combination of the dimensions outside of it.
    """
    outer = next((axis for axis, size in enumerate(shape) if size == 0), None)
    walked = tuple(shape) if outer is None else tuple(shape[:outer])
    empty = None if outer is None else len(shape) - 1 - outer
    closed_always = 0 if empty is None else empty + 1
    strides = row_major_strides(walked)
    for flat in range(math.prod(walked)):
        place = tuple(flat // stride % size for size, stride in zip(walked, strides, strict=True))
        closing = 0
        for size, index in zip(reversed(walked), reversed(place), strict=True):
            if index != size - 1:
                break
            closing += 1
        yield Position(place, closed_always + closing, empty)


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements apart neighbours are along each dimension."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


LISTED: Final = 1 << 16
"""Items of a view up to which it pays to list them once, instead of walking it each time."""


class Viewed(NamedTuple):
    """One element of a view, or one empty part of it.

    Attributes:
        item: the number of the item that is read; None in an empty part.
        stop: how many dimensions close here.
        empty_dimension: the dimension of size 0; None for an item.
    """

    item: int | None
    stop: int
    empty_dimension: int | None


def numbers_below(count: int) -> str:
    """Say which numbers items have where there are ``count`` of them."""
    return f"0 to {count - 1:,}" if count else "none, since there is nothing to read"


def reach(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int] | None:
    """Return the lowest and the highest item of a view; None where it reads nothing."""
    if not all(shape):
        return None
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    below, above = [end for end in ends if end < 0], [end for end in ends if end > 0]
    return offset + sum(below), offset + sum(above)


def walk(shape: Sequence[int], strides: Sequence[int], offset: int) -> Iterator[Viewed]:
    """Walk a view in row-major order; however large it is, only one element exists at a time.

    Args:
        shape: of the view, outermost first.
        strides: items from one element to the next along each dimension.
        offset: the item of the first element.
    """
    for place, stop, empty in positions(shape):
        if empty is None:
            item = offset + sum(i * stride for i, stride in zip(place, strides, strict=True))
            yield Viewed(item, stop, None)
        else:
            yield Viewed(None, stop, empty)
