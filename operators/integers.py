"""Integers on streams: 1x1 tiles of addresses, lengths and indices, real in both modes."""

from __future__ import annotations

import numpy as np

from fabric import ADDRESS_DTYPE, ShapeError, Stream, Tile, TileType

__all__ = ["INTEGER", "check_integers", "integer", "number_in"]

INTEGER = TileType(1, 1, ADDRESS_DTYPE)
"""The type of an integer on a stream."""


def integer(number: int) -> Tile:
    """Return the tile that carries ``number``; it comes from no memory."""
    return Tile(1, 1, ADDRESS_DTYPE, np.array([[number]], ADDRESS_DTYPE))


def number_in(tile: Tile) -> int:
    """Return the number that ``tile`` carries."""
    assert tile.data is not None
    number: int = tile.data.item()
    return number


def check_integers(operator: str, *streams: Stream) -> None:
    """Refuse streams of anything but integers.

    Raises:
        ShapeError: an element is something else.
    """
    for stream in streams:
        if stream.value != INTEGER:
            raise ShapeError(f"{operator} is given {stream}: expected {INTEGER}")
