"""Wrong data that has to be refused: a table of faults, each as what is wanted and what came.

A fault draws its numbers with ``draw(shape)`` and returns two float64 arrays: what is wanted, and
what a broken program stored. To add one, write a function and its line in ``FAULTS``.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
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


def _scale(wanted: Array) -> Array:
    """Return the root mean square of each row."""
    result: Array = np.sqrt(np.square(wanted).mean(axis=1, keepdims=True))
    return result


def the_other_sign(draw: Draw) -> tuple[Array, Array]:
    """Everything has the wrong sign."""
    wanted = draw((ROWS, COLS))
    return wanted, -wanted


def zeros(draw: Draw) -> tuple[Array, Array]:
    """Nothing was written."""
    wanted = draw((ROWS, COLS))
    return wanted, 0 * wanted


def one_added(draw: Draw) -> tuple[Array, Array]:
    """One is added to everything."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted + 1


def all_rows_but_a_hundredfold_one_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """63 of 64 rows were never written; the one that was is 100 times as large."""
    wanted = draw((ROWS, COLS))
    wanted[0] *= 10
    found = np.zeros_like(wanted)
    found[0] = wanted[0]
    return wanted, found


def a_small_row_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """A row a tenth as large as the others was never written."""
    wanted = draw((ROWS, COLS))
    wanted[17] = np.round(wanted[17] * 4) / 10 + 0.2
    found = wanted.copy()
    found[17] = 0
    return wanted, found


def a_bias_of_5_percent(draw: Draw) -> tuple[Array, Array]:
    """A bias of a twentieth of each row's scale."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted + 0.05 * _scale(wanted)


def a_bias_of_2_percent(draw: Draw) -> tuple[Array, Array]:
    """A bias of a fiftieth of each row's scale."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted + 0.02 * _scale(wanted)


def a_bias_of_5_percent_in_a_row(draw: Draw) -> tuple[Array, Array]:
    """The same as 5 percent, in one row."""
    wanted, found = _matrix(draw)
    found[17] += 0.05 * _scale(wanted)[17]
    return wanted, found


def a_bias_of_a_half_in_a_row(draw: Draw) -> tuple[Array, Array]:
    """A bias of half of its scale in one row."""
    wanted, found = _matrix(draw)
    found[17] += 0.5 * _scale(wanted)[17]
    return wanted, found


def one_summand_of_sixteen_lost(draw: Draw) -> tuple[Array, Array]:
    """A sum of sixteen terms lacks one."""
    terms = draw((16, ROWS, COLS))
    return terms.sum(axis=0), terms[1:].sum(axis=0)


def one_summand_of_sixteen_twice(draw: Draw) -> tuple[Array, Array]:
    """A sum of sixteen terms has one twice."""
    terms = draw((16, ROWS, COLS))
    return terms.sum(axis=0), terms.sum(axis=0) + terms[3]


def two_rows_exchanged(draw: Draw) -> tuple[Array, Array]:
    """Two rows stand in each other's place."""
    wanted, found = _matrix(draw)
    found[[17, 18]] = wanted[[18, 17]]
    return wanted, found


def two_columns_exchanged(draw: Draw) -> tuple[Array, Array]:
    """Two columns stand in each other's place."""
    wanted, found = _matrix(draw)
    found[:, [3, 4]] = wanted[:, [4, 3]]
    return wanted, found


def one_experts_weight_lost(draw: Draw) -> tuple[Array, Array]:
    """The tokens of one expert of eight are not weighted."""
    wanted = draw((ROWS, COLS))
    wanted = wanted * np.linspace(0.3, 0.7, 8).repeat(8)[:, np.newaxis]
    found = wanted.copy()
    found[8:16] /= np.linspace(0.3, 0.7, 8)[1]
    return wanted, found


def one_column_off(draw: Draw) -> tuple[Array, Array]:
    """One column stands one row too low."""
    wanted, found = _matrix(draw)
    found[:, 9] = np.roll(wanted[:, 9], 1)
    return wanted, found


def one_column_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """One column was never written."""
    wanted, found = _matrix(draw)
    found[:, 9] = 0
    return wanted, found


def transposed(draw: Draw) -> tuple[Array, Array]:
    """Rows stand where columns belong."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted.T.copy()


def stale_row(draw: Draw) -> tuple[Array, Array]:
    """A row has the data of the one before it."""
    wanted, found = _matrix(draw)
    found[18] = found[17]
    return wanted, found


def last_tile_of_zeros(draw: Draw) -> tuple[Array, Array]:
    """The last tile was never written."""
    wanted, found = _matrix(draw)
    found[-TILE:, -TILE:] = 0
    return wanted, found


def rows_reversed(draw: Draw) -> tuple[Array, Array]:
    """The last row comes first."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted[::-1].copy()


def two_tiles_exchanged(draw: Draw) -> tuple[Array, Array]:
    """Two tiles stand in each other's place."""
    wanted, found = _matrix(draw)
    found[:TILE, :TILE], found[-TILE:, :TILE] = wanted[-TILE:, :TILE], wanted[:TILE, :TILE]
    return wanted, found


def absolute_values(draw: Draw) -> tuple[Array, Array]:
    """A sign is lost wherever there is one."""
    wanted = draw((ROWS, COLS))
    return wanted, np.abs(wanted)


def clipped(draw: Draw) -> tuple[Array, Array]:
    """What is above 1 is 1."""
    wanted = draw((ROWS, COLS))
    return wanted, np.minimum(wanted, 1)


def without_its_mean(draw: Draw) -> tuple[Array, Array]:
    """Half of the scale is taken from each row."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted - 0.5 * _scale(wanted)


def scaled_by_1_02(draw: Draw) -> tuple[Array, Array]:
    """Everything is a fiftieth too large."""
    wanted = draw((ROWS, COLS))
    return wanted, 1.02 * wanted


def scaled_by_1_1(draw: Draw) -> tuple[Array, Array]:
    """Everything is a tenth too large."""
    wanted = draw((ROWS, COLS))
    return wanted, 1.1 * wanted


def one_row_scaled(draw: Draw) -> tuple[Array, Array]:
    """A row is a fifth too large."""
    wanted, found = _matrix(draw)
    found[17] *= 1.2
    return wanted, found


def summed_up(draw: Draw) -> tuple[Array, Array]:
    """A sum goes on where it should begin anew."""
    wanted = draw((ROWS, COLS))
    return wanted, np.cumsum(wanted, axis=0)


def noise_of_10_percent(draw: Draw) -> tuple[Array, Array]:
    """Every number is off by a tenth of the scale, to either side."""
    wanted, found = _matrix(draw)
    found += 0.1 * _scale(wanted) * np.where(np.indices(wanted.shape).sum(axis=0) % 2, 1, -1)
    return wanted, found


def rounded_to_8_bits(draw: Draw) -> tuple[Array, Array]:
    """Everything went through a type of 8 bits."""
    wanted = draw((ROWS, COLS))
    return wanted, wanted.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)


def one_element_zero(draw: Draw) -> tuple[Array, Array]:
    """The largest number was never written."""
    wanted, found = _matrix(draw)
    found.flat[np.abs(wanted).argmax()] = 0
    return wanted, found


def one_element_of_the_other_sign(draw: Draw) -> tuple[Array, Array]:
    """The largest number has the wrong sign."""
    wanted, found = _matrix(draw)
    found.flat[np.abs(wanted).argmax()] *= -1
    return wanted, found


def one_element_off_by_half(draw: Draw) -> tuple[Array, Array]:
    """One number is off by half of its row's scale."""
    wanted, found = _matrix(draw)
    found[40, 2] += 0.5 * _scale(wanted)[40, 0]
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
        the_other_sign,
        zeros,
        one_added,
        all_rows_but_a_hundredfold_one_of_zeros,
        a_small_row_of_zeros,
        a_bias_of_5_percent,
        a_bias_of_2_percent,
        a_bias_of_5_percent_in_a_row,
        a_bias_of_a_half_in_a_row,
        one_summand_of_sixteen_lost,
        one_summand_of_sixteen_twice,
        two_rows_exchanged,
        two_columns_exchanged,
        one_experts_weight_lost,
        one_column_off,
        one_column_of_zeros,
        transposed,
        stale_row,
        last_tile_of_zeros,
        rows_reversed,
        two_tiles_exchanged,
        absolute_values,
        clipped,
        without_its_mean,
        scaled_by_1_02,
        scaled_by_1_1,
        one_row_scaled,
        summed_up,
        noise_of_10_percent,
        rounded_to_8_bits,
        one_element_zero,
        one_element_of_the_other_sign,
        one_element_off_by_half,
    )
}

NEEDS_FLOATS = {
    "anything_beside_an_infinity",
    "no_infinity",
    "the_other_infinity",
    "a_nan",
    "a_nan_for_a_nan",
    "a_small_row_of_zeros",
    "a_bias_of_5_percent",
    "a_bias_of_2_percent",
    "a_bias_of_5_percent_in_a_row",
    "a_bias_of_a_half_in_a_row",
    "one_experts_weight_lost",
    "scaled_by_1_02",
    "scaled_by_1_1",
    "one_row_scaled",
    "rounded_to_8_bits",
    "one_element_off_by_half",
    "without_its_mean",
    "noise_of_10_percent",
}
"""Integers have no such numbers."""

NEEDS_SIGNS = {
    "signs_beside_a_large_element",
    "signs_of_every_tenth",
    "the_other_sign",
    "absolute_values",
    "one_element_of_the_other_sign",
}
"""Unsigned types and booleans have none."""

NEEDS_NUMBERS = {
    "all_rows_but_one_of_zeros",
    "missing_bias",
    "missing_bias_on_a_wide_range",
    "twice_as_large",
    "one_product_of_two_missing",
    "one_element_of_many",
    "all_rows_but_a_hundredfold_one_of_zeros",
    "one_added",
    "one_summand_of_sixteen_lost",
    "one_summand_of_sixteen_twice",
    "clipped",
    "summed_up",
}
"""Booleans cannot be added."""
