from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Tile, dtype_named
from operators import Matmul, MatmulSum, wide

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")

_sizes = st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5))
_seeds = st.integers(0, 2**32 - 1)


def _tile(numbers: Any, dtype: Any, valid_rows: int | None = None, sent: bool = False) -> Tile:
    data = np.asarray(numbers).astype(dtype)
    data.flags.writeable = not sent
    return Tile(len(data), data.shape[1], data.dtype, data, valid_rows=valid_rows)


def _data(tile: Any) -> Any:
    return tile.data.astype(np.float64)


def _bound(dtype: Any, left: Any, right: Any) -> Any:
    finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
    info = finfo(dtype)
    lost = left.shape[1] * 1.2e-7 * (np.abs(left) @ np.abs(right))
    return float(info.eps) / 2 * np.abs(left @ right) + float(info.smallest_subnormal) + lost


class TestFloats:
    @given(st.sampled_from(FLOATS), _sizes, _seeds, st.data())
    def test_products_are_within_the_rounding_of_float64(
        self, name: str, sizes: tuple[int, int, int], seed: int, data: st.DataObject
    ) -> None:
        dtype, random = dtype_named(name), np.random.default_rng(seed)
        rows, inner, cols = sizes
        valid = data.draw(st.integers(0, rows), "valid rows")
        numbers = random.uniform(-2, 2, (rows, inner))
        if data.draw(st.booleans(), "zeros behind"):
            numbers[valid:] = 0
        sent = data.draw(st.booleans(), "sent")
        a = _tile(numbers, dtype, valid, sent)
        for transposed in (False, True, False):
            b = _tile(random.uniform(-2, 2, (cols, inner) if transposed else (inner, cols)), dtype)
            left, right = _data(a), _data(b).T if transposed else _data(b)
            found = Matmul(transposed=transposed).apply(a, b)

            assert (rows, cols, dtype) == (found.rows, found.cols, found.dtype)
            assert np.all(np.abs(_data(found) - left @ right) <= _bound(dtype, left, right))

    @given(st.sampled_from(FLOATS), _sizes, _seeds, st.integers(1, 4))
    def test_sums_are_rounded_once(
        self, name: str, sizes: tuple[int, int, int], seed: int, parts: int
    ) -> None:
        dtype, random = dtype_named(name), np.random.default_rng(seed)
        rows, inner, cols = sizes
        reduction, state, lefts, rights = MatmulSum(), None, [], []
        for _ in range(parts):
            numbers = random.uniform(-1, 1, (rows, inner))
            valid = int(random.integers(0, rows + 1))
            numbers[valid:] = 0
            a = _tile(numbers, dtype, valid)
            b = _tile(random.uniform(-1, 1, (inner, cols)), dtype)
            state = reduction.update(state, a, b)
            lefts.append(_data(a))
            rights.append(_data(b))
        left, right = np.concatenate(lefts, axis=1), np.concatenate(rights)
        found = reduction.finish(state, _type(a, b), functional=True)

        assert np.all(np.abs(_data(found) - left @ right) <= _bound(dtype, left, right))

    @pytest.mark.parametrize(
        ("name", "special"),
        [
            (name, special)
            for name in FLOATS
            for special in (-np.inf, np.nan)
            if name != "float8_e4m3" or np.isnan(special)  # it has no infinities
        ],
    )
    def test_a_row_of_zeros_times_an_infinity_is_no_number(self, name: str, special: float) -> None:
        dtype = dtype_named(name)
        a = _tile([[1, 2], [3, 1], [0, 0], [0, 0]], dtype, valid_rows=2)
        b = _tile([[1, special, 2], [1, 1, 0]], dtype)
        with np.errstate(invalid="ignore"):
            found = _data(Matmul().apply(a, b))

        np.testing.assert_array_equal(found[:2], [[3, special, 2], [4, special, 6]])
        np.testing.assert_array_equal(found[2:], [[0, np.nan, 0]] * 2)

    @pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2"])
    def test_eight_bits_have_256_numbers(self, name: str) -> None:
        every = np.arange(256, dtype=np.uint8).view(dtype_named(name)).reshape(16, 16)
        for array in (every, every.T, every[::2, 3:7], every[:0]):
            found = wide(array)
            assert np.float32 == found.dtype
            np.testing.assert_array_equal(found, array.astype(np.float32))


def _type(a: Tile, b: Tile) -> Any:
    from fabric import TileType

    return TileType(a.rows, b.cols, a.dtype)
