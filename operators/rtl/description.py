"""Descriptions of functions in hardware: sizes of results and operations, as logic of tokens.

A method ``hardware`` of a function returns one. It builds no logic, so it needs no Amaranth.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: amaranth has no types.
from typing import Any, Final, NamedTuple

Sizes = tuple[Any, Any, Any, Any]
"""Rows and columns, and the valid rows and columns."""

NUMBER: Final[Sizes] = 1, 1, 1, 1
"""The sizes of a single number."""


def sizes_of(tile: Any) -> Sizes:
    return tile.rows, tile.cols, tile.valid_rows, tile.valid_cols


def whole(tile: Any, *_: Any) -> Sizes:
    """Return the sizes of the first tile without padding."""
    return tile.rows, tile.cols, tile.rows, tile.cols


class Function(NamedTuple):
    """A function of Map.

    Attributes:
        sizes: of the result.
        operations: their number; for a function with fixed cycles the cycles, at a rate of 1.
            None: as ``flops`` or ``fixed_cycles`` of the function say.
        number: the result, if it is a number or a selector.
        is_told: the number comes from the arithmetic outside.
    """

    operands: int
    sizes: Callable[..., Sizes]
    operations: Callable[..., Any] | None = None
    number: Callable[..., Any] | None = None
    is_told: bool = False


class Accumulation(NamedTuple):
    """A function of Accum and Scan.

    Attributes:
        first, more: the sizes of the accumulator after the first element, and after a further one.
        operations: per element; for fixed cycles the cycles, at a rate of 1.
        stays: the result is in memory if the operands are.
        beside: for a function with two results the sizes of the second, from the first.
        number: the result, if it is a number.
    """

    operands: int
    first: Callable[..., Sizes]
    more: Callable[..., Sizes]
    operations: Callable[..., Any]
    stays: bool = False
    beside: Callable[..., Sizes] | None = None
    number: int = 0


class Parts(NamedTuple):
    """The sizes of a part of a tile."""

    rows: int = 1
    cols: int = 1
