"""Views, which only change the order in which the next call reads, and calls that join tensors."""

from __future__ import annotations

from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten._reshape_alias.default", "aten._unsafe_view.default", "aten.view.default")
@imports("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default")
def reshape(importing: Importing, call: Call) -> View:
    return call.tensor().reshaped(call.result.shape)


@imports("aten.alias.default", "aten.clone.default", "aten.detach.default")
def same(importing: Importing, call: Call) -> View:
    """Return the tensor itself. Tensors are never changed in place, so no copy is needed."""
    return call.tensor()


@imports("aten.transpose.int")
def transpose(importing: Importing, call: Call) -> View:
    x = call.tensor()
    return x.permuted(exchanged(len(x.shape), *call.args[1:]))


def exchanged(rank: int, first: int, second: int) -> list[int]:
    """Return the order of dimensions that exchanges two; it is its own inverse."""
    dims = list(range(rank))
    if dims:
        dims[first], dims[second] = dims[second], dims[first]
    return dims


@imports("aten.t.default")
def turned(importing: Importing, call: Call) -> View:
    """Exchange rows and columns of a matrix. A vector stays unchanged."""
    x = call.tensor()
    return x.permuted(range(len(x.shape))[::-1])


@imports("aten.permute.default")
def permute(importing: Importing, call: Call) -> View:
    x, dims = call.tensor(), call.args[1]
    return x.permuted([dim % len(x.shape) for dim in dims])


@imports("aten.expand.default")
def expand(importing: Importing, call: Call) -> View:
    return call.tensor().expanded(call.result.shape)


@imports("aten.slice.Tensor")
def sliced(importing: Importing, call: Call) -> View:
    x = call.tensor()
    dim = call.dimension(1, 0)
    first, step = call.argument(2, "start") or 0, call.argument(4, "step", 1)
    size, count = x.shape[dim], call.result.shape[dim]
    first = min(max(first + size, 0), size) if first < 0 else min(first, size)
    return importing.taken(call, x, dim, range(first, first + step * count, step))


@imports("aten.select.int")
def select(importing: Importing, call: Call) -> View:
    x = call.tensor()
    dim, index = call.args[1:]
    dim, size = dim % len(x.shape), x.shape[dim]
    part = importing.part(call, x, dim, index % size, 1)
    return part.reshaped(call.result.shape)


@imports("aten.split.Tensor", "aten.split_with_sizes.default", "aten.unsafe_split.Tensor")
def split(importing: Importing, call: Call) -> tuple[View, ...]:
    x = call.tensor()
    dim = call.dimension(2, 0)
    parts, first = [], 0
    for spec in call.results:
        parts.append(importing.part(call, x, dim, first, spec.shape[dim]))
        first += spec.shape[dim]
    return tuple(parts)


@imports("aten.unbind.int")
def unbind(importing: Importing, call: Call) -> tuple[View, ...]:
    x = call.tensor()
    dim = call.dimension(1, 0)
    parts = (importing.part(call, x, dim, index, 1) for index in range(x.shape[dim]))
    return tuple(part.reshaped(spec.shape) for part, spec in zip(parts, call.results, strict=True))


@imports("aten.cat.default", "aten.concat.default")
def cat(importing: Importing, call: Call) -> View:
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    return importing.joined(call, call.args[0], dim)


@imports("aten.stack.default")
def stack(importing: Importing, call: Call) -> View:
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    parts = [each.reshaped((*each.shape[:dim], 1, *each.shape[dim:])) for each in call.args[0]]
    return importing.joined(call, parts, dim)


@imports("aten.constant_pad_nd.default")
def constant_pad(importing: Importing, call: Call) -> View:
    """Add places with one number before and behind a tensor. Counts begin with the last dimension.

    A negative count removes places of the tensor.
    """
    x = call.tensor()
    added = call.args[1]
    for index, (before, behind) in enumerate(zip(added[::2], added[1::2], strict=True)):
        dim = len(x.shape) - 1 - index
        first = max(0, -before)
        count = x.shape[dim] - first - max(0, -behind)
        x = importing.part(call, x, dim, first, count)
        parts = [_filled(call, x, dim, before), x, _filled(call, x, dim, behind)]
        x = importing.joined(call, [each for each in parts if each.shape[dim] > 0], dim)
    return x


def _filled(call: Call, x: View, dim: int, count: int) -> View:
    shape = (*x.shape[:dim], max(0, count), *x.shape[dim + 1 :])
    return Importing.filled(f"{call.name}_filled", shape, x.dtype, call.argument(2, "value", 0))
