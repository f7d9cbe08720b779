"""Sizes and cycles follow the element type, and arithmetic is right within its rounding."""

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
    # A Map loads both operands at 64 bytes a cycle, one after the other.
    assert [2 * 4 * 96 * size // 64] == [
        unit.busy_cycles for unit in report.units if unit.name == "add_1"
    ]
