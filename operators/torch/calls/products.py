"""Matrix products and convolutions. Products with stored weights go row by row, others by batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fabric import Layout
from operators.functions.matmul import Convolved, Windows
from operators.kernels.kernel import Operand
from operators.kernels.product import batched, linear
from operators.kernels.row_local import row_local
from operators.kernels.schedule import fit
from operators.kernels.tensors import Computed, Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.linear.default")
def linear_layer(importing: Importing, call: Call) -> View:
    x, weight = call.args[:2]
    weight = weight.permuted(range(len(weight.shape))[::-1])
    return product(importing, call, x, weight, call.argument(2, "bias")).reshaped(call.result.shape)


@imports("aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default")
def matmul(importing: Importing, call: Call) -> View:
    left, right = call.args
    return product(importing, call, left, right).reshaped(call.result.shape)


@imports("aten.dot.default", "aten.inner.default")
def dot(importing: Importing, call: Call) -> View:
    left, right = call.args
    inner = left.shape[-1]
    rows, cols = math.prod(left.shape[:-1]), math.prod(right.shape[:-1])
    left, right = left.reshaped((rows, inner)), right.reshaped((cols, inner))
    return product(importing, call, left, right.permuted((1, 0))).reshaped(call.result.shape)


@imports("aten.outer.default", "aten.ger.default")
def outer(importing: Importing, call: Call) -> View:
    left, right = call.args
    left, right = left.reshaped((*left.shape, 1)), right.reshaped((1, *right.shape))
    return product(importing, call, left, right)


@imports("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def product_and_sum(importing: Importing, call: Call) -> View:
    added, left, right = call.args[:3]
    beta, alpha = call.kwargs.get("beta", 1), call.kwargs.get("alpha", 1)
    if not beta and alpha == 1:
        return product(importing, call, left, right).reshaped(call.result.shape)
    if not beta:
        importing.unsupported(f"alpha is {alpha} and beta 0: expected alpha to be 1 if beta is 0")
    if call.target == "aten.addmv.default":
        added = added.reshaped((*added.shape, 1))
    return product(importing, call, left, right, added, (float(alpha), float(beta))).reshaped(
        call.result.shape
    )


def product(
    importing: Importing,
    call: Call,
    left: View,
    right: View,
    added: View | None = None,
    factors: tuple[float, float] = (1.0, 1.0),
) -> View:
    """Plan ``factors[0] * (left @ right) + factors[1] * added``: ``[*B, M, N]``.

    ``left`` is ``[*B, M, K]`` or ``[K]``, and ``right`` is ``[*B, K, N]`` or ``[K]``. Batches
    broadcast, and ``added`` broadcasts to the result.
    """
    if len(left.shape) == 1:
        left = left.reshaped((1, *left.shape))
    if len(right.shape) == 1:
        right = right.reshaped((*right.shape, 1))
    name, dtype, schedule = importing.name_of(call), call.result.dtype, importing.schedule
    if len(right.shape) == 2 and isinstance(right.source, Stored):
        weight = right.permuted((1, 0))
        kernel = linear(name, left, weight, added, dtype, schedule, factors)
    else:
        if len(right.shape) > 2:
            batches = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
            left = left.expanded((*batches, *left.shape[-2:]))
            right = right.expanded((*batches, *right.shape[-2:]))
        kernel = batched(name, left, right, added, dtype, schedule, factors)
    (view,) = importing.add(kernel)
    return view


@imports("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def convolution(importing: Importing, call: Call) -> View:
    rank = len(call.args[1].shape) - 2
    padding = each_of(call.argument(4, "padding", 0), rank)
    return _convolution(importing, call, padding, padding)


@imports("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def convolution_of_equal_size(importing: Importing, call: Call) -> View:
    """Plan a convolution without padding, or one whose padding keeps the size."""
    sizes = call.args[1].shape[2:]
    missing = (0,) * len(sizes)
    if call.argument(4, "padding", "valid") == "same":
        dilation = each_of(call.argument(5, "dilation", 1), len(sizes))
        missing = tuple(step * (size - 1) for size, step in zip(sizes, dilation, strict=True))
    before = tuple(each // 2 for each in missing)
    after = tuple(each - each // 2 for each in missing)
    return _convolution(importing, call, before, after)


@imports("aten.convolution.default")
def any_convolution(importing: Importing, call: Call) -> View:
    """Plan a convolution that may be transposed."""
    rank = len(call.args[1].shape) - 2
    padding = each_of(call.args[4], rank)
    if call.args[6]:
        arguments = (call.args[3], call.args[4], call.args[7], call.args[8], call.args[5])
        return _transposed(importing, call, *arguments)
    return _convolution(importing, call, padding, padding, groups=8)


@imports("aten.conv_transpose1d.default", "aten.conv_transpose2d.input")
@imports("aten.conv_transpose3d.input")
def transposed(importing: Importing, call: Call) -> View:
    """Plan a transposed convolution: each number of the image is spread by a window of weights."""
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
    stride = each_of(call.argument(3, "stride", 1), rank)
    dilation = each_of(call.argument(5, "dilation", 1), rank)
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
    """Plan a convolution of the spread image with reversed weights."""
    weight = call.args[1]
    channels, outputs, *size = weight.shape
    rank = len(size)
    dilation = each_of(dilation, rank)
    reach = [step * (each - 1) for each, step in zip(size, dilation, strict=True)]
    before = [each - added for each, added in zip(reach, each_of(padding, rank), strict=True)]
    after = [
        each + added for each, added in zip(before, each_of(output_padding, rank), strict=True)
    ]
    windows = Windows(
        tuple(size), (1,) * rank, tuple(before), tuple(after), dilation, each_of(stride, rank)
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

    ``x`` is ``[B, C, *space]``, ``weight`` ``[O, C / groups, *places]``, and ``bias`` ``[O]``.
    With one group, an image is a tile, and a tile of weights has some outputs. With several groups,
    a tile has some groups with all their channels and outputs.
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
    (convolved,) = importing.add(row_local(name, operands, (step,), result))
    return convolved.reshaped((batch, groups * outputs, *count))


def each_of(given: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number for each dimension of space. A single number is repeated."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    return numbers * rank if len(numbers) == 1 else numbers
