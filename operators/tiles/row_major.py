"""Stops of regular tensors: which levels close after each element, and where it is empty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Position", "positions", "row_major_strides"]


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
