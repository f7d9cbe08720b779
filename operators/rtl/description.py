"""Descriptions of functions in hardware: the sizes of results and the operations, from tokens.

A function's method ``hardware`` returns a description. It builds no logic, so it needs no Amaranth.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: amaranth has no types.
from typing import Any, Final, NamedTuple

Sizes = tuple[Any, Any, Any, Any]
"""Rows and columns, and the valid rows and columns."""

NUMBER: Final[Sizes] = 1, 1, 1, 1


def sizes_of(tile: Any) -> Sizes:
    return tile.rows, tile.cols, tile.valid_rows, tile.valid_cols


def whole(tile: Any, *_: Any) -> Sizes:
    """Return the sizes of the first tile without padding."""
    return tile.rows, tile.cols, tile.rows, tile.cols


class Function(NamedTuple):
    """A function of Map.

    Attributes:
        sizes: the sizes of the result.
        operations: the operations of an element, or its cycles if the function has fixed cycles. If
            None, ``flops`` or ``fixed_cycles`` of the function decide.
        number: the result, if it is a number or a selector.
        is_told: the number comes from the arithmetic outside of the hardware.
    """

    operands: int
    sizes: Callable[..., Sizes]
    operations: Callable[..., Any] | None = None
    number: Callable[..., Any] | None = None
    is_told: bool = False


class Accumulation(NamedTuple):
    """A function of Accum and Scan.

    Attributes:
        first, more: sizes of the accumulator after the first, and after each further element.
        operations: the operations of an element, or its cycles if the function has fixed cycles.
        stays: the result is in memory if the operands are.
        beside: for a function with two results, computes the sizes of the second from the first.
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
