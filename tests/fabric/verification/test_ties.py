"""Both neighbours of a number in the middle of two elements of a block-scaled type are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Program, dtype_named, simulate
from fabric.graph.values.block_scaled import blocks_of, numbers_of
from tests.fabric.verification.storing import Array
from tests.operators.test_block_scaled import FORMATS, numbers
from tests.profiles import spread

WAYS = ("stored", "product", "chain")


def rounding(form: str, way: str, x: Any = None, w: Any = None, weights: Any = None) -> Program:
    with Program("rounding", mode="functional") as program:

        def loaded(data: Any) -> Any:
            shape = (64, 64) if data is None else data.shape
            return op.LinearOffChipLoad(op.Tensor(shape, data, dtype="float32"), tile=shape)()

        product = op.Map(op.Matmul(transposed=True))(loaded(x), loaded(w))
        y = op.Map(op.AsType(form))(op.Map(op.Add())(product, product))
        for number in range(WAYS.index(way)):
            y = op.Map(op.AsType(form))(y) if number else y
            y = op.Map(op.Matmul(transposed=True))(y, op.Map(op.AsType(form))(loaded(weights)))
        op.LinearOffChipStore("y")(y)
    return program


def in_blocks(numbers: Array, form: str) -> Array:
    finite = np.isfinite(numbers)
    rounded = numbers_of(blocks_of(np.where(finite, numbers, 0), dtype_named(form)))
    return np.where(finite, rounded, numbers)


def expected(form: str, way: str, x: Array, w: Array, weights: Array) -> Array:
    second = in_blocks(weights, form).astype(np.float64)
    product = 2 * (x.astype(np.float64) @ w.T.astype(np.float64))
    y = in_blocks(product, form)
    # ml_dtypes would first round to float32.
    y[:1] = numbers(product[:1], FORMATS[form])
    if way != "stored":
        y = y @ second.T
    return in_blocks(y, form) @ second.T if way == "chain" else y


STEPS = {name: 0.5**each.mantissa_bits for name, each in FORMATS.items()}
"""The distance from an element to the next one, relative to the element."""

TIES: dict[str, tuple[float, Callable[[float], float], float]] = {
    "the largest number of a row": (1, lambda step: 16 + 8 * step, 1e-9),
    "one of many": (1, lambda step: 0.5 + step / 4, 1e-9),
    "a row of one number": (0, lambda step: 16 + 8 * step, 1e-9),
    "the scale of a block": (1, lambda _: 16.0, -1e-9),
}


AT = [(form, way, place) for form in FORMATS for way in WAYS for place in TIES]


@pytest.mark.parametrize(("form", "way", "place"), spread(AT, 6))
def test_ties_are_right_either_way(form: str, way: str, place: str) -> None:
    random = np.random.default_rng(1)
    factor, number_of, lost = TIES[place]
    x, weights = random.standard_normal((2, 64, 64)).astype(np.float32)
    x[0] *= factor
    x[0, 5] = number_of(STEPS[form])
    # In float32 the last column is lost beside the other columns.
    x = np.concatenate([x / 2, np.full((64, 1), lost, np.float32)], axis=1)
    w = np.concatenate([np.eye(64), np.ones((64, 1))], axis=1).astype(np.float32)
    program = rounding(form, way, x, w, weights)
    wanted = expected(form, way, x, w, weights)
    program.expect(y=lambda: wanted)

    report = simulate(program)

    errors = np.abs(report.outputs["y"] - wanted).max(axis=1) / np.sqrt(np.mean(wanted**2, axis=1))
    assert errors.max() > 1e-3 > np.median(errors)
    assert report.verified, report.verification


def test_expected_stream_of_blocks_is_compared() -> None:
    x = np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32)
    for wrong in (0, 1):
        with Program("stream", mode="functional") as program:
            blocks = op.Map(op.AsType("mxfp6_e2m3"))(op.LinearOffChipLoad(x, tile=(8, 64))())
            blocks.expect(lambda: [[[wrong + numbers(x, FORMATS["mxfp6_e2m3"])]]])  # noqa: B023
            op.LinearOffChipStore("y")(blocks)

        assert simulate(program).verified is not bool(wrong)
