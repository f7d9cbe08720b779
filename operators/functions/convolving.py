"""Convolutions of a whole image with the weights of some of its channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from fabric import Dim
from operators.functions.base import Array
from operators.functions.steps import Shape, Step

__all__ = ["Convolved", "Windows"]


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution; each attribute has a number for each dimension of space.

    Attributes:
        size: places of a window.
        stride: from one window to the next.
        before: zeros in front.
        after: zeros behind; fewer than none leave some of the image out.
        dilation: from one place of a window to the next.
        spread: from one number of the image to the next: between them are zeros.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    spread: tuple[int, ...]

    def count(self, space: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along each dimension of space."""
        return tuple(
            (spread * (have - 1) + 1 + before + after - step * (size - 1) - 1) // stride + 1
            for have, size, stride, before, after, step, spread in zip(
                space,
                self.size,
                self.stride,
                self.before,
                self.after,
                self.dilation,
                self.spread,
                strict=True,
            )
        )

    def of(self, array: Array) -> Array:
        """Return the windows of [*lead, *space]: [*lead, *windows, *places]."""
        rank = len(self.size)
        lead, space = array.shape[: array.ndim - rank], array.shape[array.ndim - rank :]
        if set(self.spread) != {1}:
            wide = [step * (size - 1) + 1 for size, step in zip(space, self.spread, strict=True)]
            spread = np.zeros((*lead, *wide), array.dtype)
            places = [slice(None, None, step) for step in self.spread]
            spread[(*(slice(None) for _ in lead), *places)] = array
            array = spread
        ends = list(zip(self.before, self.after, strict=True))
        kept = [slice(max(0, -first), min(0, last) or None) for first, last in ends]
        array = array[(*(slice(None) for _ in lead), *kept)]
        added = [(max(0, first), max(0, last)) for first, last in ends]
        padded = np.pad(array, [*([(0, 0)] * len(lead)), *added])
        reach = [step * (size - 1) + 1 for size, step in zip(self.size, self.dilation, strict=True)]
        dims = tuple(range(len(lead), len(lead) + rank))
        found = np.lib.stride_tricks.sliding_window_view(padded, reach, dims)
        steps = [slice(None, None, step) for step in (*self.stride, *self.dilation)]
        return found[(*(slice(None) for _ in lead), *steps)]


@dataclass(frozen=True)
class Convolved(Step):
    """Windows of an image times weights, with a bias where there is one, rounded once.

    Two operations for each number of the window of each result, and one more for a bias. In a
    transposed convolution, two for each pair of a number of the image and a weight that it meets.

    Shapes:
        image: groups * channels * all but the last dimension of space x the last one;
        weights: groups * outputs x channels * places; bias: groups * outputs x 1; result: groups *
        outputs * all but the last dimension of the windows x the last one. Channels and outputs are
        those of a group.

    Attributes:
        windows: where image and weights meet.
        image: groups, channels, and sizes of space.
        outputs: of a group.
    """

    windows: Windows
    image: tuple[int, ...]
    outputs: int

    @override
    def shape(self, *shapes: Shape) -> Shape:
        groups, _, *space = self.image
        count = self.windows.count(space)
        return groups * self.outputs * math.prod(count[:-1]), count[-1]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        groups, channels, *space = self.image
        count = math.prod(self.windows.count(space))
        met = count if set(self.windows.spread) == {1} else math.prod(space)
        products = 2 * groups * self.outputs * channels * math.prod(self.windows.size) * met
        return products + (len(self.reads) > 2) * groups * self.outputs * count

    @override
    def compute(self, *values: Array) -> Array:
        image, weights, *bias = values
        groups = self.image[0]
        rank = len(self.windows.size)
        seen = self.windows.of(image.reshape(self.image))
        count = seen.shape[2 : 2 + rank]
        # Of each group windows by numbers of a window, times those by outputs.
        order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
        rows = seen.transpose(order).reshape(groups, math.prod(count), -1)
        held = weights.reshape(groups, self.outputs, -1).transpose(0, 2, 1)
        found: Array = (rows @ held).transpose(0, 2, 1).reshape(groups * self.outputs, -1)
        if bias:
            found = found + bias[0]
        return found.reshape(-1, count[-1])
