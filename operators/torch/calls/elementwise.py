"""Elementwise calls: each is a step of a chain, rounded to the element type of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from operators.functions.steps import Number, Pointwise, Read, Step
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

_PLAIN: Final = {
    **{
        f"aten.{name}.default": name
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cosh"),
            *("erfc", "exp2", "isinf", "isnan", "lgamma", "log10", "sinh", "tan", "trunc", "hypot"),
            *("abs", "cos", "erf", "exp", "expm1", "floor", "hardsigmoid", "hardswish", "log"),
            *("log1p", "log2", "maximum", "minimum", "neg", "reciprocal", "relu", "round", "rsqrt"),
            *("sigmoid", "sign", "silu", "sin", "sqrt", "square", "tanh"),
        )
    },
    **{
        f"aten.{name}.{kind}": name
        for name in ("div", "eq", "fmod", "ge", "gt", "le", "lt", "mul", "ne", "remainder")
        for kind in ("Tensor", "Scalar")
    },
    "aten.bitwise_and.Tensor": "and",
    "aten.bitwise_not.default": "not",
    "aten.bitwise_or.Tensor": "or",
    "aten.bitwise_xor.Tensor": "xor",
    "aten.copysign.Tensor": "copysign",
    "aten.floor_divide.default": "floor_div",
    "aten.logical_and.default": "and",
    "aten.logical_not.default": "not",
    "aten.logical_or.default": "or",
    "aten.logical_xor.default": "xor",
    "aten.special_erf.default": "erf",
    "aten.special_expit.default": "sigmoid",
    "aten.true_divide.Tensor": "div",
    **{f"aten.masked_fill.{kind}": "masked_fill" for kind in ("Scalar", "Tensor")},
    **{f"aten.pow.{kind}": "pow" for kind in ("Scalar", "Tensor_Scalar", "Tensor_Tensor")},
    **{f"aten.where.{kind}": "where" for kind in ("Scalar", "ScalarOther", "ScalarSelf", "self")},
}
"""Calls that have the arguments of a function on numbers, in the same order."""


_IN_32_BITS: Final[dict[str, Sequence[int]]] = {
    "div": (1,),
    "elu": (1,),
    "floor_div": (1,),
    "leaky_relu": (1,),
    "mul": (0, 1),
    "softplus": (1, 2),
    "trunc_div": (1,),
}
"""Arguments that stay 32-bit numbers beside 16-bit tensors. PyTorch rounds all others."""


def pointwise(importing: Importing, call: Call, name: str, *arguments: Any) -> View:
    """Apply a function on numbers to broadcast tensors and numbers."""
    dtype = _computed_in(arguments)
    operands: list[View] = []
    reads: list[Read] = []
    for place, argument in enumerate(arguments):
        number, operand = _number(importing, argument), argument
        if dtype is not None and place not in _IN_32_BITS.get(name, ()):
            if number is not None:
                with np.errstate(over="ignore"):
                    number = float(np.asarray(number).astype(dtype))
            elif not operand.shape and _is_float(operand.dtype) and operand.dtype != dtype:
                operand = importing.chain(call, (operand,), (Pointwise((0,), dtype, "copy"),))
        if number is not None:
            reads.append(Number(number))
        else:
            reads.append(len(operands))
            operands.append(operand)
    return importing.chain(call, operands, _steps(name, reads, operands, call.result.dtype))


def _steps(
    name: str, reads: Sequence[Read], operands: Sequence[View], dtype: np.dtype
) -> tuple[Step, ...]:
    """Return the steps of a function. PyTorch divides by a single number in 32 bits."""
    last = len(operands)
    by_one = isinstance(reads[-1], Number) or not operands[-1].shape
    inner = np.dtype(np.float32) if by_one and _is_float(dtype) else dtype
    if name == "trunc_div":
        quotient = Pointwise(tuple(reads), inner, "div")
        return quotient, Pointwise((last,), dtype, "trunc")
    step = Pointwise(tuple(reads), inner if name == "floor_div" else dtype, name)
    return (step,) if step.dtype == dtype else (step, Pointwise((last,), dtype, "copy"))


def _computed_in(arguments: Sequence[Any]) -> np.dtype | None:
    """Return the floating-point type of the computation; None without floating-point tensors."""
    tensors = [each for each in arguments if isinstance(each, View) and _is_float(each.dtype)]
    dtypes = {each.dtype for each in tensors if each.shape} or {each.dtype for each in tensors}
    return dtypes.pop() if len(dtypes) == 1 else np.dtype(np.float32) if dtypes else None


def _number(importing: Importing, argument: Any) -> float | None:
    """Return an argument as a number, if it is a number or a constant without dimensions."""
    if isinstance(argument, complex):
        importing.unsupported(f"it is given {argument}: expected a real number")
    if not isinstance(argument, View):
        return float(argument)
    if argument.shape:
        return None
    known = importing.known(argument)
    return None if known is None else float(known)


@imports(*_PLAIN)
def plain(importing: Importing, call: Call) -> View:
    name = _PLAIN[call.target]
    if ".bitwise_" in call.target and call.result.dtype != np.bool_:
        importing.unsupported(f"its tensors are {call.result.dtype}: expected booleans")
    if name == "masked_fill":
        x, mask, value = call.args
        return pointwise(importing, call, "where", mask, value, x)
    return pointwise(importing, call, name, *call.args)


@imports("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divided(importing: Importing, call: Call) -> View:
    x, y = call.args[:2]
    name = {None: "div", "floor": "floor_div", "trunc": "trunc_div"}[
        call.kwargs.get("rounding_mode")
    ]
    tensors = (each for each in (x, y) if isinstance(each, View))
    if name == "trunc_div" and not all(_is_float(each.dtype) for each in tensors):
        importing.unsupported("expected floating-point numbers to be divided towards zero")
    return pointwise(importing, call, name, x, y)


@imports("aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar")
@imports("aten.rsub.Scalar", "aten.rsub.Tensor")
def added(importing: Importing, call: Call) -> View:
    """Plan a sum or a difference. The second operand may be scaled by ``alpha``."""
    x, y, *_ = call.args
    factor = call.argument(2, "alpha", 1)
    name = "add" if ".add." in call.target else "sub"
    if call.result.dtype == np.bool_ and factor == 1:
        name = "or"
    if ".rsub." in call.target:
        if factor != 1:
            importing.unsupported("expected rsub without alpha")
        x, y = y, x
    if factor != 1:
        return pointwise(importing, call, f"{name}_scaled", x, y, factor)
    return pointwise(importing, call, name, x, y)


@imports("aten.gelu.default")
def gelu(importing: Importing, call: Call) -> View:
    approximate = call.argument(1, "approximate", "none")
    name = "gelu_tanh" if approximate == "tanh" else "gelu"
    return pointwise(importing, call, name, call.args[0])


@imports("aten.relu6.default", "aten.hardtanh.default", "aten.clamp.default")
@imports("aten.clamp.Tensor", "aten.clip.default", "aten.clamp_min.default")
@imports("aten.clamp_max.default", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def clamp(importing: Importing, call: Call) -> View:
    x = call.tensor()
    low, high = call.argument(1, "min"), call.argument(2, "max")
    match call.target.split(".")[1]:
        case "relu6":
            low, high = 0, 6
        case "hardtanh":
            low, high = call.argument(1, "min_val", -1), call.argument(2, "max_val", 1)
        case "clamp_max":
            low, high = None, call.argument(1, "max")
    if high is None:
        return pointwise(importing, call, "maximum", x, low)
    if low is None:
        return pointwise(importing, call, "minimum", x, high)
    return pointwise(importing, call, "clamp", x, low, high)


@imports("aten.leaky_relu.default")
def leaky_relu(importing: Importing, call: Call) -> View:
    slope = call.argument(1, "negative_slope", 0.01)
    return pointwise(importing, call, "leaky_relu", call.args[0], slope)


@imports("aten.elu.default")
def elu(importing: Importing, call: Call) -> View:
    """``scale * alpha * (exp(x) - 1)`` for negative numbers, ``scale * x`` for others."""
    scale, alpha = call.argument(2, "scale", 1), call.argument(1, "alpha", 1)
    if call.argument(3, "input_scale", 1) != 1:
        importing.unsupported("expected ELU without an input scale")
    if scale == 1:
        return pointwise(importing, call, "elu", call.args[0], alpha)
    single = np.dtype(np.float32)
    steps = (
        Pointwise((0, Number(alpha)), single, "elu"),
        Pointwise((1, Number(scale)), call.result.dtype, "mul"),
    )
    return importing.chain(call, call.args[:1], steps)


@imports("aten.softplus.default")
def softplus(importing: Importing, call: Call) -> View:
    beta, threshold = call.argument(1, "beta", 1), call.argument(2, "threshold", 20)
    return pointwise(importing, call, "softplus", call.args[0], beta, threshold)


@imports("aten._to_copy.default", "aten.type_as.default")
def cast(importing: Importing, call: Call) -> View:
    """Round numbers to another element type. An equal type needs no kernel."""
    x = call.tensor()
    if x.dtype == call.result.dtype:
        return x
    if _is_float(x.dtype) and not _is_float(call.result.dtype) and call.result.dtype != np.bool_:
        importing.unsupported(
            f"it converts data to {call.result.dtype}: expected a floating-point type or booleans"
        )
    if call.result.dtype == np.bool_:
        return pointwise(importing, call, "ne", x, 0)
    return pointwise(importing, call, "copy", x)


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind not in "biu"
