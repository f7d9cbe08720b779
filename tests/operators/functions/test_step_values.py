from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fabric import Tile, dtype_named
from operators.functions.choosing import TakenAlong
from operators.functions.elementwise import NUMBERS
from operators.functions.row_functions import LayerNorm, Reduced, RMSNorm, Softmax, Variance
from operators.functions.steps import (
    Chain,
    Columns,
    ComplexProduct,
    Cut,
    Joined,
    Placed,
    Pointwise,
    Step,
)

FLOAT = dtype_named("float32")
INF, NAN = math.inf, math.nan

AT = (-3.5, -3.0, -2.0, -1.0, -0.75, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 4.0, 6.5)
PAIRS = tuple(itertools.product(AT[::2], (-2.0, -0.75, 0.5, 3.0)))
ENDS = (-INF, -1.0, 0.0, 2.0, INF, NAN)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _hard(x: float) -> float:
    return 0.0 if x < -3 else 1.0 if x > 3 else (x + 3) / 6


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: float) -> float:
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softplus(x: float, beta: float, threshold: float) -> float:
    return x if x * beta > threshold else math.log1p(math.exp(x * beta)) / beta


ONE: dict[str, Callable[[float], float]] = {
    "abs": abs, "acos": math.acos, "acosh": math.acosh, "asin": math.asin, "asinh": math.asinh,
    "atan": math.atan, "atanh": math.atanh, "ceil": math.ceil, "copy": float, "cos": math.cos,
    "cosh": math.cosh, "erf": math.erf, "erfc": math.erfc, "exp": math.exp,
    "exp2": lambda x: 2.0**x, "expm1": math.expm1, "floor": math.floor, "gelu": _gelu,
    "gelu_tanh": _gelu_tanh, "hardsigmoid": _hard, "hardswish": lambda x: x * _hard(x),
    "isfinite": math.isfinite, "isinf": math.isinf, "isnan": math.isnan, "lgamma": math.lgamma,
    "log": math.log, "log10": math.log10, "log1p": math.log1p, "log2": math.log2,
    "neg": lambda x: 0.0 - x, "not": lambda x: not x, "reciprocal": lambda x: 1 / x,
    "relu": lambda x: x if x > 0 else 0.0, "round": round, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": _sigmoid, "sign": lambda x: (x > 0) - (x < 0), "silu": lambda x: x * _sigmoid(x),
    "sin": math.sin, "sinh": math.sinh, "sqrt": math.sqrt, "square": lambda x: x * x,
    "tan": math.tan, "tanh": math.tanh, "trunc": math.trunc,
}  # fmt: skip
TWO: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y, "and": lambda x, y: bool(x) and bool(y), "atan2": math.atan2,
    "copysign": math.copysign, "div": lambda x, y: x / y, "eq": lambda x, y: x == y,
    "floor_div": lambda x, y: math.floor(x / y), "fmod": math.fmod, "ge": lambda x, y: x >= y,
    "gt": lambda x, y: x > y, "hypot": math.hypot, "le": lambda x, y: x <= y,
    "elu": lambda x, y: x if x > 0 else y * math.expm1(x),
    "leaky_relu": lambda x, y: x if x > 0 else x * y, "lt": lambda x, y: x < y, "maximum": max,
    "minimum": min, "mul": lambda x, y: x * y, "ne": lambda x, y: x != y,
    "or": lambda x, y: bool(x) or bool(y), "pow": math.pow,
    "remainder": lambda x, y: x - y * math.floor(x / y), "sub": lambda x, y: x - y,
    "xor": lambda x, y: bool(x) is not bool(y),
}  # fmt: skip
THREE: dict[str, Callable[[float, float, float], float]] = {
    "add_scaled": lambda x, y, factor: x + factor * y,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "softplus": _softplus,
    "sub_scaled": lambda x, y, factor: x - factor * y,
    "where": lambda condition, x, y: x if condition else y,
}
AT_THREE = {
    "softplus": [(2.0, 1.0, 2.0), (2.5, 1.0, 2.0), (1.5, 2.0, 2.5), (-1.0, 2.0, 5.0)],
    "where": [(0.0, 2.0, 3.0), (1.0, 2.0, 3.0), (-0.5, 2.0, 3.0)],
}
SEVERAL = [(4.0, -1.0, 3.0), (0.5, 0.25, 2.0), (-2.0, -1.5, 0.75), (1.0, 0.0, 1.0)]


def _tile(data: Any) -> Tile:
    array = np.array(data, np.float32)
    rows, cols = array.shape
    return Tile(rows, cols, FLOAT, array)


def _of(step: Step, *data: Any) -> Any:
    found = Chain(len(data), (step,)).apply(*map(_tile, data)).data
    assert found is not None
    return found.tolist()


def test_every_function_has_a_definition() -> None:
    assert set(NUMBERS) == {*ONE, *TWO, *THREE}


@pytest.mark.parametrize("name", NUMBERS)
def test_functions_of_numbers_equal_pythons(name: str) -> None:
    defined: Any = {**ONE, **TWO, **THREE}[name]
    points: Any = [(x,) for x in AT] if name in ONE else PAIRS
    if name in THREE:
        points = AT_THREE.get(name, SEVERAL)
    elif name.startswith("is") or name == "lgamma":
        points = [*points, *((x,) for x in ENDS)]
    elif name in {"and", "or", "xor", "eq", "le", "ge", "lt", "gt", "ne", "maximum"}:
        points = [*points, (0.0, 0.0), (2.0, 0.0), (-3.0, -3.0)]
    rows, wanted = [], []
    for point in points:
        try:
            wanted.append([float(defined(*point))])
        except (ValueError, ZeroDivisionError):
            if name != "lgamma":
                continue
            wanted.append([INF])
        rows.append(point)
    assert len(rows) > 2
    arrays = [[[each] for each in column] for column in zip(*rows, strict=True)]
    found = _of(Pointwise(tuple(range(len(arrays))), FLOAT, name), *arrays)
    np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-7)


X = [[0.5, -1.0, 2.0, 0.25], [3.0, 3.5, -2.0, 1.0], [1.0, 1.5, 0.75, -4.0]]
W, B = [0.5, 2.0, -1.0, 3.0], [0.25, -1.0, 0.5, 2.0]


def _mean(row: Sequence[float]) -> float:
    return sum(row) / len(row)


def _centred(row: Any) -> list[float]:
    return [each - _mean(row) for each in row]


def _square(row: Sequence[float]) -> float:
    return sum(each * each for each in row)


def _softmax(row: Any) -> list[float]:
    powers = [math.exp(each) for each in row]
    return [each / sum(powers) for each in powers]


def _normed(row: Any, eps: float, weight: Any = (1,) * 4, bias: Any = (0,) * 4) -> list[float]:
    root = math.sqrt(_square(row) / 4 + eps)
    return [x / root * w + b for x, w, b in zip(row, weight, bias, strict=True)]


ROWS: list[tuple[Step, list[Any], Any]] = [
    (Softmax((0,), FLOAT), [X], [_softmax(row) for row in X]),
    (
        Softmax((0,), FLOAT, logarithm=True),
        [X],
        [[math.log(each) for each in _softmax(row)] for row in X],
    ),
    (RMSNorm((0,), FLOAT, 0.5), [X], [_normed(row, 0.5) for row in X]),
    (RMSNorm((0, 1), FLOAT, 0.5), [X, [W]], [_normed(row, 0.5, W) for row in X]),
    (LayerNorm((0,), FLOAT, 0.5, False), [X], [_normed(_centred(row), 0.5) for row in X]),
    (
        LayerNorm((0, 1), FLOAT, 0.5, True),
        [X, [W]],
        [_normed(_centred(row), 0.5, W) for row in X],
    ),
    (
        LayerNorm((0, 1), FLOAT, 0.5, False),
        [X, [B]],
        [_normed(_centred(row), 0.5, bias=B) for row in X],
    ),
    (
        LayerNorm((0, 1, 2), FLOAT, 0.5, True),
        [X, [W], [B]],
        [_normed(_centred(row), 0.5, W, B) for row in X],
    ),
    (Variance((0,), FLOAT), [X], [[_square(_centred(row)) / 3] for row in X]),
    (Variance((0,), FLOAT, correction=0.0), [X], [[_square(_centred(row)) / 4] for row in X]),
    (Variance((0,), FLOAT, root=True), [X], [[math.sqrt(_square(_centred(r)) / 3)] for r in X]),
    (Variance((0,), FLOAT, correction=5.0), [X], [[INF]] * 3),
    (Reduced((0,), FLOAT), [X], [[sum(row)] for row in X]),
    (Reduced((0,), FLOAT, name="mean"), [X], [[_mean(row)] for row in X]),
    (Reduced((0,), FLOAT, name="prod"), [X], [[math.prod(row)] for row in X]),
    (Reduced((0,), FLOAT, name="amax"), [X], [[max(row)] for row in X]),
    (Reduced((0,), FLOAT, name="amin"), [X], [[min(row)] for row in X]),
    # 3 x 2 x 2 numbers, reduced along the first and the last dimension to [2, 1].
    (
        Reduced((0,), FLOAT, (3, 2, 2), (0, 2), "sum"),
        [[row[:2] for row in X for row in (row, row[2:])]],
        [[sum(sum(row[:2]) for row in X)], [sum(sum(row[2:]) for row in X)]],
    ),
    # And the middle one: [3, 2].
    (
        Reduced((0,), FLOAT, (3, 2, 2), (1,), "mean"),
        [[row[:2] for row in X for row in (row, row[2:])]],
        [[(row[0] + row[2]) / 2, (row[1] + row[3]) / 2] for row in X],
    ),
    (
        ComplexProduct((0, 1), FLOAT),
        [X, [W]],
        [
            [part for a, b in ((0, 1), (2, 3))
             for product in [complex(row[a], row[b]) * complex(W[a], W[b])]
             for part in (product.real, product.imag)]
            for row in X
        ],
    ),
    (Cut((0,), FLOAT, 1, 2), [X], [row[1:3] for row in X]),
    (Columns((0,), FLOAT, (3, 0, 3)), [X], [[row[3], row[0], row[3]] for row in X]),
    (Joined((0, 1), FLOAT), [X, [W]], [row + W for row in X]),
    (Joined((1, 0), FLOAT), [X, [W]], [W + row for row in X]),
    (Placed((0,), FLOAT, 2, 6), [X], [X[0] + X[1][:2], X[1][2:] + X[2]]),
    (Placed((0,), FLOAT, 1, 3, (11, 0, 4)), [X], [[-4.0, 0.5, 3.0]]),
    (
        TakenAlong((0, 1), FLOAT),
        [X, [[3, 0], [1, 1], [2, 3]]],
        [[0.25, 0.5], [3.5, 3.5], [0.75, -4.0]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("step", "data", "wanted"), ROWS)
def test_steps_of_rows_equal_pythons(step: Step, data: list[Any], wanted: Any) -> None:
    np.testing.assert_allclose(_of(step, *data), wanted, rtol=2e-6)
