"""Calls along one dimension whose result depends on order: running sums, sorts, extremes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.ordering import ExtremePlace, OnAxes, Picked, Running, Runs, SortedPlaces
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["sorted_along"]

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
    return _along(importing, call, x, dim, Running(_RUNS[call.target.split(".")[1]]))


def _along(importing: Importing, call: Call, x: View, dim: int, function: OnAxes) -> View:
    """Apply a function that gives as many numbers as it takes, also to a number alone."""
    shape = x.shape
    x = x.reshaped(shape or (1,))
    dim %= len(x.shape)
    found = importing.along(call, (x,), (dim,), function, (x.shape[dim],), call.result.dtype)
    return found.reshaped(shape)


def sorted_along(importing: Importing, call: Call) -> tuple[View, View]:
    """Numbers in ascending or descending order, and which one each was."""
    x, dim = call.tensor(), int(call.argument(1, "dim", -1))
    descending = bool(call.argument(2, "descending", False))
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
    x, dim = call.tensor(), int(call.argument(1, "dim", -1))
    descending = bool(call.argument(2, "descending", False))
    return _along(importing, call, x, dim, SortedPlaces(descending))


@imports("aten.median.dim", "aten.kthvalue.default")
def of_rank(importing: Importing, call: Call) -> tuple[View, View]:
    """The number that stands at a place of the sorted ones: for a median the lower middle."""
    x = call.tensor()
    x = x.reshaped(x.shape or (1,))
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
