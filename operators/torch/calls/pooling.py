"""Pooling and interpolation: extremes and weighted sums, one dimension of space after the other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from operators.functions.ordering import Extremes, Tap, Weighed, WindowPlaces
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.calls.products import each_of
from operators.torch.importing import Importing
from operators.torch.registry import imports

Windows = tuple[tuple[tuple[int, ...], ...], ...]
Made = Callable[[int], tuple[Any, ...]]
"""Takes a dimension of space. Returns the arguments, except the image, of a call that pools only
this dimension."""


@imports("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(importing: Importing, call: Call) -> tuple[View, View]:
    rank = _rank(call)
    kernel = each_of(call.args[1], rank)
    stride = each_of(call.argument(2, "stride", None) or kernel, rank)
    padding, dilation = (
        each_of(call.argument(place, name, default), rank)
        for place, name, default in ((3, "padding", 0), (4, "dilation", 1))
    )
    x, spec = call.tensor(), call.result
    windows = []
    for dim in range(rank):
        have, count = x.shape[dim - rank], spec.shape[dim - rank]
        starts = (each * stride[dim] - padding[dim] for each in range(count))
        reaches = ([at + step * dilation[dim] for step in range(kernel[dim])] for at in starts)
        known = (tuple(at for at in each if at >= 0) for each in reaches)
        windows.append(tuple(tuple(at for at in each if at < have) or each[:1] for each in known))
    return _largest(importing, call, tuple(windows))


@imports("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(importing: Importing, call: Call) -> tuple[View, View]:
    rank = _rank(call)
    windows = []
    for dim in range(rank):
        have, count = call.tensor().shape[dim - rank], call.result.shape[dim - rank]
        ends = [(at * have // count, -(-(at + 1) * have // count)) for at in range(count)]
        windows.append(tuple(tuple(range(*each)) for each in ends))
    return _largest(importing, call, tuple(windows))


def _largest(importing: Importing, call: Call, windows: Windows) -> tuple[View, View]:
    x, (values, places) = call.tensor(), call.results
    dims = tuple(range(len(x.shape) - len(windows), len(x.shape)))
    sizes = tuple(map(len, windows))
    return (
        importing.along(call, (x,), dims, Extremes(windows), sizes, values.dtype),
        importing.along(call, (x,), dims, WindowPlaces(windows), sizes, places.dtype),
    )


@imports("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def average_pool(importing: Importing, call: Call) -> View:
    rank = _rank(call)
    kernel = each_of(call.args[1], rank)
    stride = each_of(call.argument(2, "stride", None) or kernel, rank)
    padding = each_of(call.argument(3, "padding", 0), rank)
    ceil_mode = call.argument(4, "ceil_mode", False)
    counted = call.argument(5, "count_include_pad", True)
    divisor = call.argument(6, "divisor_override") if rank > 1 else None

    def made(dim: int) -> tuple[Any, ...]:
        sizes = (
            _only(rank, dim, each[dim], other)
            for each, other in zip((kernel, stride, padding), (1, 1, 0), strict=True)
        )
        arguments = (*sizes, ceil_mode, counted)
        return arguments if divisor is None else (*arguments, divisor if dim == 0 else 1)

    return _weighed(importing, call, rank, made)


@imports("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
@imports("aten.adaptive_avg_pool1d.default")
def adaptive_average_pool(importing: Importing, call: Call) -> View:
    rank = _rank(call)
    counts = call.result.shape[-rank:]
    return _weighed(importing, call, rank, lambda dim: (_only(rank, dim, counts[dim], 1),))


@imports(*(f"aten.upsample_nearest{rank}d.vec" for rank in (1, 2, 3)))
@imports(*(f"aten._upsample_nearest_exact{rank}d.vec" for rank in (1, 2, 3)))
def nearest(importing: Importing, call: Call) -> View:
    return _resized(importing, call, (), 2)


@imports("aten.upsample_linear1d.vec", "aten.upsample_bilinear2d.vec")
@imports("aten.upsample_trilinear3d.vec", "aten.upsample_bicubic2d.vec")
def interpolated(importing: Importing, call: Call) -> View:
    return _resized(importing, call, (call.args[2],), 3)


def _resized(importing: Importing, call: Call, corners: tuple[bool, ...], place: int) -> View:
    rank = _rank(call)
    counts, scales = call.result.shape[-rank:], call.argument(place, "scale_factors")

    def made(dim: int) -> tuple[Any, ...]:
        if scales is None:
            return (_only(rank, dim, counts[dim], 1), *corners, None)
        return (None, *corners, _only(rank, dim, scales[dim], 1.0))

    return _weighed(importing, call, rank, made)


def _weighed(importing: Importing, call: Call, rank: int, made: Made) -> View:
    """Plan a call as one weighted sum per dimension. Calls on unit images give the weights."""
    x = call.tensor()
    first = len(x.shape) - rank
    function = functools.reduce(getattr, call.target.split("."), torch.ops)
    assert callable(function)
    taps = []
    for dim in range(rank):
        have = x.shape[first + dim]
        units = torch.eye(have, dtype=torch.float64).reshape(1, have, *_only(rank, dim, have, 1))
        weights = function(units, *made(dim)).reshape(have, -1).T
        # A weight of 0 counts as well, since 0 times NaN is NaN.
        reached = function(units.where(units == 0, math.nan), *made(dim)).reshape(have, -1).T
        taps.append(tuple(map(_tap, weights, reached.isnan())))
    if all(each.weights == (1.0,) for of_dim in taps for each in of_dim):
        for dim, of_dim in enumerate(taps):
            x = importing.taken(call, x, first + dim, [each.places[0] for each in of_dim])
        return x
    dims = tuple(range(first, len(x.shape)))
    zero = function(torch.full_like(units, -0.0), *made(rank - 1))
    function = Weighed(tuple(taps), from_zero=not bool(zero.signbit().any()))
    return importing.along(call, (x,), dims, function, tuple(map(len, taps)), call.result.dtype)


def _tap(weights: torch.Tensor, reached: torch.Tensor) -> Tap:
    places = torch.nonzero(reached).flatten()
    return Tap(tuple(places.tolist()), tuple(weights[places].tolist()))


def _rank(call: Call) -> int:
    """Return the number of dimensions of space in a call's name."""
    return int(next(each for each in call.target.split(".")[1] if each in "123"))


def _only(rank: int, dim: int, value: Any, other: Any) -> list[Any]:
    """Return ``value`` for one dimension and ``other`` for the rest."""
    return [value if each == dim else other for each in range(rank)]
