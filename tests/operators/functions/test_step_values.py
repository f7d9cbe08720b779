"""Steps of chains on floating-point numbers, against what Python's own numbers give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fabric import Tile, dtype_named
from operators.functions.choosing import TakenAlong
from operators.functions.elementwise import NUMBERS
from operators.functions.matmul import Convolved, Windows
from operators.functions.ordering import (
    Along,
    ExtremePlace,
    Extremes,
    OnAxes,
    Picked,
    Put,
    Running,
    SortedPlaces,
    Taken,
    Tap,
    Weighed,
    WindowPlaces,
)
from operators.functions.row_functions import LayerNorm, Reduced, RMSNorm, Softmax, Variance
from operators.functions.steps import (
    Chain,
    Columns,
    ComplexProduct,
    Cut,
    Joined,
    Number,
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
    """None is left out below."""
    assert set(NUMBERS) == {*ONE, *TWO, *THREE}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    """Each function of single numbers, where it is defined."""
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


def test_numbers_of_one() -> None:
    """Powers of a number that is known, a square among them."""
    x = [[-1.5, 0.5, 2.0]]
    for exponent in (2, 3, 1):
        step = Pointwise((0, Number(exponent)), FLOAT, "pow")
        assert [[each**exponent for each in x[0]]] == _of(step, x)


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
    # 3 x 2 x 2 numbers, of which the first and the last dimension go: [2, 1] are left.
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
def test_rows(step: Step, data: list[Any], wanted: Any) -> None:
    """Steps of whole rows, and of what is put side by side or elsewhere."""
    np.testing.assert_allclose(_of(step, *data), wanted, rtol=2e-6)


# Two blocks of 3 x 4 numbers, one below the other.
BLOCKS = [
    [[1.0, 7.0, 2.0, 2.0], [3.0, 0.0, 9.0, 4.0], [5.0, 6.0, 8.0, -1.0]],
    [[4.0, 4.0, 1.0, 0.5], [2.0, 8.0, 8.0, 3.0], [-2.0, 8.0, 0.0, 7.0]],
]
GRID = (2, 3, 4)
TAPS = (
    (Tap((0, 1), (0.5, 0.25)), Tap((2,), (3.0,))),
    (Tap((0, 3), (1.0, 2.0)), Tap((1, 2, 3), (1.0, 0.5, 0.25)), Tap((), ())),
)
WINDOWS = (((0, 1), (1, 2)), ((0, 1), (1, 2, 3)))


def _down(function: Callable[[list[float]], list[float]]) -> Any:
    """Return what is done to each column of each block."""
    return [
        list(map(list, zip(*(function(list(each)) for each in zip(*block, strict=True)),
                           strict=True)))
        for block in BLOCKS
    ]  # fmt: skip


def _across(function: Callable[[list[float]], list[float]]) -> Any:
    return [[function(row) for row in block] for block in BLOCKS]


def _weighed(block: Any) -> Any:
    rows, cols = TAPS
    return [
        [
            sum(
                block[i][j] * a * b
                for i, a in zip(row.places, row.weights, strict=True)
                for j, b in zip(col.places, col.weights, strict=True)
            )
            for col in cols
        ]
        for row in rows
    ]


def _windows(block: Any, best: Any) -> Any:
    return [[best([(block[i][j], 4 * i + j) for i in rows for j in cols]) for cols in WINDOWS[1]]
            for rows in WINDOWS[0]]  # fmt: skip


def _first_largest(pairs: list[tuple[float, int]]) -> int:
    return -max((value, -place) for value, place in pairs)[1]


def _order(numbers: list[float], *, descending: bool = False) -> list[float]:
    sign = -1 if descending else 1
    return [*map(float, sorted(range(len(numbers)), key=lambda at: sign * numbers[at]))]


ALONG: list[tuple[OnAxes, tuple[int, ...], tuple[int, ...], Any]] = [
    (Taken((3, 0, 0)), (2,), (3,), _across(lambda row: [row[3], row[0], row[0]])),
    (Taken((2, 1)), (1,), (2,), _down(lambda col: [col[2], col[1]])),
    (Weighed(TAPS), (1, 2), (2, 3), list(map(_weighed, BLOCKS))),
    (Running("sum"), (2,), (4,), _across(lambda row: list(itertools.accumulate(row)))),
    (Running("sum"), (1,), (3,), _down(lambda col: list(itertools.accumulate(col)))),
    (Running("max"), (1,), (3,), _down(lambda col: list(itertools.accumulate(col, max)))),
    (Running("min"), (2,), (4,), _across(lambda row: list(itertools.accumulate(row, min)))),
    (SortedPlaces(), (2,), (4,), _across(_order)),
    (SortedPlaces(descending=True), (2,), (4,),
     _across(lambda row: _order(row, descending=True))),
    (SortedPlaces(descending=True), (1,), (3,), _down(lambda col: _order(col, descending=True))),
    (ExtremePlace(True), (2,), (1,), _across(lambda row: [row.index(max(row))])),
    (ExtremePlace(False), (1,), (1,), _down(lambda col: [col.index(min(col))])),
    (Extremes(WINDOWS), (1, 2), (2, 2), [_windows(block, max) for block in BLOCKS]),
    (WindowPlaces(WINDOWS), (1, 2), (2, 2),
     [_windows(block, _first_largest) for block in BLOCKS]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "axes", "sizes", "wanted"), ALONG)
def test_along(
    function: OnAxes, axes: tuple[int, ...], sizes: tuple[int, ...], wanted: Any
) -> None:
    """Along rows, columns or both of two blocks; of equal numbers the first, and in their order."""
    found = _of(
        Along((0,), FLOAT, function, (GRID,), axes, sizes),
        [row for block in BLOCKS for row in block],
    )
    wanted = np.array(
        [[each[0] if isinstance(each, tuple) else each for each in row]
         for block in wanted for row in block]
    )  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_sums_so_far_are_exact() -> None:
    """In 64 bits 2 ** 24 and 1 and 1 are two more, which a sum in 32 bits never reaches."""
    step = Along((0,), FLOAT, Running("sum"), ((1, 4),), (1,), (4,))
    assert [[2.0**24, 2.0**24, 2.0**24 + 2, 2.0**24 + 4]] == _of(step, [[2.0**24, 1.0, 1.0, 2.0]])
    step = Along((0,), FLOAT, Running("prod"), ((1, 3),), (1,), (3,))
    assert [[2.0**100, INF, 2.0**60]] == _of(step, [[2.0**100, 2.0**60, 2.0**-100]])


MET: dict[str, Callable[[float, float], float]] = {
    "set": lambda _, y: y, "sum": lambda x, y: x + y, "prod": lambda x, y: x * y, "amax": max,
    "amin": min,
}  # fmt: skip


def _put(name: str) -> Any:
    rows = [*map(list, X)]
    for row, places, numbers in zip(rows, PLACES, MORE, strict=True):
        for place, number in zip(places, numbers, strict=True):
            row[place] = MET[name](row[place], number)
    return rows


PLACES = [[1, 0, 1], [3, 2, -1], [0, 0, 0]]
MORE = [[5.0, -6.0, 0.5], [1.5, 2.0, -3.0], [0.25, 8.0, -1.0]]


@pytest.mark.parametrize("name", MET)
def test_put(name: Any) -> None:
    """Numbers that come to one place one after the other, counted from either end."""
    step = Along((0, 1, 2), FLOAT, Put(name), ((3, 4), (3, 3), (3, 3)), (1,), (4,))
    assert _put(name) == _of(step, X, PLACES, MORE)
    # The same with a dimension more, and down columns.
    step = Along((0, 1, 2), FLOAT, Put(name), ((3, 1, 4), (3, 1, 3), (3, 1, 3)), (2,), (4,))
    assert _put(name) == _of(step, X, PLACES, MORE)
    step = Along((0, 1, 2), FLOAT, Put(name), ((4, 3), (3, 3), (3, 3)), (0,), (4,))
    turned = [[*zip(*each, strict=True)] for each in (X, PLACES, MORE)]
    assert [*map(list, zip(*_put(name), strict=True))] == _of(step, *turned)
    assert [[row[at] for at in places] for row, places in zip(X, PLACES, strict=True)] == _of(
        Along((0, 1), FLOAT, Picked(), ((3, 4), (3, 3)), (1,), (3,)), X, PLACES
    )


def _convolved(image: Any, weights: Any, bias: Any, step: Convolved) -> Any:
    """Multiply each window by hand: of each group, output and place."""
    groups, channels, *space = step.image
    windows = step.windows
    rank = len(space)
    found = []
    counts = windows.count(space)
    for group, output in itertools.product(range(groups), range(step.outputs)):
        number = group * step.outputs + output
        for at in itertools.product(*map(range, counts)):
            total = Fraction(bias[number] if bias is not None else 0)
            for channel in range(channels):
                for place in itertools.product(*map(range, windows.size)):
                    where = [
                        at[d] * windows.stride[d]
                        + place[d] * windows.dilation[d]
                        - windows.before[d]
                        for d in range(rank)
                    ]
                    if any(
                        w % s or not 0 <= w // s < have
                        for w, s, have in zip(where, windows.spread, space, strict=True)
                    ):
                        continue
                    inside = tuple(w // s for w, s in zip(where, windows.spread, strict=True))
                    total += Fraction(float(image[(group, channel, *inside)])) * Fraction(
                        float(weights[(number, channel, *place)])
                    )
            found.append(float(total))
    return np.reshape(found, (-1, counts[-1]))


CONVOLVED = [
    (Windows((2, 3), (1, 2), (1, 0), (0, 2), (1, 1), (1, 1)), (1, 2, 4, 5), 3, True),
    (Windows((2, 2), (2, 1), (0, 1), (1, 0), (2, 3), (1, 1)), (2, 1, 5, 6), 2, False),
    (Windows((2, 3), (1, 1), (1, 2), (1, 2), (1, 1), (2, 3)), (1, 2, 2, 3), 2, True),
    (Windows((2,), (1,), (-1,), (2,), (1,), (1,)), (2, 2, 5), 1, False),
    (Windows((3,), (2,), (2,), (-1,), (1,), (2,)), (1, 3, 4), 2, True),
    (Windows((1, 2, 2), (1, 1, 2), (0, 0, 1), (0, 1, 0), (1, 1, 1), (1, 1, 1)),
     (1, 1, 2, 3, 4), 2, False),
]  # fmt: skip


@pytest.mark.parametrize(("windows", "image", "outputs", "biased"), CONVOLVED)
def test_convolutions(windows: Windows, image: tuple[int, ...], outputs: int, biased: bool) -> None:
    """Strides, zeros in front and behind, gaps in windows and images, groups, and operations."""
    groups, channels, *space = image
    random = np.random.default_rng(3)
    x = random.integers(-8, 9, image) / 4
    w = random.integers(-8, 9, (groups * outputs, channels, *windows.size)) / 4
    b = random.integers(-8, 9, groups * outputs) / 4 if biased else None
    step = Convolved(tuple(range(2 + biased)), FLOAT, windows, image, outputs)
    wanted = _convolved(x, w, b, step)
    data = [x.reshape(-1, space[-1]), w.reshape(len(w), -1)]
    if b is not None:
        data.append(b[:, np.newaxis])
    assert wanted.tolist() == _of(step, *data)

    tiles = [_tile(each) for each in data]
    count = math.prod(windows.count(space))
    met = count if set(windows.spread) == {1} else math.prod(space)
    products = groups * outputs * channels * math.prod(windows.size) * met
    assert 2 * products + biased * groups * outputs * count == Chain(len(tiles), (step,)).flops(
        *tiles
    )
    assert wanted.shape == step.shape(*(each.shape for each in data))


def test_valid_rows_of_a_chain() -> None:
    """Those of the operand with most of those that have the rows of the result; else all."""
    step = Pointwise((0, 1), FLOAT, "add")
    three, one = (Tile(rows, 2, FLOAT, valid_rows=1) for rows in (3, 1))
    assert 1 == Chain(2, (step,)).apply(three, one).valid_rows
    assert 2 == Chain(2, (step,)).apply(three, Tile(3, 2, FLOAT, valid_rows=2)).valid_rows
    assert 2 == Chain(2, (step,)).apply(Tile(3, 2, FLOAT, valid_rows=2), three).valid_rows
    whole = Chain(1, (Placed((0,), FLOAT, 2, 3),)).apply(three)
    assert (2, None) == (whole.valid_rows, whole.data)
