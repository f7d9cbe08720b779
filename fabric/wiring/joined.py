"""Streams that come together element by element: their shapes, and the orders of their tiles."""

from __future__ import annotations

from itertools import combinations

from fabric.telling.errors import ShapeError
from fabric.telling.place import Place
from fabric.values.equality import same
from fabric.wiring.orders import differ, differ_text
from fabric.wiring.stream import Stream

__all__ = ["check_orders", "check_same_shape"]


def check_same_shape(operator: str, left: Stream, right: Stream) -> None:
    """Raise an error if two streams cannot be read element by element.

    Raises:
        ShapeError: ranks differ, or dimensions that are known to differ.
    """
    if left.rank == right.rank and (
        left.shape == right.shape
        or all(same(a, b) is not False for a, b in zip(left.shape, right.shape, strict=True))
    ):
        return
    raise ShapeError(f"{operator} joins {left} and {right}: expected the same shape")


def check_orders(operator: str, inputs: tuple[Stream, ...], place: Place) -> None:
    """Refuse streams that come together element by element and have other tiles of one tensor.

    Raises:
        ShapeError: two orders differ, of which the program has stated at least one.
    """
    for left, right in combinations(inputs, 2):
        if not (left.is_laid_out or right.is_laid_out):
            continue
        one, other = left.layout, right.layout
        if one is not None and other is not None and differ(one, other):
            raise ShapeError(
                f"{operator} joins {left} and {right} in two orders: "
                f"{differ_text(one, other, left.type)}",
                file=place.file,
                line=place.line,
            )
