"""Compares block-scaled types with the OCP Microscaling Formats specification, version 1.0.

The expected elements are computed here from the bits in its tables, without the fabric and
ml_dtypes.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import operators as op
from fabric import Hardware, Program, Report, ShapeError, hardware_scope, simulate
from fabric.extend import FlatDescription
from tests.profiles import examples

BYTEWISE = Hardware(hbm=FlatDescription(request_bytes=1))


class Format(NamedTuple):
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: float
    largest_exponent: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    def elements(self) -> list[float]:
        codes = product(range(2**self.exponent_bits), range(2**self.mantissa_bits))
        found = [
            2.0 ** (max(e, 1) - self.bias) * ((e > 0) + m / 2**self.mantissa_bits) for e, m in codes
        ]
        return [each for each in found if each <= self.largest]


FORMATS = {
    "mxfp4": Format(2, 1, 1, 6.0, 2),
    "mxfp6_e2m3": Format(2, 3, 1, 7.5, 2),
    "mxfp6_e3m2": Format(3, 2, 3, 28.0, 4),
    "mxfp8_e4m3": Format(4, 3, 7, 448.0, 8),
    "mxfp8_e5m2": Format(5, 2, 15, 57344.0, 15),
}


def rounded(number: float, form: Format) -> float:
    elements = form.elements()
    found = min(range(len(elements)), key=lambda at: (abs(elements[at] - abs(number)), at % 2))
    return math.copysign(elements[found], number)


def blocks(rows: Any, form: Format) -> list[list[tuple[float, list[float]]]]:
    found = []
    for row in rows.tolist():
        row_blocks = []
        for first in range(0, len(row), 32):
            block = row[first : first + 32]
            most = max(map(abs, block))
            exponent = math.floor(math.log2(most)) - form.largest_exponent if most else -127
            scale = 2.0 ** min(max(exponent, -127), 127)
            row_blocks.append((scale, [rounded(each / scale, form) for each in block]))
        found.append(row_blocks)
    return found


def numbers(rows: Any, form: Format) -> Any:
    return np.array(
        [[scale * each for scale, its in row for each in its] for row in blocks(rows, form)]
    )


def dot(left: list[tuple[float, list[float]]], right: list[tuple[float, list[float]]]) -> float:
    return sum(
        x * y * sum(p * q for p, q in zip(ps, qs, strict=True))
        for (x, ps), (y, qs) in zip(left, right, strict=True)
    )


def drawn(random: Any, rows: int, cols: int) -> Any:
    found = random.standard_normal((rows, cols)) * 2.0 ** random.integers(-9, 9, (rows, 1))
    found[random.random(found.shape) < 0.1] = 0
    ties = random.random(found.shape) < 0.2
    return np.where(ties, np.round(found * 4) / 4, found).astype(np.float32)


def copied(x: Any, dtype: str) -> Report:
    with hardware_scope(BYTEWISE), Program("copy", mode="functional") as program:
        tensor = op.Tensor(x.shape, lambda: x, dtype=dtype)
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(tensor, tile=(1, x.shape[1]))())
    program.expect(y=lambda: numbers(x, FORMATS[dtype]))
    return simulate(program)


@examples(quick=5, deep=200)
@given(
    dtype=st.sampled_from(sorted(FORMATS)),
    seed=st.integers(0, 999),
    rows=st.integers(1, 3),
    cols=st.sampled_from([1, 5, 31, 32, 33, 64, 70]),
)
def test_loaded_blocks_have_the_numbers_of_the_specification(
    dtype: str, seed: int, rows: int, cols: int
) -> None:
    x = drawn(np.random.default_rng(seed), rows, cols)

    report = copied(x, dtype)

    np.testing.assert_array_equal(report.outputs["y"], numbers(x, FORMATS[dtype]))
    assert report.verified
    row_bytes = len(np.packbits(np.zeros(FORMATS[dtype].bits * cols, bool))) + math.ceil(cols / 32)
    assert 2 * rows * row_bytes == report.off_chip_traffic_bytes == report.hbm_bytes_moved


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_element_of_a_block_format_is_kept(dtype: str) -> None:
    form = FORMATS[dtype]
    elements = np.array(form.elements())
    between = (elements[1:] + elements[:-1]) / 2
    x = np.concatenate([elements, between, -between, [1.5 * form.largest]]).astype(np.float32)
    # Each block has the largest element, so all scales are 1.
    rows = np.stack([x, np.full(len(x), form.largest, np.float32)], axis=1)
    rows = np.minimum(rows, 1.999 * 2.0**form.largest_exponent)

    np.testing.assert_array_equal(copied(rows, dtype).outputs["y"], numbers(rows, form))


def test_scale_of_a_block_is_limited_to_eight_bits() -> None:
    x = np.array([[2.0**-140, 2.0**-127], [3.4e38, -1e38], [0.0, 0.0]], np.float32)

    for dtype, form in FORMATS.items():
        np.testing.assert_array_equal(copied(x, dtype).outputs["y"], numbers(x, form))


@pytest.mark.deep
@examples(quick=4, deep=100)
@given(
    left=st.sampled_from([*FORMATS, "float32", "bfloat16"]),
    right=st.sampled_from(sorted(FORMATS)),
    seed=st.integers(0, 999),
    summed=st.booleans(),
)
def test_product_of_blocks_is_that_of_the_specification(
    left: str, right: str, seed: int, summed: bool
) -> None:
    random = np.random.default_rng(seed)
    a: Any
    a, w = (random.standard_normal((rows, 96)).astype(np.float32) for rows in (4, 6))
    a = np.round(a * 4).astype(np.float32) / 4 if left == "bfloat16" else a
    scaled = left in FORMATS
    with Program("product", mode="functional") as program:
        kept = "float32" if scaled else left
        cols = 32 if summed else 96
        x = op.LinearOffChipLoad(op.Tensor(a.shape, lambda: a, dtype=kept), tile=(4, cols))()
        x = op.Map(op.AsType(left))(x) if scaled else x
        y = op.LinearOffChipLoad(op.Tensor(w.shape, lambda: w, dtype=right), tile=(6, cols))()
        if summed:
            x, y = op.Flatten(0, 1)(x), op.Flatten(0, 1)(y)
            found = op.Promote(0)(op.Accum(op.MatmulSum(transposed=True))(x, y))
        else:
            found = op.Map(op.Matmul(transposed=True))(x, y)
        op.LinearOffChipStore("y")(found)
    weights = blocks(w, FORMATS[right])

    def expected() -> Any:
        if not scaled:
            return a.astype(np.float64) @ numbers(w, FORMATS[right]).T
        rows = blocks(a, FORMATS[left])
        return np.array([[dot(row, other) for other in weights] for row in rows])

    program.expect(y=expected)
    report = simulate(program)

    assert report.verified
    assert str(report.outputs["y"].dtype) == ("float32" if scaled else left)
    assert report.flops == 2 * 4 * 96 * 6 + (2 * 4 * 96 if scaled else 0)
    held = numbers(a, FORMATS[left]) if scaled else a
    # The rounding errors of 96 sums in float32, in any order, and of the result's type.
    lost = np.abs(held) @ np.abs(numbers(w, FORMATS[right])).T * 96 * 2.0**-24
    lost += np.abs(expected()) * (2.0**-24 if kept == "float32" else 2.0**-8)
    assert (np.abs(np.asarray(report.outputs["y"], np.float64) - expected()) <= lost).all()
    assert simulate(program, mode="timing").cycles == report.cycles


def test_moved_blocks_are_equal_in_both_engines() -> None:
    x = drawn(np.random.default_rng(1), 6, 64)
    with Program("moved", mode="functional") as program:
        tiles = op.LinearOffChipLoad(op.Tensor(x.shape, lambda: x, dtype="mxfp4"), tile=(1, 64))()
        chunks, _ = op.Reshape(4, pad=1.0)(op.Flatten(0, 1)(tiles))
        op.LinearOffChipStore("y")(chunks)
    program.expect(
        y=lambda: np.concatenate([numbers(x, FORMATS["mxfp4"]), np.ones((2, 64))]).reshape(2, -1)
    )

    assert simulate(program).verified
    compiled, tasks = (
        simulate(program, mode="timing", engine=engine) for engine in ("compiled", "tasks")
    )
    assert compiled == tasks


def test_infinity_in_a_block_format_is_refused() -> None:
    x = np.array([[1.0, np.inf]], np.float32)

    wrong = r"inf at \[0, 1\], which no block of mxfp4 holds"
    with Program("wrong"), pytest.raises(ShapeError, match=wrong):
        op.LinearOffChipLoad(op.Tensor(x.shape, x, dtype="mxfp4"), tile=(1, 2))()
