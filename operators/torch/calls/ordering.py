"""Calls along one dimension that depend on the order of numbers: running sums, sorts, extremes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.ordering import (
    ExtremePlace,
    OnAxes,
    Picked,
    RankedPlace,
    Running,
    RunningPlace,
    Runs,
    SortedPlaces,
)
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.calls.views import exchanged
from operators.torch.importing import Importing
from operators.torch.registry import imports

_RUNS: Final[dict[str, Runs]] = {
    "cumsum": "sum",
    "cumprod": "prod",
    "logcumsumexp": "logsumexp",
    "cummax": "max",
    "cummin": "min",
}


@imports("aten.cumsum.default", "aten.cumprod.default", "aten.logcumsumexp.default")
def running(importing: Importing, call: Call) -> View:
    return _running(importing, call)


@imports("aten.cummax.default", "aten.cummin.default")
def running_extreme(importing: Importing, call: Call) -> tuple[View, View]:
    place = RunningPlace("max" in call.target)
    return _running(importing, call), _along(importing, call, place, call.results[1].dtype)


def _running(importing: Importing, call: Call) -> View:
    function = Running(_RUNS[call.target.split(".")[1]])
    return _along(importing, call, function)


def _along(
    importing: Importing, call: Call, function: OnAxes, dtype: np.dtype | None = None
) -> View:
    """Apply a function that keeps the length of a dimension. A single number has one place."""
    x, dim = call.tensor(), call.dimension(1)
    shape = x.shape
    x = x.reshaped(shape or (1,))
    dtype = dtype or call.result.dtype
    return importing.along(call, (x,), (dim,), function, (x.shape[dim],), dtype).reshaped(shape)


def sorted_along(importing: Importing, call: Call) -> tuple[View, View]:
    descending = bool(call.argument(2, "descending", False))
    return _picked(importing, call, call.tensor(), call.dimension(1), SortedPlaces(descending))


def _picked(
    importing: Importing, call: Call, x: View, dim: int, function: OnAxes, count: int | None = None
) -> tuple[View, View]:
    """Return the numbers at the places that ``function`` finds along ``dim``, and the places.

    It finds ``count`` places, or as many as there are numbers if None.
    """
    x = importing.once(call, x.reshaped(x.shape or (1,)))
    size = (x.shape[dim] if count is None else count,)
    at = importing.along(call, (x,), (dim,), function, size, np.dtype(np.int64))
    picked = importing.along(call, (x, at), (dim,), Picked(), size, x.dtype)
    return picked.reshaped(call.result.shape), at.reshaped(call.result.shape)


@imports("aten.argsort.default", "aten.argsort.stable")
def argsort(importing: Importing, call: Call) -> View:
    descending = bool(call.argument(2, "descending", False))
    return _along(importing, call, SortedPlaces(descending))


@imports("aten.median.dim", "aten.kthvalue.default")
def of_rank(importing: Importing, call: Call) -> tuple[View, View]:
    """Return the number of a rank in the sorted order. A median is the lower of the middle two."""
    x = call.tensor()
    if call.target == "aten.median.dim":
        return _median(importing, call, x, call.dimension(1))
    function = RankedPlace(int(call.args[1]) - 1)
    return _picked(importing, call, x, call.dimension(2), function, 1)


@imports("aten.median.default")
def median(importing: Importing, call: Call) -> View:
    x = call.tensor()
    return _median(importing, call, x.reshaped((math.prod(x.shape),)), 0)[0]


def _median(importing: Importing, call: Call, x: View, dim: int) -> tuple[View, View]:
    count = x.shape[dim] if x.shape else 1
    return _picked(importing, call, x, dim, RankedPlace((count - 1) // 2, finds_nan=True), 1)


@imports("aten.argmax.default", "aten.argmin.default")
def extreme_place(importing: Importing, call: Call) -> View:
    x, dim = call.tensor(), call.argument(1, "dim")
    if dim is None or not x.shape:
        x, dim = x.reshaped((math.prod(x.shape),)), 0
    function = ExtremePlace("max" in call.target)
    place = importing.along(call, (x,), (dim % len(x.shape),), function, (1,), call.result.dtype)
    return place.reshaped(call.result.shape)


@imports("aten.max.dim", "aten.min.dim")
def extreme(importing: Importing, call: Call) -> tuple[View, View]:
    function = ExtremePlace("max" in call.target)
    return _picked(importing, call, call.tensor(), call.dimension(1), function, 1)


@imports("aten.topk.default")
def topk(importing: Importing, call: Call) -> tuple[View, View]:
    x = call.tensor()
    k, dim = int(call.args[1]), call.dimension(2)
    values, places = call.results
    shape = x.shape
    x = x.reshaped(shape or (1,))
    order = exchanged(len(x.shape), dim, -1)
    turned = importing.once(call, x).permuted(order)
    find = TopPlaces((0,), places.dtype, k, bool(call.argument(3, "largest", True)))
    at = importing.chain(call, (turned,), (find,), rows_of=turned.shape)
    take = TakenAlong((0, 1), values.dtype)
    largest = importing.chain(call, (turned, at), (take,), rows_of=turned.shape)
    if not shape:
        return largest.reshaped(()), at.reshaped(())
    return largest.permuted(order), at.permuted(order)
