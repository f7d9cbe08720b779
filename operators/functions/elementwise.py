"""Functions of single numbers: the functions that a Map applies, and ``NUMBERS`` for chains.

An addition, a product, a quotient, a comparison, a root and a choice are one operation each. An
exponential, a logarithm, a sine and a cosine are four operations each, like Exp. Other functions
take the sum of their parts: a sigmoid ``1 / (1 + exp(-x))`` takes seven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, dtype_named
from fabric.extend import block_format, limits, one_step, same
from operators.functions.arithmetic import (
    Array,
    divided,
    is_nan,
    is_whole,
    narrow,
    plus,
    times,
    wide,
)
from operators.functions.base import Function, PerElement, Shaped


@dataclass(frozen=True)
class _Unary(PerElement):
    operands: ClassVar = 1
    floats: ClassVar[bool] = True
    elementwise: ClassVar = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else narrow(self.compute(wide(x.data), x), x.dtype)
        return x.with_data(data)

    def compute(self, data: Array, tile: Tile) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class SiLU(_Unary):
    """``x / (1 + exp(-x))``, 8 operations per element.

    Shapes:
        x: R x C; result: the same.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(SiLU())(tiles))
        >>> program.expect(y=lambda: x / (1 + np.exp(-x)))
        >>> print(simulate(program).verified)
        True
    """

    flops_per_element: ClassVar = 8

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        with np.errstate(over="ignore"):
            return np.asanyarray(data / (1 + np.exp(-data)))


@dataclass(frozen=True)
class Exp(_Unary):
    """``exp(x)``, 4 operations per element; 0 in columns that are not valid.

    Shapes:
        x: R x C; result: the same.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(Exp())(tiles))
        >>> program.expect(y=lambda: np.exp(x))
        >>> print(simulate(program).verified)
        True
    """

    flops_per_element: ClassVar = 4

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        result: Array = np.exp(data)
        result[:, tile.valid_cols :] = 0
        return result


@dataclass(frozen=True)
class _Binary(Function):
    operands: ClassVar = 2
    elementwise: ClassVar = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        a, b = inputs
        if a == b:
            return a
        rows, cols = _joined(a.rows, b.rows), _joined(a.cols, b.cols)
        if rows is None or cols is None:
            raise ShapeError(f"{type(self).__name__} joins {a} and {b}: expected equal sizes, or 1")
        return TileType(rows, cols, a.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        a, b = inputs
        return _larger(a.rows, b.rows) * _larger(a.cols, b.cols)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        a, b = inputs
        data = None
        if a.data is not None and b.data is not None:
            left, right = wide(a.data), wide(b.data)

            def of(row: int, col: int) -> tuple[Array, ...]:
                return tuple(
                    each[min(row, len(each) - 1), min(col, each.shape[1] - 1)]
                    for each in (left, right)
                )

            data = narrow(self.compute(left, right), a.dtype, type(self).__name__, of)
        rows, valid_rows = _repeated(a.rows, a.valid_rows, b.rows, b.valid_rows)
        cols, valid_cols = _repeated(a.cols, a.valid_cols, b.cols, b.valid_cols)
        return Tile(rows, cols, a.dtype, data, valid_rows=valid_rows, valid_cols=valid_cols)

    def compute(self, left: Array, right: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Add(_Binary):
    """``a + b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Add())(left, right))
        >>> program.expect(y=lambda: a + b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return plus(left, right)


@dataclass(frozen=True)
class Mul(_Binary):
    """``a * b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Mul())(left, right))
        >>> program.expect(y=lambda: a * b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return times(left, right)


@dataclass(frozen=True)
class Div(_Binary):
    """``a / b``, one operation per element of the result; quotients of integers must be integers.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Div())(left, right))
        >>> program.expect(y=lambda: a / b)
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return divided(left, right)


@dataclass(frozen=True)
class Maximum(_Binary):
    """The larger of ``a`` and ``b``, one operation per element of the result.

    Shapes:
        a, b: R x C, where either may have 1 row or 1 column; result: R x C.

    Example:
        >>> a, b = np.arange(16.0).reshape(4, 4), np.full((4, 1), 2.0)
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(a, tile=(2, 4))()
        ...     right = LinearOffChipLoad(b, tile=(2, 1))()
        ...     LinearOffChipStore("y")(Map(Maximum())(left, right))
        >>> program.expect(y=lambda: np.maximum(a, b))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, left: Array, right: Array) -> Array:
        return np.asanyarray(np.maximum(left, right))


def _joined(left: Dim, right: Dim) -> Dim | None:
    if left == 1:
        return right
    return left if right == 1 or same(left, right) is not False else None


def _larger(left: Dim, right: Dim) -> Dim:
    return right if left == 1 else left


def _repeated(left: int, valid_left: int, right: int, valid_right: int) -> tuple[int, int]:
    """Return the size and the valid size of the result; an operand of size 1 is repeated."""
    if left == right:
        return left, max(valid_left, valid_right)
    return (right, valid_right) if left == 1 else (left, valid_left)


@dataclass(frozen=True)
class AsType(Function):
    """The same numbers, rounded to another floating-point type.

    ``float8_e4m3`` has no infinity: larger numbers become its largest number, 448, as in PyTorch.

    In a block-scaled type, 32 neighbours in a row share a scale. The scale is the largest power of
    two up to their largest magnitude, divided by the largest power of two that an element can hold.
    A number that is still too large becomes the largest element.

    Shapes:
        x: R x C of a floating-point or block-scaled type; result: R x C of ``dtype``.

    Timing:
        1 operation per number; 2 for a block-scaled type, since finding the largest takes one, too.

    Attributes:
        dtype: name of the element type.

    Example:
        >>> x = np.arange(64.0).reshape(1, 64) % 8
        >>> with Program("example", mode="functional") as program:
        ...     scaled = Map(AsType("mxfp8_e4m3"))(LinearOffChipLoad(x, tile=(1, 64))())
        ...     LinearOffChipStore("y")(scaled)
        >>> program.expect(y=lambda: x)
        >>> print(scaled.type)
        [1, 1, 1] of 1x64 mxfp8_e4m3
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1
    floats: ClassVar[bool] = True
    block_scaled: ClassVar[bool] = True
    elementwise: ClassVar = True

    dtype: str

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        dtype = dtype_named(self.dtype)
        if limits(dtype) is not None:
            raise ShapeError(
                f"AsType makes {self.dtype} of {x}: expected the name of a floating-point type"
            )
        return TileType(x.rows, x.cols, dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        (x,) = inputs
        each = 1 if block_format(dtype_named(self.dtype)) is None else 2
        return each * x.rows * x.cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        dtype = dtype_named(self.dtype)
        data = None if x.data is None else narrow(wide(x.data), dtype, "AsType")
        return Tile(x.rows, x.cols, dtype, data, valid_rows=x.valid_rows, valid_cols=x.valid_cols)


class NumberFunction(NamedTuple):
    """A function of single numbers.

    Attributes:
        function: takes arrays with elements of 32 bits or more.
        flops: operations per element.
        bits: returns the bits of the largest intermediate result, from the bits of each whole
            argument; None for a function without whole results.
        rounds_each: each intermediate result has the element type of the result, as in PyTorch's
            floor division of 16-bit tensors.
    """

    function: Callable[..., Any]
    flops: int
    bits: Callable[..., int] | None = None
    rounds_each: bool = False


_TRANSCENDENTAL: Final = 4
_ROOT_2_OVER_PI: Final = math.sqrt(2 / math.pi)
_ROOT_HALF: Final = math.sqrt(0.5)


def _of_arrays(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function of Python's floats as a function of arrays, computed in 64 bits."""
    of_objects = np.frompyfunc(function, 1, 1)

    def computed(x: Array) -> Array:
        numbers = of_objects(np.asanyarray(x, np.float64))
        return np.asanyarray(numbers, np.result_type(x, np.float32))

    return computed


_erf: Final = _of_arrays(math.erf)


def _gelu(x: Array) -> Array:
    return np.asanyarray(0.5 * x * (1 + _erf(x * _ROOT_HALF)))


def _tanh_gelu(x: Array) -> Array:
    inner = _ROOT_2_OVER_PI * (x + 0.044715 * (x * x * x))
    return np.asanyarray(0.5 * x * (1 + np.tanh(inner)))


def _softplus(x: Array, beta: Array, threshold: Array) -> Array:
    scaled = x * beta
    soft = np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
    return np.where(scaled > threshold, x, soft)


_POWERS: Final[dict[float, Callable[[Array], Array]]] = {
    -2: lambda x: 1 / (x * x),
    -1: lambda x: 1 / x,
    -0.5: lambda x: 1 / np.sqrt(x),
    0.5: np.sqrt,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
}
"""Powers that PyTorch computes by products and roots, which decides those of -0 and -inf."""


def _power(x: Array, exponent: Array) -> Array:
    special = None if np.ndim(exponent) or is_whole(x) else _POWERS.get(exponent.item())
    return np.asanyarray(np.power(x, exponent) if special is None else special(x))


@one_step
def _floored(x: Array, y: Array) -> Array:
    """Return the floor of ``x / y`` as PyTorch and Python compute it, from the exact remainder."""
    if is_whole(x) and is_whole(y):
        return np.asarray(x // _divisor(x, y))
    left_over = np.fmod(x, y)
    quotient = (x - left_over) / y
    quotient = np.where((left_over != 0) & ((y < 0) != (left_over < 0)), quotient - 1, quotient)
    floor = np.floor(quotient)
    floor = np.where(quotient - floor > 0.5, floor + 1, floor)
    floor = np.where(quotient != 0, floor, np.copysign(quotient, x / y))
    return np.asarray(np.where(y == 0, x / y, floor))


@one_step
def _left_over(x: Array, y: Array) -> Array:
    """Return the remainder of a division that truncates; it has the sign of ``x``."""
    if is_whole(x) and is_whole(y):
        return np.asanyarray(np.sign(x) * (np.abs(x) % np.abs(_divisor(x, y))))
    return np.asanyarray(np.fmod(x, y))


@one_step
def _remainder(x: Array, y: Array) -> Array:
    """Return the remainder of a floor division; it has the sign of ``y``, but 0 that of ``x``."""
    if is_whole(x) and is_whole(y):
        return np.asarray(x % _divisor(x, y))
    left_over = np.fmod(x, y)
    is_other = (left_over != 0) & ((y < 0) != (left_over < 0))
    return np.asarray(np.where(is_other, left_over + y, left_over))


def _divisor(x: Array, y: Array) -> Array:
    """Return ``y``; refuse a whole division by 0, for which numpy gives 0."""
    if is_whole(x) and is_whole(y) and not np.all(y):
        raise ValueError("a whole number is divided by 0: expected a divisor other than 0")
    return y


def _rounding(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return ``function`` restricted to floating-point numbers; whole numbers stay unchanged."""
    return lambda x: x if is_whole(x) else np.asanyarray(function(x))


def _log_gamma(x: float) -> float:
    if not math.isfinite(x):
        return math.nan if math.isnan(x) else math.inf
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _widest(*bits: int) -> int:
    return max(bits)


def _one_more(*bits: int) -> int:
    return max(bits) + 1


def _scaled(x: int, y: int, factor: int) -> int:
    return max(x, y + factor) + 1


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(np.asanyarray(condition, bool), x, y)


def _sign(x: Array) -> Array:
    """Return 1, 0 or -1; 0 for a NaN, as PyTorch does."""
    return np.where(is_nan(x), 0, np.sign(x))


def _maximum(x: Array, y: Array | int) -> Array:
    """Return the larger number, ``x`` if they are equal (as 0 and -0 are), or a NaN."""
    return np.where((x >= y) | is_nan(x), x, y)


def _minimum(x: Array, y: Array) -> Array:
    """Return the smaller number, ``x`` if they are equal, or a NaN."""
    return np.where((x <= y) | is_nan(x), x, y)


def _hard_sigmoid(x: Array) -> Array:
    return np.asanyarray(np.minimum(np.maximum(x + 3, 0), 6) / 6)


NUMBERS: Final[dict[str, NumberFunction]] = {
    "acos": NumberFunction(np.arccos, 2 * _TRANSCENDENTAL),
    "acosh": NumberFunction(np.arccosh, 2 * _TRANSCENDENTAL),
    "asin": NumberFunction(np.arcsin, 2 * _TRANSCENDENTAL),
    "asinh": NumberFunction(np.arcsinh, 2 * _TRANSCENDENTAL),
    "atan": NumberFunction(np.arctan, 2 * _TRANSCENDENTAL),
    "atan2": NumberFunction(np.arctan2, 2 * _TRANSCENDENTAL + 1),
    "atanh": NumberFunction(np.arctanh, 2 * _TRANSCENDENTAL),
    "ceil": NumberFunction(_rounding(np.ceil), 1, _widest),
    "copysign": NumberFunction(np.copysign, 1),
    "cosh": NumberFunction(np.cosh, 2 * _TRANSCENDENTAL),
    "erfc": NumberFunction(_of_arrays(math.erfc), 2 * _TRANSCENDENTAL),
    "exp2": NumberFunction(np.exp2, _TRANSCENDENTAL),
    "floor_div": NumberFunction(_floored, 2, _widest, rounds_each=True),
    "fmod": NumberFunction(_left_over, 3, _widest),
    "hypot": NumberFunction(np.hypot, 4),
    "isfinite": NumberFunction(np.isfinite, 1),
    "isinf": NumberFunction(np.isinf, 1),
    "isnan": NumberFunction(np.isnan, 1),
    "lgamma": NumberFunction(_of_arrays(_log_gamma), 4 * _TRANSCENDENTAL),
    "log10": NumberFunction(np.log10, _TRANSCENDENTAL),
    "remainder": NumberFunction(_remainder, 3, _widest),
    "sinh": NumberFunction(np.sinh, 2 * _TRANSCENDENTAL),
    "tan": NumberFunction(np.tan, 2 * _TRANSCENDENTAL),
    "trunc": NumberFunction(_rounding(np.trunc), 1, _widest),
    "xor": NumberFunction(lambda x, y: (x != 0) ^ (y != 0), 1, _widest),
    "abs": NumberFunction(np.abs, 1, _widest),
    "add": NumberFunction(np.add, 1, _one_more),
    "add_scaled": NumberFunction(lambda x, y, factor: x + y * factor, 2, _scaled),
    "and": NumberFunction(lambda x, y: (x != 0) & (y != 0), 1, _widest),
    "clamp": NumberFunction(lambda x, low, high: _minimum(_maximum(x, low), high), 2, _widest),
    "copy": NumberFunction(np.asanyarray, 0, _widest),
    "cos": NumberFunction(np.cos, _TRANSCENDENTAL),
    "div": NumberFunction(np.divide, 1),
    "elu": NumberFunction(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), 9),
    "eq": NumberFunction(np.equal, 1, _widest),
    "erf": NumberFunction(_erf, 2 * _TRANSCENDENTAL),
    "exp": NumberFunction(np.exp, _TRANSCENDENTAL),
    "expm1": NumberFunction(np.expm1, _TRANSCENDENTAL + 1),
    "floor": NumberFunction(_rounding(np.floor), 1, _widest),
    "ge": NumberFunction(np.greater_equal, 1, _widest),
    "gelu": NumberFunction(_gelu, 2 * _TRANSCENDENTAL + 4),
    "gelu_tanh": NumberFunction(_tanh_gelu, 2 * _TRANSCENDENTAL + 8),
    "gt": NumberFunction(np.greater, 1, _widest),
    "hardsigmoid": NumberFunction(_hard_sigmoid, 4),
    "hardswish": NumberFunction(lambda x: x * _hard_sigmoid(x), 5),
    "le": NumberFunction(np.less_equal, 1, _widest),
    "leaky_relu": NumberFunction(lambda x, slope: np.where(x > 0, x, x * slope), 3),
    "log": NumberFunction(np.log, _TRANSCENDENTAL),
    "log1p": NumberFunction(np.log1p, _TRANSCENDENTAL + 1),
    "log2": NumberFunction(np.log2, _TRANSCENDENTAL),
    "lt": NumberFunction(np.less, 1, _widest),
    "maximum": NumberFunction(_maximum, 1, _widest),
    "minimum": NumberFunction(_minimum, 1, _widest),
    "mul": NumberFunction(np.multiply, 1, lambda x, y: x + y),
    "ne": NumberFunction(np.not_equal, 1, _widest),
    "neg": NumberFunction(np.negative, 1, _widest),
    "not": NumberFunction(lambda x: x == 0, 1, _widest),
    "or": NumberFunction(lambda x, y: (x != 0) | (y != 0), 1, _widest),
    "pow": NumberFunction(_power, 2 * _TRANSCENDENTAL + 1, lambda x, power: x << min(power, 64)),
    "reciprocal": NumberFunction(lambda x: 1 / x, 1),
    "relu": NumberFunction(lambda x: _maximum(x, 0), 1, _widest),
    "round": NumberFunction(_rounding(np.rint), 1, _widest),
    "rsqrt": NumberFunction(lambda x: 1 / np.sqrt(x), 2),
    "sigmoid": NumberFunction(lambda x: 1 / (1 + np.exp(-x)), _TRANSCENDENTAL + 3),
    "sign": NumberFunction(_sign, 1, _widest),
    "silu": NumberFunction(lambda x: x / (1 + np.exp(-x)), _TRANSCENDENTAL + 4),
    "sin": NumberFunction(np.sin, _TRANSCENDENTAL),
    "softplus": NumberFunction(_softplus, 2 * _TRANSCENDENTAL + 5),
    "sqrt": NumberFunction(np.sqrt, 1),
    "square": NumberFunction(np.square, 1, lambda x: 2 * x),
    "sub": NumberFunction(np.subtract, 1, _one_more),
    "sub_scaled": NumberFunction(lambda x, y, factor: x - y * factor, 2, _scaled),
    "tanh": NumberFunction(np.tanh, 2 * _TRANSCENDENTAL),
    "where": NumberFunction(_where, 1, _widest),
}
"""Functions by name; their arguments are arrays that broadcast."""
