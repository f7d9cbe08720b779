"""Convolution, pooling and interpolation: calls on the dimensions of space.

In a convolution an image stays on chip, and the weights of its output channels pass it. Extremes
and weighed sums are taken along one dimension of space after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fabric import Layout
from operators.functions.convolving import Convolved, Windows
from operators.functions.ordering import Extremes, Tap, Weighed, WindowPlaces
from operators.kernels.kernel import Operand
from operators.kernels.row_local import row_local
from operators.kernels.schedule import fit
from operators.kernels.tensors import Computed, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = []


@imports("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def convolution(importing: Importing, call: Call) -> View:
    """A convolution with zeros on both sides."""
    rank = len(call.args[1].shape) - 2
    padding = _each(call.argument(4, "padding", 0), rank)
    return _convolution(importing, call, padding, padding)


@imports("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def convolution_of_equal_size(importing: Importing, call: Call) -> View:
    """A convolution without zeros, or with so many that there are as many windows as places."""
    sizes = call.args[1].shape[2:]
    missing = (0,) * len(sizes)
    if call.argument(4, "padding", "valid") == "same":
        dilation = _each(call.argument(5, "dilation", 1), len(sizes))
        missing = tuple(step * (size - 1) for size, step in zip(sizes, dilation, strict=True))
    before = tuple(each // 2 for each in missing)
    after = tuple(each - each // 2 for each in missing)
    return _convolution(importing, call, before, after)


@imports("aten.convolution.default")
def any_convolution(importing: Importing, call: Call) -> View:
    """A convolution by what all kinds are made of; it may be transposed."""
    rank = len(call.args[1].shape) - 2
    padding = _each(call.args[4], rank)
    if call.args[6]:
        arguments = (call.args[3], call.args[4], call.args[7], call.args[8], call.args[5])
        return _transposed(importing, call, *arguments)
    return _convolution(importing, call, padding, padding, groups=8)


@imports(
    "aten.conv_transpose1d.default",
    "aten.conv_transpose2d.input",
    "aten.conv_transpose3d.input",
)
def transposed(importing: Importing, call: Call) -> View:
    """What a convolution's gradient is: every number of the image spreads a window of weights."""
    defaults = {"stride": 1, "padding": 0, "output_padding": 0, "groups": 1, "dilation": 1}
    arguments = (call.argument(3 + place, *each) for place, each in enumerate(defaults.items()))
    return _transposed(importing, call, *arguments)


def _convolution(
    importing: Importing,
    call: Call,
    before: tuple[int, ...],
    after: tuple[int, ...],
    groups: int = 6,
) -> View:
    """Plan a convolution; ``groups`` is the place of that argument."""
    weight = call.args[1]
    rank = len(weight.shape) - 2
    stride = _each(call.argument(3, "stride", 1), rank)
    dilation = _each(call.argument(5, "dilation", 1), rank)
    windows = Windows(weight.shape[2:], stride, before, after, dilation, (1,) * rank)
    count = int(call.argument(groups, "groups", 1))
    return _on_batches(importing, call, weight, windows, count)


def _transposed(
    importing: Importing,
    call: Call,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> View:
    """Plan a convolution of the spread image with the weights the other way round."""
    weight = call.args[1]
    channels, outputs, *size = weight.shape
    rank = len(size)
    dilation = _each(dilation, rank)
    reach = [step * (each - 1) for each, step in zip(size, dilation, strict=True)]
    before = [each - added for each, added in zip(reach, _each(padding, rank), strict=True)]
    after = [each + added for each, added in zip(before, _each(output_padding, rank), strict=True)]
    windows = Windows(
        tuple(size), (1,) * rank, tuple(before), tuple(after), dilation, _each(stride, rank)
    )
    per_group = weight.reshaped((groups, channels // groups, outputs, *size))
    turned = per_group.permuted((0, 2, 1, *range(3, 3 + rank)))
    turned = turned.reshaped((groups * outputs, channels // groups, *size))
    for dim, each in enumerate(size):
        turned = importing.taken(call, turned, 2 + dim, range(each)[::-1])
    return _on_batches(importing, call, turned, windows, groups)


def _on_batches(
    importing: Importing, call: Call, weight: View, windows: Windows, groups: int
) -> View:
    x, bias = call.args[0], call.argument(2, "bias")
    if len(x.shape) == len(windows.size) + 1:
        x = x.reshaped((1, *x.shape))
    return convolve(importing, call, x, weight, bias, windows, groups).reshaped(call.result.shape)


def convolve(
    importing: Importing,
    call: Call,
    x: View,
    weight: View,
    bias: View | None,
    windows: Windows,
    groups: int,
) -> View:
    """Plan a convolution: ``[B, O, *windows]``.

    Tiles are the channels of one group of an image, and the weights of some of the outputs; where
    there are several groups, some of these with all of their outputs. Everything is read once.

    Args:
        importing: the model.
        call: what is imported.
        x: ``[B, C, *space]``.
        weight: ``[O, C / groups, *places]``.
        bias: ``[O]``.
        windows: where weights and input meet.
        groups: of channels; each has weights of its own.
    """
    batch, channels, *space = x.shape
    inner, outputs = channels // groups, weight.shape[0] // groups
    count = windows.count(space)
    together = fit(groups, importing.schedule.tile_rows)
    made = outputs if groups > 1 else fit(outputs, importing.schedule.tile_cols)
    passes = outputs // made
    lead = (batch, groups, passes)
    image = x.reshaped((batch, groups, 1, inner, *space)).expanded((*lead, inner, *space))
    held = weight.reshaped((1, groups, passes, made, inner * math.prod(windows.size)))
    held = held.expanded((*lead, *held.shape[3:]))
    operands = [
        Operand(image, Layout.tiled(image.shape, (1, together, 1, inner, *space))),
        Operand(held, Layout.tiled(held.shape, (1, together, 1, *held.shape[3:]))),
    ]
    if bias is not None:
        added = bias.reshaped((1, groups, passes, made, 1)).expanded((*lead, made, 1))
        operands.append(Operand(added, Layout.tiled(added.shape, (1, together, 1, made, 1))))
    name = importing.name_of(call)
    shape = (*lead, made, *count)
    layout = Layout.tiled(shape, (1, together, 1, made, *count))
    result = Computed(name, shape, call.result.dtype, layout)
    reads = tuple(range(len(operands)))
    step = Convolved(reads, call.result.dtype, windows, (together, inner, *space), made)
    (found,) = importing.add(row_local(name, operands, (step,), result))
    return found.reshaped((batch, groups * outputs, *count))


def _each(given: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number for each dimension of space; one stands for all."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    return numbers * rank if len(numbers) == 1 else numbers


Walks = tuple[tuple[tuple[int, ...], ...], ...]
Made = Callable[[int], tuple[Any, ...]]
"""Given a dimension of space, the arguments behind the image of a call on that one alone."""


@imports("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(importing: Importing, call: Call) -> tuple[View, View]:
    """The largest number of each window, and where it is."""
    rank = _rank(call)
    kernel = _each(call.args[1], rank)
    stride = _each(call.argument(2, "stride", None) or kernel, rank)
    padding, dilation = (
        _each(call.argument(place, name, default), rank)
        for place, name, default in ((3, "padding", 0), (4, "dilation", 1))
    )
    x, spec = call.tensor(), call.result
    windows = []
    for dim in range(rank):
        have, count = x.shape[dim - rank], spec.shape[dim - rank]
        starts = (each * stride[dim] - padding[dim] for each in range(count))
        reaches = ([at + step * dilation[dim] for step in range(kernel[dim])] for at in starts)
        windows.append(tuple(tuple(at for at in each if 0 <= at < have) for each in reaches))
    return _largest(importing, call, tuple(windows))


@imports("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(importing: Importing, call: Call) -> tuple[View, View]:
    """The largest number of each of so many windows."""
    rank = _rank(call)
    windows = []
    for dim in range(rank):
        have, count = call.tensor().shape[dim - rank], call.result.shape[dim - rank]
        ends = [(at * have // count, -(-(at + 1) * have // count)) for at in range(count)]
        windows.append(tuple(tuple(range(*each)) for each in ends))
    return _largest(importing, call, tuple(windows))


def _largest(importing: Importing, call: Call, windows: Walks) -> tuple[View, View]:
    x, (values, places) = call.tensor(), call.results
    dims = tuple(range(len(x.shape) - len(windows), len(x.shape)))
    sizes = tuple(map(len, windows))
    return (
        importing.along(call, (x,), dims, Extremes(windows), sizes, values.dtype),
        importing.along(call, (x,), dims, WindowPlaces(windows), sizes, places.dtype),
    )


@imports("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def average_pool(importing: Importing, call: Call) -> View:
    """The mean of each window."""
    rank = _rank(call)
    kernel = _each(call.args[1], rank)
    stride = _each(call.argument(2, "stride", None) or kernel, rank)
    padding = _each(call.argument(3, "padding", 0), rank)
    ceil_mode = call.argument(4, "ceil_mode", False)
    counted = call.argument(5, "count_include_pad", True)
    divisor = call.argument(6, "divisor_override") if rank > 1 else None

    def made(dim: int) -> tuple[Any, ...]:
        sizes = (
            _only(rank, dim, each[dim], other)
            for each, other in zip((kernel, stride, padding), (1, 1, 0), strict=True)
        )
        given = (*sizes, ceil_mode, counted)
        return given if divisor is None else (*given, divisor if dim == 0 else 1)

    return _weighed(importing, call, rank, made)


@imports("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
@imports("aten.adaptive_avg_pool1d.default")
def adaptive_average_pool(importing: Importing, call: Call) -> View:
    """The mean of each of so many windows."""
    rank = _rank(call)
    counts = call.result.shape[-rank:]
    return _weighed(importing, call, rank, lambda dim: (_only(rank, dim, counts[dim], 1),))


@imports(*(f"aten.upsample_nearest{rank}d.vec" for rank in (1, 2, 3)))
@imports(*(f"aten._upsample_nearest_exact{rank}d.vec" for rank in (1, 2, 3)))
def nearest(importing: Importing, call: Call) -> View:
    """Numbers repeated, or left out."""
    return _resized(importing, call, (), 2)


@imports("aten.upsample_linear1d.vec", "aten.upsample_bilinear2d.vec")
@imports("aten.upsample_trilinear3d.vec", "aten.upsample_bicubic2d.vec")
def interpolated(importing: Importing, call: Call) -> View:
    """Numbers between others."""
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
    """Plan a call that is one weighed sum after the other: PyTorch says with which weights."""
    x = call.tensor()
    first = len(x.shape) - rank
    function = functools.reduce(getattr, call.target.split("."), torch.ops)
    assert callable(function)
    taps = []
    for dim in range(rank):
        have = x.shape[first + dim]
        apart = torch.eye(have, dtype=torch.float64)
        given = apart.reshape(1, have, *(have if each == dim else 1 for each in range(rank)))
        weights = function(given, *made(dim)).reshape(have, -1).T
        taps.append(tuple(map(_tap, weights)))
    if all(each.weights == (1.0,) for of_dim in taps for each in of_dim):
        for dim, of_dim in enumerate(taps):
            x = importing.taken(call, x, first + dim, [each.places[0] for each in of_dim])
        return x
    dims = tuple(range(first, len(x.shape)))
    function = Weighed(tuple(taps))
    return importing.along(call, (x,), dims, function, tuple(map(len, taps)), call.result.dtype)


def _tap(weights: torch.Tensor) -> Tap:
    places = torch.nonzero(weights).flatten()
    return Tap(tuple(places.tolist()), tuple(weights[places].tolist()))


def _rank(call: Call) -> int:
    """Return how many dimensions of space a call names itself after."""
    return int(next(each for each in call.target.split(".")[1] if each in "123"))


def _only(rank: int, dim: int, value: Any, other: Any) -> list[Any]:
    """Return ``value`` for one dimension and ``other`` for the rest."""
    return [value if each == dim else other for each in range(rank)]
