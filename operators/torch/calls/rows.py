"""Calls on whole rows: softmax and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from operators.functions.row_steps import LayerNorm, RMSNorm, Softmax
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.softmax.int", "aten._softmax.default")
@imports("aten.log_softmax.int", "aten._log_softmax.default")
def softmax(importing: Importing, call: Call) -> View:
    """The softmax along one dimension, or its logarithm."""
    x, dim = call.tensor(), call.args[1]
    step = Softmax((0,), call.result.dtype, logarithm="log_softmax" in call.target)
    dims = _last(len(x.shape), dim)
    turned = x.permuted(dims)
    rows = turned.shape or (1,)
    result = importing.chain(call, (turned,), (step,), rows_of=rows)
    return result.reshaped(turned.shape).permuted(dims)


def _last(rank: int, dim: int) -> tuple[int, ...]:
    """Return the order that exchanges ``dim`` and the last dimension; it is its own inverse."""
    dims = list(range(rank))
    if dims:
        dims[dim], dims[-1] = dims[-1], dims[dim]
    return tuple(dims)


@imports("aten.rms_norm.default")
def rms_norm(importing: Importing, call: Call) -> View:
    """Rows divided by the root of the mean of their squares."""
    x, normalized = call.tensor(), call.args[1]
    eps = call.argument(3, "eps")
    if eps is None:
        eps = _epsilon(x.dtype)
    step = RMSNorm((0,), call.result.dtype, eps)
    return _normed(importing, call, x, normalized, step, call.argument(2, "weight"))


@imports("aten.layer_norm.default", "aten.native_layer_norm.default")
def layer_norm(importing: Importing, call: Call) -> View | tuple[View | None, ...]:
    """Rows with mean 0 and variance 1."""
    x, normalized = call.tensor(), call.args[1]
    weight, bias = call.argument(2, "weight"), call.argument(3, "bias")
    eps = call.argument(4, "eps", 1e-5)
    step = LayerNorm((0,), call.result.dtype, eps, has_weight=weight is not None)
    result = _normed(importing, call, x, normalized, step, weight, bias)
    return (result, None, None) if call.many else result


def _normed(
    importing: Importing,
    call: Call,
    x: View,
    normalized: list[int],
    step: LayerNorm | RMSNorm,
    *others: Any,
) -> View:
    """Norm the last dimensions, seen as one."""
    lead = x.shape[: len(x.shape) - len(normalized)]
    size = math.prod(normalized)
    rows = (*lead, size)
    operands = [x.reshaped(rows)]
    operands += [each.reshaped((size,)) for each in others if each is not None]
    reading = type(step)(
        **{**vars(step), "reads": tuple(range(len(operands)))},
    )
    return importing.chain(call, operands, (reading,), rows_of=rows).reshaped(x.shape)


def _epsilon(dtype: np.dtype) -> float:
    """Return what PyTorch adds where no eps is given: in 32 bits for smaller types, too."""
    return float(np.finfo(np.float32).eps)
