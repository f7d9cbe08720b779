"""Integers on streams: 1x1 tiles of addresses, lengths and indices, with data in both modes."""

from __future__ import annotations

from typing import Final

import numpy as np

from fabric import ShapeError, Stream, Tile, TileType
from fabric.extend import ADDRESS_DTYPE, ValueType, number_in

INTEGER = TileType(1, 1, ADDRESS_DTYPE)
"""The type of the integers that sources emit."""

MOST: Final = int(np.iinfo(ADDRESS_DTYPE).max)


def integer(number: int) -> Tile:
    """Return a tile that holds ``number`` and is not in a memory unit.

    Raises:
        ValueError: the number is below 0, or has more than 64 bits.
    """
    if not 0 <= number <= MOST:
        raise ValueError(f"an integer on a stream is {number:,}: expected 0 to {MOST:,}")
    return Tile(1, 1, ADDRESS_DTYPE, np.array([[number]], ADDRESS_DTYPE))


def count_in(tile: Tile, what: str) -> int:
    """Return the number in ``tile``; refuse a negative number, called ``what`` in the error."""
    number = number_in(tile)
    if number < 0:
        raise ValueError(f"{what} is {number:,}: expected at least 0")
    return number


def is_integer(value: ValueType) -> bool:
    """Whether values of this type are integers: 1x1 tiles of an integer type."""
    return (
        isinstance(value, TileType)
        and (value.rows, value.cols) == (1, 1)
        and value.dtype.kind in "iu"
    )


def check_integers(operator: str, *streams: Stream) -> None:
    for stream in streams:
        if not is_integer(stream.value):
            raise ShapeError(f"{operator} is given {stream}: expected 1x1 tiles of integers")
