"""Element types: sizes and cycles follow them; arithmetic is right within their rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import operators as op
from fabric import Program, Tile, dtype_named, simulate

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = ("int8", "int32")

_EXACT: tuple[tuple[op.Function, Any], ...] = (
    (op.Add(), lambda a, b: a + b),
    (op.Mul(), lambda a, b: a * b),
    (op.Div(), lambda a, b: a / b),
    (op.Maximum(), np.maximum),
    (op.SiLU(), lambda a: a / (1 + np.exp(-a))),
    (op.Exp(), np.exp),
    (op.RowSum(), lambda a: a.sum(axis=1, keepdims=True)),
    (op.RowMaximum(), lambda a: a.max(axis=1, keepdims=True)),
)


def _tile(numbers: Any, dtype: Any) -> Tile:
    data = np.asarray(numbers).astype(dtype)
    return Tile(len(data), data.shape[1], data.dtype, data)


def _wide(tile: Tile) -> Any:
    assert tile.data is not None
    assert tile.data.dtype == tile.dtype
    return tile.data.astype(np.float64)


def _info(dtype: Any) -> tuple[float, float]:
    finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
    info = finfo(dtype)
    return float(info.eps), float(info.smallest_subnormal)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(("function", "exact"), _EXACT, ids=lambda each: type(each).__name__)
def test_a_function_is_rounded_once(name: str, function: op.Function, exact: Any) -> None:
    dtype = dtype_named(name)
    random = np.random.default_rng(0)
    operands = [
        _tile(random.uniform(0.25, 2, (5, 7)), dtype) for _ in range(function.operands or 1)
    ]
    found: Any = function.apply(*operands)
    expected = exact(*map(_wide, operands))
    half_unit = _info(dtype)[0] / 2
    np.testing.assert_allclose(_wide(found), expected, rtol=half_unit + 2e-6)


@pytest.mark.parametrize("name", FLOATS)
def test_a_matrix_product_is_summed_in_float32(name: str) -> None:
    dtype = dtype_named(name)
    random = np.random.default_rng(1)
    a = _tile(random.uniform(-0.5, 0.5, (3, 64)), dtype)
    b = _tile(random.uniform(-0.5, 0.5, (64, 5)), dtype)
    exact = _wide(a) @ _wide(b)
    sums = np.abs(_wide(a)) @ np.abs(_wide(b))
    # Half a unit of the result, the least subnormal step, and float32's error in 64 sums.
    unit, step = _info(dtype)
    bound = unit / 2 * np.abs(exact) + step + 64 * 1.2e-7 * sums
    assert np.all(np.abs(_wide(op.Matmul().apply(a, b)) - exact) <= bound)

    total = op.MatmulSum()
    state = None
    for part in range(0, 64, 16):
        left = _tile(a.data[:, part : part + 16], dtype)  # type: ignore[index]
        right = _tile(b.data[part : part + 16], dtype)  # type: ignore[index]
        state = total.update(state, left, right)
    result = total.infer(1, *(_type(each) for each in (a, b)))
    assert np.all(np.abs(_wide(total.finish(state, result, functional=True)) - exact) <= bound)


def _type(tile: Tile) -> Any:
    from fabric import TileType

    return TileType(tile.rows, tile.cols, tile.dtype)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_summed_in_32_bits(name: str) -> None:
    dtype = dtype_named(name)
    a = _tile([[100, 100, -100]], dtype)
    b = _tile([[2], [1], [2]], dtype)
    assert [[100]] == _wide(op.Matmul().apply(a, b)).tolist()
    assert [[100]] == _wide(op.RowSum().apply(a)).tolist()
    assert [[100]] == _wide(op.RowMaximum().apply(a)).tolist()


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_sizes_follow_the_type(name: str) -> None:
    size = dtype_named(name).itemsize
    x = np.arange(4 * 96).reshape(4, 96) % 7
    with Program("sizes", mode="functional") as program:
        tiles = op.LinearOffChipLoad(op.Tensor((4, 96), x, dtype=name), tile=(4, 96))()
        op.LinearOffChipStore("y")(op.Map(op.Add(), to_memory=True)(tiles, tiles))
    program.expect(y=lambda: x + x)
    report = simulate(program)
    assert report.verified
    assert 2 * 4 * 96 * size == report.off_chip_traffic_bytes
    assert 4 * 96 * (size + 4) == report.off_chip_traffic_artifact_bytes
    assert 2 * 4 * -(-96 * size // 64) * 64 == report.hbm_bytes_moved
    # Both operands of the Map are loaded at 64 bytes a cycle, one after the other.
    assert [2 * 4 * 96 * size // 64] == [
        unit.busy_cycles for unit in report.units if unit.name == "add_1"
    ]


@pytest.mark.parametrize("name", FLOATS)
def test_accumulators_are_rounded_when_they_are_emitted(name: str) -> None:
    dtype = dtype_named(name)
    x = np.full((256, 1), 0.0625)
    with Program("sum", mode="functional") as program:
        tiles = op.LinearOffChipLoad(op.Tensor((256, 1), x, dtype=name), (1, 1), (1, 256))()
        op.LinearOffChipStore("y")(op.Accum(op.Sum())(tiles))
    program.expect(y=lambda: np.array([[16.0]]).astype(dtype))
    assert simulate(program).verified
