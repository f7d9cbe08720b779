"""The tolerance of a number follows from the numbers that it is computed from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Program, Stream, simulate
from operators.functions.steps import Chain, Number, Pointwise
from tests.fabric.verification.storing import Array

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
BLOCKS = ("mxfp4", "mxfp6_e2m3", "mxfp8_e4m3", "mxfp8_e5m2")


def loaded(array: Array, dtype: str | None = None) -> Stream:
    return op.LinearOffChipLoad(op.Tensor(array.shape, array, dtype=dtype), tile=array.shape)()


def verified(way: Any, wanted: Array) -> bool | None:
    with Program("carried", mode="functional") as program:
        op.LinearOffChipStore("y")(way())
    program.expect(y=partial(np.asarray, wanted))
    return simulate(program).verified


@pytest.mark.parametrize("dtype", [*FLOATS, *BLOCKS])
def test_copies_are_exact(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((8, 64))

    def way() -> Stream:
        return op.LinearOffChipLoad(op.Tensor(x.shape, x, dtype=dtype), tile=(2, 32))()

    assert verified(way, x)
    for place in (5, 17, 40):
        for spoilt in (0.0, 2 * x[3, place], -x[3, place], x[4, place] + 1):
            wanted = x.copy()
            wanted[3, place] = spoilt
            assert not verified(way, wanted)
    if dtype != "mxfp4":
        assert not verified(way, 1.1 * x)


def test_cancellation_keeps_the_error_of_what_cancels() -> None:
    kind = np.dtype(np.float32)
    x = (100 + np.random.default_rng(0).standard_normal((8, 64))).astype(kind)
    minus = Chain(2, (Pointwise((0, 1), kind, "sub"),))
    mean = Chain(1, (Pointwise((0, Number(64)), kind, "div"),))

    def way() -> Stream:
        rows = loaded(x, "float32")
        return op.Map(minus)(rows, op.Map(mean)(op.Map(op.RowSum())(rows)))

    exact = x.astype(np.float64)
    wanted = exact - exact.mean(axis=1, keepdims=True)
    assert verified(way, wanted)
    assert not verified(way, wanted + 1e-3)


@pytest.mark.parametrize("dtype", FLOATS[3:])
def test_products_of_8_bits_refuse_more_than_their_rounding(dtype: str) -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((32, 64)), random.standard_normal((64, 64))

    def way() -> Stream:
        return op.Map(op.Matmul())(loaded(x, dtype), loaded(w, dtype))

    right = x @ w
    assert verified(way, right)
    middle = np.unravel_index(np.argsort(np.abs(right), axis=None)[right.size // 2], right.shape)
    for spoilt in (0.0, -right[middle], 3 * right[middle]):
        wanted = right.copy()
        wanted[middle] = spoilt
        assert not verified(way, wanted)
    for wanted in (np.roll(right, 1, axis=1), 1.3 * right, right[::-1]):
        assert not verified(way, wanted)


def test_function_that_drops_errors_is_given_those_of_its_operands() -> None:
    class Own(type(op.Add())):  # type: ignore[misc]
        def apply(self, *inputs: Any) -> Any:
            found = super().apply(*inputs)
            found.data = np.array(found.data)
            return found

    x = np.random.default_rng(0).standard_normal((8, 64))
    for wrong in (0, 0.25):
        assert verified(lambda: op.Map(Own())(loaded(x), loaded(x)), 2 * x + wrong) is not bool(
            wrong
        )
