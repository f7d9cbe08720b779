"""Convolutions as products: windows of the input times the weights of the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.calls.products import product
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["Windows", "convolve"]


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution; each attribute has a number for each dimension of space.

    Attributes:
        size: places of a window.
        stride: from one window to the next.
        before: zeros in front.
        after: zeros behind.
        dilation: from one place of a window to the next.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return the windows of ``[B, C, *space]``: ``[B, *windows, C * places]``."""
        rank = len(self.size)
        padded = np.pad(array, [(0, 0), (0, 0), *zip(self.before, self.after, strict=True)])
        reach = [step * (size - 1) + 1 for size, step in zip(self.size, self.dilation, strict=True)]
        found = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, 2 + rank)))
        steps = [slice(None, None, step) for step in (*self.stride, *self.dilation)]
        found = found[(slice(None), slice(None), *steps)]
        found = np.moveaxis(found, 1, 1 + rank)
        return found.reshape(*found.shape[: 1 + rank], -1)

    def count(self, space: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along each dimension of space."""
        sizes = zip(space, self.before, self.after, strict=True)
        rest = (sum(each) for each in sizes)
        steps = zip(rest, self.size, self.dilation, self.stride, strict=True)
        return tuple(
            (have - step * (size - 1) - 1) // stride + 1 for have, size, step, stride in steps
        )


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


def _convolution(
    importing: Importing, call: Call, before: tuple[int, ...], after: tuple[int, ...]
) -> View:
    x, weight = call.args[:2]
    bias = call.argument(2, "bias")
    rank = len(weight.shape) - 2
    stride = _each(call.argument(3, "stride", 1), rank)
    dilation = _each(call.argument(5, "dilation", 1), rank)
    windows = Windows(weight.shape[2:], stride, before, after, dilation)
    if len(x.shape) == rank + 1:
        x = x.reshaped((1, *x.shape))
    found = convolve(importing, call, x, weight, bias, windows, int(call.argument(6, "groups", 1)))
    return found.reshaped(call.result.shape)


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

    Windows of what is in off-chip memory are laid out by the host, as often as they overlap. Those
    of a computed tensor are its slices, beside each other: one for each place of a window.

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
    count, outputs, inner = windows.count(space), weight.shape[0], math.prod(weight.shape[1:])
    places = math.prod(windows.size)
    if isinstance(x.source, Stored):
        stored = x.stored()
        rows = View.of(stored.viewed(stored.name, (batch, *count, channels * places), windows.of))
    elif places == 1 and set(windows.stride) == {1} and not any(windows.before + windows.after):
        rows = x.permuted((0, *range(2, len(x.shape)), 1))
    elif len(space) == 1 and windows.stride == (1,):
        rows, weight = _slices(importing, call, x, windows, count[0]), weight.permuted((0, 2, 1))
        if groups > 1:
            rows = rows.reshaped((batch, *count, places, groups, channels // groups))
            rows = rows.permuted((0, 1, 3, 2, 4))
    else:
        importing.unsupported(
            f"{x.source.name} is computed, has a space of rank {len(space)} and a stride of "
            f"{list(windows.stride)}: expected one dimension and a stride of 1, or a tensor that "
            "is in off-chip memory when the program starts"
        )
    if groups > 1:
        # [groups, windows of all batches, inner] @ [groups, inner, outputs of a group]
        rows = rows.reshaped((batch * math.prod(count), groups, inner)).permuted((1, 0, 2))
        per_group = weight.reshaped((groups, outputs // groups, inner)).permuted((0, 2, 1))
        added = None if bias is None else bias.reshaped((groups, 1, outputs // groups))
        found = product(importing, call, rows, per_group, added).permuted((1, 0, 2))
    else:
        rows = rows.reshaped((batch * math.prod(count), inner))
        found = product(
            importing, call, rows, weight.reshaped((outputs, inner)).permuted((1, 0)), bias
        )
    found = found.reshaped((batch, *count, outputs))
    return found.permuted((0, len(space) + 1, *range(1, len(space) + 1)))


def _slices(importing: Importing, call: Call, x: View, windows: Windows, count: int) -> View:
    """Return ``[B, windows, places * C]`` of a computed ``[B, C, space]``."""
    rows = x.permuted((0, 2, 1))
    zeros = [_zeros(rows, size) for size in (windows.before[0], windows.after[0])]
    parts = [each for each in (zeros[0], rows, zeros[1]) if each is not None]
    padded = importing.joined(call, parts, 1)
    step = windows.dilation[0]
    slices = [padded.sliced(1, step * place, count) for place in range(windows.size[0])]
    return importing.joined(call, slices, 2)


def _zeros(like: View, count: int) -> View | None:
    """Return ``count`` rows of zeros for each batch of ``[B, rows, C]``."""
    if not count:
        return None
    shape = (like.shape[0], count, like.shape[2])
    return View.of(Stored.of("zeros", shape, like.dtype, lambda: np.zeros(shape, like.dtype)))


def _each(given: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number for each dimension of space; one stands for all."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    return numbers * rank if len(numbers) == 1 else numbers
