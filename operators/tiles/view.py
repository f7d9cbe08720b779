"""Affine views: which items of a row-major sequence are read, in which shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from operators.tiles.row_major import positions

__all__ = ["LISTED", "Viewed", "numbers_below", "reach", "walk"]

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
