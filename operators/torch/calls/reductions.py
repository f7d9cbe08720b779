"""Sums, means and maxima along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from operators.functions.row_steps import Reduced, Reducing, Variance
from operators.functions.steps import Step
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

_NAMES: dict[str, Reducing] = {
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
    x = call.args[0]
    name = _NAMES[call.target.split(".")[1]]
    dims = call.argument(1, "dim") if call.target.rsplit(".", 1)[1] != "default" or _has_dims(
        call
    ) else None
    return over(importing, call, x, dims, Reduced((0,), call.result.dtype, name))


def _has_dims(call: Call) -> bool:
    return call.target in {"aten.amax.default", "aten.amin.default"}


@imports("aten.var.correction", "aten.var.dim", "aten.std.correction", "aten.std.dim")
@imports("aten.var.default", "aten.std.default")
def variance(importing: Importing, call: Call) -> View:
    """The variance along the dimensions, or its root."""
    x = call.args[0]
    name, overload = call.target.split(".")[1:]
    correction = call.kwargs.get("correction", 1)
    if overload != "correction":
        unbiased = call.argument(2 if overload == "dim" else 1, "unbiased", True)
        correction = int(bool(unbiased))
    dims = None if overload == "default" else call.argument(1, "dim")
    step = Variance(
        (0,), call.result.dtype, 1.0 if correction is None else correction, root=name == "std"
    )
    return over(importing, call, x, dims, step)


def over(
    importing: Importing, call: Call, x: View, dims: int | Sequence[int] | None, step: Step
) -> View:
    """Do a step that leaves one number of each row to rows along ``dims``: all where None."""
    rank = len(x.shape)
    given = [dims] if isinstance(dims, int) else list(dims or range(rank))
    gone = sorted({dim % rank for dim in given}) if rank else []
    kept = [dim for dim in range(rank) if dim not in gone]
    lead = tuple(x.shape[dim] for dim in kept)
    rows = (*lead, math.prod(x.shape[dim] for dim in gone))
    turned = x.permuted((*kept, *gone)).reshaped(rows)
    return importing.chain(call, (turned,), (step,), rows_of=rows).reshaped(call.result.shape)
