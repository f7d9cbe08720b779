"""Functions of single numbers, by name, and the operations that each takes.

An addition, a product, a quotient, a comparison, a root and a choice are one operation each; an
exponential, a logarithm, a sine and a cosine are four, as Exp has it. What is made of these is
their sum: a sigmoid ``1 / (1 + exp(-x))`` takes seven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from operators.functions.arithmetic import is_whole

__all__ = ["NUMBERS", "NumberFunction"]

Array = np.ndarray


class NumberFunction(NamedTuple):
    """A function of single numbers.

    Attributes:
        function: of arrays in 32 bits or more, element by element.
        flops: operations per element.
        bits: of the largest magnitude on the way, given those of whole arguments; None of a
            function that does not give whole numbers of these.
    """

    function: Callable[..., Any]
    flops: int
    bits: Callable[..., int] | None = None


_TRANSCENDENTAL: Final = 4
_ERF: Final = np.frompyfunc(math.erf, 1, 1)
_ERFC: Final = np.frompyfunc(math.erfc, 1, 1)
_ROOT_2_OVER_PI: Final = math.sqrt(2 / math.pi)
_ROOT_HALF: Final = math.sqrt(0.5)


def _erf(x: Array) -> Array:
    return np.asarray(_ERF(np.asarray(x, np.float64)), np.result_type(x, np.float32))


def _erfc(x: Array) -> Array:
    return np.asarray(_ERFC(np.asarray(x, np.float64)), np.result_type(x, np.float32))


def _sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-x))
    return found


def _gelu(x: Array) -> Array:
    found: Array = 0.5 * x * (1 + _erf(x * _ROOT_HALF))
    return found


def _tanh_gelu(x: Array) -> Array:
    inner = _ROOT_2_OVER_PI * (x + 0.044715 * (x * x * x))
    found: Array = 0.5 * x * (1 + np.tanh(inner))
    return found


def _softplus(x: Array, beta: Array, threshold: Array) -> Array:
    scaled = x * beta
    soft = np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
    return np.where(scaled > threshold, x, soft)


def _power(x: Array, exponent: Array) -> Array:
    square = np.ndim(exponent) == 0 and exponent == 2
    found: Array = x * x if square else np.power(x, exponent)
    return found


def _floored(x: Array, y: Array) -> Array:
    return np.asarray(x // _divisor(x, y) if is_whole(x) and is_whole(y) else np.floor(x / y))


def _left_over(x: Array, y: Array) -> Array:
    """Return what a division that cuts off leaves, with the sign of ``x``."""
    if is_whole(x) and is_whole(y):
        return np.asarray(np.sign(x) * (np.abs(x) % np.abs(_divisor(x, y))))
    return np.asarray(np.fmod(x, y))


def _divisor(x: Array, y: Array) -> Array:
    """Return ``y``; whole numbers have no quotient by 0, where numpy gives 0.

    Raises:
        ValueError: a whole number is divided by 0.
    """
    if is_whole(x) and is_whole(y) and not np.all(y):
        raise ValueError("a whole number is divided by 0: expected another divisor")
    return y


def _ceiling(x: Array) -> Array:
    return x if is_whole(x) else np.asarray(np.ceil(x))


def _cut_off(x: Array) -> Array:
    return x if is_whole(x) else np.asarray(np.trunc(x))


def _log_gamma(x: Array) -> Array:
    return np.asarray(_LOG_GAMMA(np.asarray(x, np.float64)), np.result_type(x, np.float32))


def _gamma_of(x: float) -> float:
    if not math.isfinite(x):
        return math.nan if math.isnan(x) else math.inf
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


_LOG_GAMMA: Final = np.frompyfunc(_gamma_of, 1, 1)


def _widest(*bits: int) -> int:
    return max(bits)


def _one_more(*bits: int) -> int:
    return max(bits) + 1


def _together(*bits: int) -> int:
    return sum(bits)


def _scaled(x: int, y: int, factor: int) -> int:
    return max(x, y + factor) + 1


def _raised(x: int, exponent: int) -> int:
    return x << min(exponent, 64)


def _floor(x: Array) -> Array:
    return x if is_whole(x) else np.asarray(np.floor(x))


def _round(x: Array) -> Array:
    return x if is_whole(x) else np.asarray(np.rint(x))


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(np.asarray(condition, bool), x, y)


def _negative(x: Array) -> Array:
    return -x


def _clamp(x: Array, low: Array, high: Array) -> Array:
    found: Array = np.minimum(np.maximum(x, low), high)
    return found


def _leaky(x: Array, slope: Array) -> Array:
    return np.where(x > 0, x, x * slope)


def _elu(x: Array, alpha: Array) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _hard_sigmoid(x: Array) -> Array:
    found: Array = np.minimum(np.maximum(x + 3, 0), 6) / 6
    return found


NUMBERS: Final[dict[str, NumberFunction]] = {
    "acos": NumberFunction(np.arccos, 2 * _TRANSCENDENTAL),
    "acosh": NumberFunction(np.arccosh, 2 * _TRANSCENDENTAL),
    "asin": NumberFunction(np.arcsin, 2 * _TRANSCENDENTAL),
    "asinh": NumberFunction(np.arcsinh, 2 * _TRANSCENDENTAL),
    "atan": NumberFunction(np.arctan, 2 * _TRANSCENDENTAL),
    "atan2": NumberFunction(np.arctan2, 2 * _TRANSCENDENTAL + 1),
    "atanh": NumberFunction(np.arctanh, 2 * _TRANSCENDENTAL),
    "ceil": NumberFunction(_ceiling, 1, _widest),
    "copysign": NumberFunction(np.copysign, 1),
    "cosh": NumberFunction(np.cosh, 2 * _TRANSCENDENTAL),
    "erfc": NumberFunction(_erfc, 2 * _TRANSCENDENTAL),
    "exp2": NumberFunction(np.exp2, _TRANSCENDENTAL),
    "floor_div": NumberFunction(_floored, 2, _widest),
    "fmod": NumberFunction(_left_over, 3, _widest),
    "hypot": NumberFunction(np.hypot, 4),
    "isfinite": NumberFunction(np.isfinite, 1),
    "isinf": NumberFunction(np.isinf, 1),
    "isnan": NumberFunction(np.isnan, 1),
    "lgamma": NumberFunction(_log_gamma, 4 * _TRANSCENDENTAL),
    "log10": NumberFunction(np.log10, _TRANSCENDENTAL),
    "remainder": NumberFunction(lambda x, y: np.remainder(x, _divisor(x, y)), 3, _widest),
    "sinh": NumberFunction(np.sinh, 2 * _TRANSCENDENTAL),
    "tan": NumberFunction(np.tan, 2 * _TRANSCENDENTAL),
    "trunc": NumberFunction(_cut_off, 1, _widest),
    "xor": NumberFunction(lambda x, y: (x != 0) ^ (y != 0), 1, _widest),
    "abs": NumberFunction(np.abs, 1, _widest),
    "add": NumberFunction(np.add, 1, _one_more),
    "add_scaled": NumberFunction(lambda x, y, factor: x + y * factor, 2, _scaled),
    "and": NumberFunction(lambda x, y: (x != 0) & (y != 0), 1, _widest),
    "clamp": NumberFunction(_clamp, 2, _widest),
    "copy": NumberFunction(np.asarray, 0, _widest),
    "cos": NumberFunction(np.cos, _TRANSCENDENTAL),
    "div": NumberFunction(np.divide, 1),
    "elu": NumberFunction(_elu, 9),
    "eq": NumberFunction(np.equal, 1, _widest),
    "erf": NumberFunction(_erf, 2 * _TRANSCENDENTAL),
    "exp": NumberFunction(np.exp, _TRANSCENDENTAL),
    "expm1": NumberFunction(np.expm1, _TRANSCENDENTAL + 1),
    "floor": NumberFunction(_floor, 1, _widest),
    "ge": NumberFunction(np.greater_equal, 1, _widest),
    "gelu": NumberFunction(_gelu, 2 * _TRANSCENDENTAL + 4),
    "gelu_tanh": NumberFunction(_tanh_gelu, 2 * _TRANSCENDENTAL + 8),
    "gt": NumberFunction(np.greater, 1, _widest),
    "hardsigmoid": NumberFunction(_hard_sigmoid, 4),
    "hardswish": NumberFunction(lambda x: x * _hard_sigmoid(x), 5),
    "le": NumberFunction(np.less_equal, 1, _widest),
    "leaky_relu": NumberFunction(_leaky, 3),
    "log": NumberFunction(np.log, _TRANSCENDENTAL),
    "log1p": NumberFunction(np.log1p, _TRANSCENDENTAL + 1),
    "log2": NumberFunction(np.log2, _TRANSCENDENTAL),
    "lt": NumberFunction(np.less, 1, _widest),
    "maximum": NumberFunction(np.maximum, 1, _widest),
    "minimum": NumberFunction(np.minimum, 1, _widest),
    "mul": NumberFunction(np.multiply, 1, _together),
    "ne": NumberFunction(np.not_equal, 1, _widest),
    "neg": NumberFunction(_negative, 1, _widest),
    "not": NumberFunction(lambda x: x == 0, 1, _widest),
    "or": NumberFunction(lambda x, y: (x != 0) | (y != 0), 1, _widest),
    "pow": NumberFunction(_power, 2 * _TRANSCENDENTAL + 1, _raised),
    "reciprocal": NumberFunction(lambda x: 1 / x, 1),
    "relu": NumberFunction(lambda x: np.maximum(x, 0), 1, _widest),
    "round": NumberFunction(_round, 1, _widest),
    "rsqrt": NumberFunction(lambda x: 1 / np.sqrt(x), 2),
    "sigmoid": NumberFunction(_sigmoid, _TRANSCENDENTAL + 3),
    "sign": NumberFunction(np.sign, 1, _widest),
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
"""The functions; arguments are arrays that are broadcast."""
