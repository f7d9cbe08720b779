"""Another shape for the same elements in the same order, by Flatten, Reshape and Promote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fabric import ShapeError, Stream
from fabric.extend import is_static, product, refuse
from operators.flatten import Flatten
from operators.promote import Promote
from operators.reshape import Reshape

__all__ = ["redimensioned"]


def redimensioned(stream: Stream, shape: tuple[int, ...]) -> Stream:
    """Return ``stream`` in another shape, outermost dimension first; wire as little as that takes.

    Raises:
        ShapeError: the stream has another number of elements, or data decide how many.
    """
    sizes = tuple(dim for dim in stream.shape if isinstance(dim, int))
    if not all(map(is_static, stream.shape)) or product(sizes) != math.prod(shape):
        refuse(
            f"{stream} shall have the shape {list(shape)}: expected as many elements", ShapeError
        )
    left = len(sizes)
    for old, new in _groups(sizes, shape):
        left -= len(old)
        if old != new:
            if len(old) > 1:
                stream = Flatten(left, left + len(old) - 1)(stream)
            stream = _split(stream, new, left)
    return stream


def _groups(
    old: Sequence[int], new: Sequence[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the smallest groups of dimensions with as many elements; ones go to a neighbour."""
    here, there = list(old), list(new)
    groups: list[tuple[list[int], list[int]]] = []
    while here and there:
        left, right = [here.pop(0)], [there.pop(0)]
        while math.prod(left) != math.prod(right):
            if math.prod(left) < math.prod(right):
                left.append(here.pop(0))
            else:
                right.append(there.pop(0))
        groups.append((left, right))
    groups[-1][0].extend(here)
    groups[-1][1].extend(there)
    return [(tuple(left), tuple(right)) for left, right in groups]


def _split(stream: Stream, sizes: Sequence[int], inside: int) -> Stream:
    """Return the stream with one dimension, which has ``inside`` others inside, in ``sizes``."""
    for outer, size in _splits(sizes):
        if outer == 1:
            stream = Promote(inside + 1)(stream)
        elif size == 1:
            stream = Promote(inside)(stream)
        else:
            stream, _ = Reshape(size, inside)(stream)
        inside += 1
    return stream


def _splits(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield what is split off, from the innermost outwards, with all that is outside of it."""
    for at in range(len(sizes) - 1, 0, -1):
        yield math.prod(sizes[:at]), sizes[at]
