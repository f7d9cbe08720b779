"""Calls along dimensions: sums and means, softmax and norms, running sums, sorts and extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.ordering import ExtremePlace, Picked, Running, Runs, SortedPlaces
from operators.functions.row_steps import LayerNorm, Reduced, Reducing, RMSNorm, Softmax, Variance
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["sorted_along"]

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


_RUNS: Final[dict[str, Runs]] = {
    "cumsum": "sum",
    "cumprod": "prod",
    "cummax": "max",
    "cummin": "min",
}


@imports("aten.cumsum.default", "aten.cumprod.default")
def running(importing: Importing, call: Call) -> View:
    """The sum, or the product, of a number and all in front of it."""
    x = call.tensor()
    return _running(importing, call, x, int(call.args[1]))


@imports("aten.cummax.default", "aten.cummin.default")
def running_extreme(importing: Importing, call: Call) -> tuple[View, None]:
    """The extreme of a number and all in front of it; where it is nobody can read."""
    return _running(importing, call, call.tensor(), int(call.args[1])), None


def _running(importing: Importing, call: Call, x: View, dim: int) -> View:
    shape = x.shape
    x = x.reshaped(shape or (1,))
    dim %= len(x.shape)
    function = Running(_RUNS[call.target.split(".")[1]])
    found = importing.along(call, (x,), (dim,), function, (x.shape[dim],), call.result.dtype)
    return found.reshaped(shape)


def sorted_along(importing: Importing, call: Call) -> tuple[View, View]:
    """Numbers in ascending or descending order, and which one each was."""
    x = call.tensor()
    first = 2 if call.target == "aten.sort.stable" else 1
    if call.target == "aten.sort.stable" and (len(call.args) > 1):
        importing.unsupported("expected sort with its arguments by name")
    dim = int(call.argument(first, "dim", -1))
    descending = bool(call.argument(first + 1, "descending", False))
    return _sorted(importing, call, x, dim, descending=descending)


def _sorted(
    importing: Importing, call: Call, x: View, dim: int, *, descending: bool
) -> tuple[View, View]:
    shape = x.shape
    x = importing.once(call, x.reshaped(shape or (1,)))
    dim %= len(x.shape)
    values, places = call.results
    size = (x.shape[dim],)
    at = importing.along(call, (x,), (dim,), SortedPlaces(descending), size, places.dtype)
    found = importing.along(call, (x, at), (dim,), Picked(), size, values.dtype)
    return found.reshaped(shape), at.reshaped(shape)


@imports("aten.argsort.default", "aten.argsort.stable")
def argsort(importing: Importing, call: Call) -> View:
    """The order that sorts numbers."""
    x = call.tensor()
    dim = int(
        call.kwargs.get("dim", -1) if "stable" in call.target else call.argument(1, "dim", -1)
    )
    place = 9 if "stable" in call.target else 2
    descending = bool(call.argument(place, "descending", False))
    function, size = SortedPlaces(descending), (x.shape[dim],)
    return importing.along(call, (x,), (dim % len(x.shape),), function, size, call.result.dtype)


@imports("aten.median.dim", "aten.kthvalue.default")
def of_rank(importing: Importing, call: Call) -> tuple[View, View]:
    """The number that stands at a place of the sorted ones: for a median the lower middle."""
    x = call.tensor()
    if call.target == "aten.median.dim":
        dim = int(call.args[1])
        number = (x.shape[dim] - 1) // 2
    else:
        number, dim = int(call.args[1]) - 1, int(call.argument(2, "dim", -1))
    dim %= len(x.shape)
    sorted_ = _sorted(importing, call, x, dim, descending=False)
    found = (importing.part(call, each, dim, number, 1) for each in sorted_)
    values, at = (each.reshaped(call.result.shape) for each in found)
    return values, at


@imports("aten.argmax.default", "aten.argmin.default")
def extreme_place(importing: Importing, call: Call) -> View:
    """Where the largest or the smallest number is, of equal ones the first."""
    x, dim = call.tensor(), call.argument(1, "dim")
    if dim is None or not x.shape:
        x, dim = x.reshaped((math.prod(x.shape),)), 0
    return _place(importing, call, x, dim, call.result.shape, call.result.dtype)


@imports("aten.max.dim", "aten.min.dim")
def extreme(importing: Importing, call: Call) -> tuple[View, View]:
    """The largest or the smallest number along a dimension, and where the first such is."""
    x, dim = call.tensor(), int(call.args[1])
    values, places = call.results
    x = importing.once(call, x.reshaped(x.shape or (1,)))
    dim %= len(x.shape)
    single = tuple(1 if each == dim else size for each, size in enumerate(x.shape))
    at = _place(importing, call, x, dim, single, places.dtype)
    found = importing.along(call, (x, at), (dim,), Picked(), (1,), values.dtype)
    return found.reshaped(values.shape), at.reshaped(places.shape)


def _place(
    importing: Importing, call: Call, x: View, dim: int, shape: tuple[int, ...], dtype: np.dtype
) -> View:
    function = ExtremePlace("max" in call.target)
    found = importing.along(call, (x,), (dim % len(x.shape),), function, (1,), dtype)
    return found.reshaped(shape)


@imports("aten.topk.default")
def topk(importing: Importing, call: Call) -> tuple[View, View]:
    """The largest numbers along a dimension, and their places."""
    x = call.tensor()
    k, dim = int(call.args[1]), int(call.argument(2, "dim", -1))
    values, places = call.results
    shape = x.shape
    x = x.reshaped(shape or (1,))
    order = list(range(len(x.shape)))
    order[dim], order[-1] = order[-1], order[dim]
    turned = importing.once(call, x).permuted(order)
    find = TopPlaces((0,), places.dtype, k, bool(call.argument(3, "largest", True)))
    at = importing.chain(call, (turned,), (find,), rows_of=turned.shape)
    take = TakenAlong((0, 1), values.dtype)
    found = importing.chain(call, (turned, at), (take,), rows_of=turned.shape)
    if not shape:
        return found.reshaped(()), at.reshaped(())
    return found.permuted(order), at.permuted(order)
