"""Wrong data that has to be refused: a table of faults, each as what is wanted and what came.

A fault draws its numbers with ``draw(shape)`` and returns two float64 arrays: what is wanted, and
what a broken program stored. To add one, write a function and its line in ``FAULTS``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fabric.verification.storing import Array

__all__ = ["FAULTS", "NEEDS_FLOATS", "NEEDS_NUMBERS", "NEEDS_SIGNS", "Draw"]

Draw = Callable[[tuple[int, ...]], Array]
Fault = Callable[[Draw], tuple[Array, Array]]

ROWS, COLS, TILE = 64, 64, 16


def _matrix(draw: Draw) -> tuple[Array, Array]:
    """Return a matrix twice, the second to be spoilt."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted.copy()


def signs_beside_a_large_element(_: Draw) -> tuple[Array, Array]:
    """255 of 256 have the wrong sign, beside one of 100."""
    wanted = np.ones((16, 16))
    wanted[3, 5] = 100
    return wanted, np.where(wanted == 100, 100, -wanted)


def signs_of_every_tenth(draw: Draw) -> tuple[Array, Array]:
    """Every tenth element has the wrong sign."""
    wanted, found = _matrix(draw)
    found.flat[::10] *= -1
    return wanted, found


def one_row_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """One row was never written."""
    wanted, found = _matrix(draw)
    found[17] = 0
    return wanted, found


def all_rows_but_one_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """63 of 64 rows were never written; the one that was is large."""
    wanted, found = _matrix(draw)
    wanted[0] *= 5
    found[0] *= 5
    found[1:] = 0
    return wanted, found


def half_is_zeros_among_zeros(draw: Draw) -> tuple[Array, Array]:
    """Most of it shall be zeros, and half of the rest is, too."""
    wanted = np.zeros((ROWS, COLS))
    wanted[:8] = draw((8, COLS))
    found = wanted.copy()
    found[:4] = 0
    return wanted, found


def missing_bias(draw: Draw) -> tuple[Array, Array]:
    """The bias, as large as the product, was not added."""
    product = draw((ROWS, COLS))
    return product + draw((1, COLS)), product


def missing_bias_on_a_wide_range(draw: Draw) -> tuple[Array, Array]:
    """The same where few elements are a hundred times as large as the others."""
    product = draw((ROWS, COLS))
    product[::16, ::16] *= 10
    return product + draw((1, COLS)), product


def swapped_experts(draw: Draw) -> tuple[Array, Array]:
    """Tokens 0 to 31 got the result of tokens 32 to 63."""
    wanted = draw((ROWS, COLS))
    return wanted, np.roll(wanted, ROWS // 2, axis=0)


def one_tile_stale(draw: Draw) -> tuple[Array, Array]:
    """A tile has the data of the one before it."""
    wanted, found = _matrix(draw)
    found[:TILE, TILE : 2 * TILE] = found[:TILE, :TILE]
    return wanted, found


def transposed_tile(draw: Draw) -> tuple[Array, Array]:
    """A tile is transposed."""
    wanted, found = _matrix(draw)
    found[:TILE, :TILE] = wanted[:TILE, :TILE].T
    return wanted, found


def off_by_one_row(draw: Draw) -> tuple[Array, Array]:
    """Every row stands one too low."""
    wanted = draw((ROWS, COLS))
    return wanted, np.roll(wanted, 1, axis=0)


def off_by_one_column(draw: Draw) -> tuple[Array, Array]:
    """Every column stands one too far right."""
    wanted = draw((ROWS, COLS))
    return wanted, np.roll(wanted, 1, axis=1)


def twice_as_large(draw: Draw) -> tuple[Array, Array]:
    """Everything was added twice."""
    wanted = draw((ROWS, COLS))
    return wanted, 2 * wanted


def one_product_of_two_missing(draw: Draw) -> tuple[Array, Array]:
    """A sum lost one of its two terms."""
    first, second = draw((ROWS, COLS)), draw((ROWS, COLS))
    return first + second, first


def padding_kept(draw: Draw) -> tuple[Array, Array]:
    """The last row of a packed tile is padding."""
    wanted, found = _matrix(draw)
    found[TILE - 1 :: TILE] = 0
    return wanted, found


def anything_beside_an_infinity(draw: Draw) -> tuple[Array, Array]:
    """One element shall be infinite, and is; all others are wrong."""
    wanted = draw((ROWS, COLS))
    wanted[0, 0] = np.inf
    found = -wanted
    found[0, 0] = np.inf
    return wanted, found


def no_infinity(draw: Draw) -> tuple[Array, Array]:
    """One element shall be infinite, and is not."""
    wanted, found = _matrix(draw)
    wanted[3, 3] = np.inf
    return wanted, found


def the_other_infinity(draw: Draw) -> tuple[Array, Array]:
    """An infinity has the wrong sign."""
    wanted, found = _matrix(draw)
    wanted[3, 3], found[3, 3] = np.inf, -np.inf
    return wanted, found


def a_nan(draw: Draw) -> tuple[Array, Array]:
    """One element is no number."""
    wanted, found = _matrix(draw)
    found[3, 3] = np.nan
    return wanted, found


def a_nan_for_a_nan(draw: Draw) -> tuple[Array, Array]:
    """Both are no number, and the program does not say that this is right."""
    wanted, found = _matrix(draw)
    wanted[3, 3] = found[3, 3] = np.nan
    return wanted, found


def one_row_too_few(draw: Draw) -> tuple[Array, Array]:
    """The last row is missing."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted[:-1]


def one_element_of_many(draw: Draw) -> tuple[Array, Array]:
    """A single number is wrong, by three times the largest."""
    wanted, found = _matrix(draw)
    found[40, 2] += 3 * wanted.max()
    return wanted, found


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        signs_beside_a_large_element,
        signs_of_every_tenth,
        one_row_of_zeros,
        all_rows_but_one_of_zeros,
        half_is_zeros_among_zeros,
        missing_bias,
        missing_bias_on_a_wide_range,
        swapped_experts,
        one_tile_stale,
        transposed_tile,
        off_by_one_row,
        off_by_one_column,
        twice_as_large,
        one_product_of_two_missing,
        padding_kept,
        anything_beside_an_infinity,
        no_infinity,
        the_other_infinity,
        a_nan,
        a_nan_for_a_nan,
        one_row_too_few,
        one_element_of_many,
    )
}

NEEDS_FLOATS = {
    "anything_beside_an_infinity",
    "no_infinity",
    "the_other_infinity",
    "a_nan",
    "a_nan_for_a_nan",
}
"""Integers have no such numbers."""

NEEDS_SIGNS = {"signs_beside_a_large_element", "signs_of_every_tenth"}
"""Unsigned types and booleans have none."""

NEEDS_NUMBERS = {
    "all_rows_but_one_of_zeros",
    "missing_bias",
    "missing_bias_on_a_wide_range",
    "twice_as_large",
    "one_product_of_two_missing",
    "one_element_of_many",
}
"""Booleans cannot be added."""
