"""Faults that verification has to refuse: functions that draw expected and wrong data."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import ml_dtypes
import numpy as np

from tests.fabric.verification.storing import Array

Draw = Callable[[tuple[int, ...]], Array]
Fault = Callable[[Draw], tuple[Array, Array]]

ROWS, COLS, TILE = 64, 64, 16


def _matrix(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, wanted.copy()


def signs_beside_a_large_element(_: Draw) -> tuple[Array, Array]:
    wanted = np.ones((16, 16))
    wanted[3, 5] = 100
    return wanted, np.where(wanted == 100, 100, -wanted)


def all_rows_but_one_of_zeros(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    wanted[0] *= 5
    found[0] *= 5
    found[1:] = 0
    return wanted, found


def missing_bias(draw: Draw) -> tuple[Array, Array]:
    product = draw((ROWS, COLS))
    return product + draw((1, COLS)), product


def one_tile_stale(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[:TILE, TILE : 2 * TILE] = found[:TILE, :TILE]
    return wanted, found


def padding_kept(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[TILE - 1 :: TILE] = 0
    return wanted, found


def anything_beside_an_infinity(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    wanted[0, 0] = np.inf
    found = -wanted
    found[0, 0] = np.inf
    return wanted, found


def no_infinity(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    wanted[3, 3] = np.inf
    return wanted, found


def a_nan(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[3, 3] = np.nan
    return wanted, found


def one_row_too_few(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, wanted[:-1]


def one_element_of_many(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[40, 2] += 3 * wanted.max()
    return wanted, found


def _scale(wanted: Array) -> Array:
    result: Array = np.sqrt(np.square(wanted).mean(axis=1, keepdims=True))
    return result


def a_small_row_of_zeros(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    wanted[17] = np.round(wanted[17] * 4) / 10 + 0.2
    found = wanted.copy()
    found[17] = 0
    return wanted, found


def a_bias_of_2_percent(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, wanted + 0.02 * _scale(wanted)


def a_bias_of_a_half_in_a_row(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[17] += 0.5 * _scale(wanted)[17]
    return wanted, found


def one_summand_of_sixteen_lost(draw: Draw) -> tuple[Array, Array]:
    terms = draw((16, ROWS, COLS))
    return terms.sum(axis=0), terms[1:].sum(axis=0)


def two_columns_exchanged(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[:, [3, 4]] = wanted[:, [4, 3]]
    return wanted, found


def one_experts_weight_lost(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    wanted = wanted * np.linspace(0.3, 0.7, 8).repeat(8)[:, np.newaxis]
    found = wanted.copy()
    found[8:16] /= np.linspace(0.3, 0.7, 8)[1]
    return wanted, found


def clipped(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, np.minimum(wanted, 1)


def without_its_mean(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, wanted - 0.5 * _scale(wanted)


def scaled_by_1_02(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, 1.02 * wanted


def summed_up(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, np.cumsum(wanted, axis=0)


def noise_of_10_percent(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found += 0.1 * _scale(wanted) * np.where(np.indices(wanted.shape).sum(axis=0) % 2, 1, -1)
    return wanted, found


def rounded_to_8_bits(draw: Draw) -> tuple[Array, Array]:
    wanted = draw((ROWS, COLS))
    return wanted, wanted.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)


def one_element_off_by_half(draw: Draw) -> tuple[Array, Array]:
    wanted, found = _matrix(draw)
    found[40, 2] += 0.5 * _scale(wanted)[40, 0]
    return wanted, found


FAULTS: dict[str, Fault] = {
    name: fault
    for name, fault in globals().items()
    if inspect.isfunction(fault) and not name.startswith("_")
}

NEEDS_FLOATS = {
    "anything_beside_an_infinity",
    "no_infinity",
    "a_nan",
    "a_small_row_of_zeros",
    "a_bias_of_2_percent",
    "a_bias_of_a_half_in_a_row",
    "one_experts_weight_lost",
    "scaled_by_1_02",
    "rounded_to_8_bits",
    "one_element_off_by_half",
    "without_its_mean",
    "noise_of_10_percent",
}
"""Faults that integers cannot have."""

NEEDS_SIGNS = {
    "signs_beside_a_large_element",
}
"""Faults that unsigned types and booleans cannot have."""

NEEDS_NUMBERS = {
    "all_rows_but_one_of_zeros",
    "missing_bias",
    "one_element_of_many",
    "one_summand_of_sixteen_lost",
    "clipped",
    "summed_up",
}
"""Faults that need an addition, which booleans lack."""
