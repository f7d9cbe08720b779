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

__all__ = ["NUMBERS", "NumberFunction"]

Array = np.ndarray


class NumberFunction(NamedTuple):
    """A function of single numbers.

    Attributes:
        function: of arrays in 32 bits or more, element by element.
        flops: operations an element.
    """

    function: Callable[..., Any]
    flops: int


_TRANSCENDENTAL: Final = 4
_ERF: Final = np.frompyfunc(math.erf, 1, 1)
_ROOT_2_OVER_PI: Final = np.float32(math.sqrt(2 / math.pi))
_ROOT_HALF: Final = np.float32(math.sqrt(0.5))


def _erf(x: Array) -> Array:
    return np.asarray(_ERF(np.asarray(x, np.float64)), np.float32)


def _sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-x))
    return found


def _gelu(x: Array) -> Array:
    found: Array = np.float32(0.5) * x * (1 + _erf(x * _ROOT_HALF))
    return found


def _tanh_gelu(x: Array) -> Array:
    inner = _ROOT_2_OVER_PI * (x + np.float32(0.044715) * (x * x * x))
    found: Array = np.float32(0.5) * x * (1 + np.tanh(inner))
    return found


def _softplus(x: Array, beta: Array, threshold: Array) -> Array:
    scaled = x * beta
    soft = np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
    return np.where(scaled > threshold, x, soft)


def _power(x: Array, exponent: Array) -> Array:
    square = np.ndim(exponent) == 0 and exponent == 2
    found: Array = x * x if square else np.power(x, exponent)
    return found


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
    found: Array = np.minimum(np.maximum(x + 3, 0), 6) / np.float32(6)
    return found


NUMBERS: Final[dict[str, NumberFunction]] = {
    "abs": NumberFunction(np.abs, 1),
    "add": NumberFunction(np.add, 1),
    "add_scaled": NumberFunction(lambda x, y, factor: x + y * factor, 2),
    "and": NumberFunction(np.logical_and, 1),
    "clamp": NumberFunction(_clamp, 2),
    "copy": NumberFunction(np.asarray, 0),
    "cos": NumberFunction(np.cos, _TRANSCENDENTAL),
    "div": NumberFunction(np.divide, 1),
    "elu": NumberFunction(_elu, 9),
    "eq": NumberFunction(np.equal, 1),
    "erf": NumberFunction(_erf, 2 * _TRANSCENDENTAL),
    "exp": NumberFunction(np.exp, _TRANSCENDENTAL),
    "expm1": NumberFunction(np.expm1, _TRANSCENDENTAL + 1),
    "floor": NumberFunction(np.floor, 1),
    "ge": NumberFunction(np.greater_equal, 1),
    "gelu": NumberFunction(_gelu, 2 * _TRANSCENDENTAL + 4),
    "gelu_tanh": NumberFunction(_tanh_gelu, 2 * _TRANSCENDENTAL + 8),
    "gt": NumberFunction(np.greater, 1),
    "hardsigmoid": NumberFunction(_hard_sigmoid, 4),
    "hardswish": NumberFunction(lambda x: x * _hard_sigmoid(x), 5),
    "le": NumberFunction(np.less_equal, 1),
    "leaky_relu": NumberFunction(_leaky, 3),
    "log": NumberFunction(np.log, _TRANSCENDENTAL),
    "log1p": NumberFunction(np.log1p, _TRANSCENDENTAL + 1),
    "log2": NumberFunction(np.log2, _TRANSCENDENTAL),
    "lt": NumberFunction(np.less, 1),
    "maximum": NumberFunction(np.maximum, 1),
    "minimum": NumberFunction(np.minimum, 1),
    "mul": NumberFunction(np.multiply, 1),
    "ne": NumberFunction(np.not_equal, 1),
    "neg": NumberFunction(_negative, 1),
    "not": NumberFunction(np.logical_not, 1),
    "or": NumberFunction(np.logical_or, 1),
    "pow": NumberFunction(_power, 2 * _TRANSCENDENTAL + 1),
    "reciprocal": NumberFunction(lambda x: 1 / x, 1),
    "relu": NumberFunction(lambda x: np.maximum(x, 0), 1),
    "round": NumberFunction(np.rint, 1),
    "rsqrt": NumberFunction(lambda x: 1 / np.sqrt(x), 2),
    "sigmoid": NumberFunction(_sigmoid, _TRANSCENDENTAL + 3),
    "sign": NumberFunction(np.sign, 1),
    "silu": NumberFunction(lambda x: x / (1 + np.exp(-x)), _TRANSCENDENTAL + 4),
    "sin": NumberFunction(np.sin, _TRANSCENDENTAL),
    "softplus": NumberFunction(_softplus, 2 * _TRANSCENDENTAL + 5),
    "sqrt": NumberFunction(np.sqrt, 1),
    "square": NumberFunction(np.square, 1),
    "sub": NumberFunction(np.subtract, 1),
    "sub_scaled": NumberFunction(lambda x, y, factor: x - y * factor, 2),
    "tanh": NumberFunction(np.tanh, 2 * _TRANSCENDENTAL),
    "where": NumberFunction(_where, 1),
}
"""The functions; arguments are arrays that are broadcast."""
