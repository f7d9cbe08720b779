"""Calls along dimensions or on whole rows: sums, means, extremes, variances, softmax and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from operators.functions.row_functions import (
    LayerNorm,
    Reduced,
    Reducing,
    RMSNorm,
    Softmax,
    Variance,
)
from operators.functions.steps import Number, Pointwise, Step
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.calls.views import exchanged
from operators.torch.importing import Importing
from operators.torch.registry import imports

_NAMES: Final[dict[str, Reducing]] = {
    "all": "all",
    "amax": "amax",
    "amin": "amin",
    "any": "any",
    "max": "amax",
    "mean": "mean",
    "min": "amin",
    "prod": "prod",
    "sum": "sum",
}


@imports("aten.amax.default", "aten.amin.default", "aten.max.default", "aten.min.default")
@imports("aten.mean.default", "aten.mean.dim", "aten.sum.default", "aten.sum.dim_IntList")
@imports("aten.prod.default", "aten.prod.dim_int")
@imports("aten.all.default", "aten.all.dim", "aten.any.default", "aten.any.dim")
def reduced(importing: Importing, call: Call) -> View:
    """Reduce all numbers along dimensions to one, computed in 32 bits and rounded once."""
    x = call.tensor()
    name, overload = call.target.split(".")[1:]
    of_all = overload == "default" and name not in {"amax", "amin"}
    dims = None if of_all else call.argument(1, "dim")
    return over(importing, call, x, dims, Reduced((0,), call.result.dtype, name=_NAMES[name]))


@imports("aten.var.correction", "aten.var.dim", "aten.std.correction", "aten.std.dim")
@imports("aten.var.default", "aten.std.default")
def variance(importing: Importing, call: Call) -> View:
    x = call.tensor()
    name, overload = call.target.split(".")[1:]
    correction = call.kwargs.get("correction", 1)
    if overload != "correction":
        correction = int(bool(call.argument(2 if overload == "dim" else 1, "unbiased", True)))
    dims = None if overload == "default" else call.argument(1, "dim")
    correction = 1.0 if correction is None else float(correction)
    step = Variance((0,), call.result.dtype, correction=correction, root=name == "std")
    return over(importing, call, x, dims, step)


def over(
    importing: Importing,
    call: Call,
    x: View,
    dims: int | Sequence[int] | None,
    step: Reduced | Variance,
) -> View:
    """Reduce all numbers along ``dims`` to one, or along all dimensions if None."""
    rank = len(x.shape)
    given = [dims] if isinstance(dims, int) else list(dims or range(rank))
    gone = tuple(sorted({dim % rank for dim in given})) if rank else ()
    left = rank - len(gone)
    if gone == tuple(range(left, rank)):
        rows = (*x.shape[:left], math.prod(x.shape[left:]))
        result = importing.chain(call, (x.reshaped(rows),), (step,), rows_of=rows)
    else:
        result = importing.reduced(call, x, gone, step)
    return result.reshaped(call.result.shape)


@imports("aten.softmax.int", "aten._softmax.default")
@imports("aten.log_softmax.int", "aten._log_softmax.default")
def softmax(importing: Importing, call: Call) -> View:
    x, dim = call.tensor(), call.dimension(1)
    step = Softmax((0,), call.result.dtype, logarithm="log_softmax" in call.target)
    dims = exchanged(len(x.shape), dim, -1)
    turned = x.permuted(dims)
    rows = turned.shape or (1,)
    result = importing.chain(call, (turned,), (step,), rows_of=rows)
    return result.reshaped(turned.shape).permuted(dims)


@imports("aten.rms_norm.default")
def rms_norm(importing: Importing, call: Call) -> View:
    x, normalized = call.tensor(), call.args[1]
    eps = call.argument(3, "eps")
    if eps is None:  # PyTorch uses this number for 16-bit types, too
        eps = float(np.finfo(np.float32).eps)
    step = RMSNorm((0,), call.result.dtype, eps)
    return _normed(importing, call, x, normalized, step, call.argument(2, "weight"))


@imports("aten.layer_norm.default", "aten.native_layer_norm.default")
def layer_norm(importing: Importing, call: Call) -> View | tuple[View, ...]:
    x, normalized = call.tensor(), call.args[1]
    weight, bias = call.argument(2, "weight"), call.argument(3, "bias")
    eps = call.argument(4, "eps", 1e-5)
    step = LayerNorm((0,), call.result.dtype, eps, has_weight=weight is not None)
    result = _normed(importing, call, x, normalized, step, weight, bias)
    if not call.many:
        return result
    lead = x.shape[: len(x.shape) - len(normalized)]
    rows = (*lead, math.prod(normalized))
    number, dtype = np.dtype(np.float32), call.results[1].dtype
    mean: list[Step] = [Reduced((0,), dtype, name="mean")]
    deviation: list[Step] = [
        Variance((0,), number, correction=0.0, root=False),
        Pointwise((1, Number(eps)), number, "add"),
        Pointwise((2,), dtype, "rsqrt"),
    ]
    moments = (
        importing.chain(call, (x.reshaped(rows),), steps, rows_of=rows)
        for steps in (mean, deviation)
    )
    shape = call.results[1].shape
    return result, *(each.reshaped(shape) for each in moments)


def _normed(
    importing: Importing,
    call: Call,
    x: View,
    normalized: list[int],
    step: LayerNorm | RMSNorm,
    *others: Any,
) -> View:
    lead = x.shape[: len(x.shape) - len(normalized)]
    size = math.prod(normalized)
    rows = (*lead, size)
    operands = [x.reshaped(rows)]
    operands += [each.reshaped((size,)) for each in others if each is not None]
    reading = type(step)(**{**vars(step), "reads": tuple(range(len(operands)))})
    return importing.chain(call, operands, (reading,), rows_of=rows).reshaped(x.shape)
