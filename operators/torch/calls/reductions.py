"""Sums, means, extremes and variances along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from operators.functions.row_steps import Reduced, Reducing, Variance
from operators.kernels.tensors import View
from operators.torch.call import Call
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
    """One number of all along the dimensions: computed in 32 bits, rounded once."""
    x = call.tensor()
    name, overload = call.target.split(".")[1:]
    of_all = overload == "default" and name not in {"amax", "amin"}
    dims = None if of_all else call.argument(1, "dim")
    return over(importing, call, x, dims, Reduced((0,), call.result.dtype, name=_NAMES[name]))


@imports("aten.var.correction", "aten.var.dim", "aten.std.correction", "aten.std.dim")
@imports("aten.var.default", "aten.std.default")
def variance(importing: Importing, call: Call) -> View:
    """The variance along the dimensions, or its root."""
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
    """Leave one number of all along ``dims``: of all there are where None."""
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
